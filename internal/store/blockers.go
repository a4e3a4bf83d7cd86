package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// blockerCache keeps parsed holds, limits and calendars: dispatchers read them once a round.
type blockerCache struct {
	mu       sync.Mutex
	texts    [3][]string
	blockers model.Blockers
}

// read reads fields and values of <queue>:holds, <queue>:limits and <queue>:calendars. It skips what it cannot read; the doctor reports it.
func (c *blockerCache) read(s *Store, texts [3][]string) model.Blockers {
	c.mu.Lock()
	defer c.mu.Unlock()
	if read := c.blockers.Calendars != nil; read && slices.EqualFunc(texts[:], c.texts[:], slices.Equal) {
		return c.blockers
	}
	c.texts = texts
	c.blockers = model.Blockers{Calendars: map[string]schedule.Calendar{}, Limits: map[string]model.Limit{}, Part: s.Place, Parts: len(s.AllParts())}
	for pair := range slices.Chunk(texts[0], 2) {
		if pair[0] == HoldChanges {
			c.blockers.HoldChanges = pair[1]
			continue
		}
		hold, _ := ReadHold(pair[0], pair[1])
		c.blockers.Holds = append(c.blockers.Holds, hold)
	}
	slices.SortFunc(c.blockers.Holds, CompareHolds)
	for pair := range slices.Chunk(texts[1], 2) {
		limit, err := ReadLimit(pair[0], pair[1])
		if key, failed := policy.ParseKey(limit.Name); err == nil && failed == nil {
			c.blockers.QueueLimits = append(c.blockers.QueueLimits, model.QueueLimit{Key: key, Limit: limit})
		} else if err == nil {
			c.blockers.Limits[limit.Name] = limit
		}
	}
	for pair := range slices.Chunk(texts[2], 2) {
		if calendar, err := ReadCalendar(pair[1]); err == nil {
			c.blockers.Calendars[pair[0]] = calendar
		}
	}
	return c.blockers
}

// Blockers reads the blockers that may keep models of the queue from starting, for people: a key of another type counts as empty.
func (s Fleet) Blockers(ctx context.Context) (model.Blockers, error) {
	pipe := s.store.Clients.Read.Pipeline()
	read := s.AskBlockers(ctx, pipe)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return model.Blockers{}, redis.Wrap(err, "read holds, limits and calendars")
	}
	blockers, err := read()
	return blockers, redis.IgnoreWrongType(err)
}

// AskBlockers is Blockers by a pipeline of the caller, who executes it before read: a key of another type is an error, as nothing may start then.
func (s Fleet) AskBlockers(ctx context.Context, pipe goredis.Pipeliner) (read func() (model.Blockers, error)) {
	hashes := redis.Map([]string{s.store.Keys.Holds, s.store.Keys.Limits, s.store.Keys.Calendars}, func(key string) *goredis.MapStringStringCmd {
		return pipe.HGetAll(ctx, key)
	})
	return func() (_ model.Blockers, err error) {
		var texts [3][]string
		for i, hash := range hashes {
			err = cmp.Or(err, hash.Err())
			for _, name := range slices.Sorted(maps.Keys(hash.Val())) {
				texts[i] = append(texts[i], name, hash.Val()[name])
			}
		}
		return new(blockerCache).read(s.store, texts), redis.Wrap(err, "read holds, limits and calendars")
	}
}

// MaxBlockers bounds how many blockers are read.
const MaxBlockers = 1000

// CircuitFields are the fields of the hash <queue>:circuit:<key> that a decision depends on.
var CircuitFields = []string{"opened_at", "probe_at", "probe"}

// ReadCircuit reads the CircuitFields of a circuit.
func ReadCircuit(fields map[string]string) *model.CircuitState {
	c := &model.CircuitState{Probe: fields["probe"]}
	c.OpenedAt, _ = ReadStoredTime(fields["opened_at"])
	c.ProbeAt, _ = ReadStoredTime(fields["probe_at"])
	return c
}

// ReadQueueCircuit reads the circuit of a queue; settings that are absent or cannot be read are the defaults.
func ReadQueueCircuit(hash map[string]string) model.QueueCircuit {
	circuit := model.DefaultQueueCircuit()
	circuit.On = hash["on"] == "1"
	circuit.Open = hash["opened_at"] != ""
	read := circuit
	read.Share, _ = strconv.ParseFloat(hash["share"], 64)
	read.Window = time.Duration(redis.ParseInt(hash["window_ms"])) * time.Millisecond
	read.Min = int(redis.ParseInt(hash["min"]))
	if read.Validate() != nil {
		return circuit
	}
	return read
}

// queueCircuitFields are the fields of the hash <queue>:circuit:queue that a decision depends on.
var queueCircuitFields = []string{"on", "opened_at", "share", "window_ms", "min"}

// HoldChanges is the field of <queue>:holds that counts how often they have changed. No hold has its name.
const HoldChanges = "changes"

type holdText struct {
	Selector string `json:"selector"`
	Since    string `json:"since"`
	Until    string `json:"until,omitempty"`
	Within   string `json:"within,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty"`
}

// ReadHold reads a stored hold, and keeps what it can read of a damaged one: to hold too many models is better than to start some.
func ReadHold(id, raw string) (model.Hold, error) {
	h := model.Hold{ID: id}
	var text holdText
	if err := json.Unmarshal([]byte(raw), &text); err != nil {
		return h, document.Refuse("holds."+id, "a JSON object", document.Found(raw))
	}
	h.Reason, h.By = text.Reason, text.By
	var errs [4]error
	if h.Selector, errs[0] = model.ParseSelector(text.Selector); errs[0] != nil {
		h.Selector = model.Selector{} // a term that nobody knows would pick no model
	}
	h.Since, errs[1] = ReadStoredTime(text.Since)
	h.Until, errs[2] = ReadStoredTime(text.Until)
	if text.Within != "" {
		h.Within, errs[3] = document.ParseDuration(text.Within)
	}
	return h, document.Place(cmp.Or(errs[0], errs[1], errs[2], errs[3]), "holds."+id)
}

// ReadStoredTime reads an instant as keys have it; empty: none.
func ReadStoredTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC(), err
}

// CompareHolds orders holds by their age.
func CompareHolds(a, b model.Hold) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
}

// WriteHold is the text of a hold as it is stored.
func WriteHold(hold *model.Hold) string {
	text := holdText{
		Selector: hold.Selector.String(), Since: model.FormatTime(hold.Since), Until: model.FormatTime(hold.Until),
		Reason: document.Shorten(hold.Reason, document.MaxText), By: document.Shorten(hold.By, model.MaxBy),
	}
	if hold.Within > 0 {
		text.Within = document.FormatDuration(hold.Within)
	}
	raw, _ := json.Marshal(text) // texts only
	return string(raw)
}

type limitText struct {
	Running int    `json:"running,omitempty"`
	Rate    string `json:"rate,omitempty"`
	Since   string `json:"since,omitempty"`
	Until   string `json:"until,omitempty"`
	Reason  string `json:"reason,omitempty"`
	By      string `json:"by,omitempty"`
}

// ReadLimit reads the JSON of a limit.
func ReadLimit(name, raw string) (model.Limit, error) {
	l := model.Limit{Name: name}
	var text limitText
	if err := json.Unmarshal([]byte(raw), &text); err != nil {
		return l, document.Refuse("limits."+name, "a JSON object", document.Found(raw))
	}
	l.Running, l.Reason, l.By = text.Running, text.Reason, text.By
	var errs [3]error
	l.Since, errs[0] = ReadStoredTime(text.Since)
	l.Until, errs[1] = ReadStoredTime(text.Until)
	if text.Rate != "" {
		l.Rate, errs[2] = policy.ParseRate(text.Rate)
	}
	return l, document.Place(cmp.Or(errs[0], errs[1], errs[2]), "limits."+name)
}

// EndedLimit is a limit that was set at run time and has ended, as it is stored.
type EndedLimit struct{ Name, Text string }

// WriteLimit is the text of a limit as it is stored.
func WriteLimit(l *model.Limit) string {
	text, _ := json.Marshal(limitText{ // texts and a number
		l.Running, l.Rate.String(), model.FormatTime(l.Since), model.FormatTime(l.Until), document.Shorten(l.Reason, document.MaxText), document.Shorten(l.By, model.MaxBy),
	})
	return string(text)
}

// ReadCalendar reads the JSON of a calendar.
func ReadCalendar(text string) (schedule.Calendar, error) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return schedule.Calendar{}, fmt.Errorf("read stored calendar: %w", err)
	}
	return schedule.ParseCalendar(value)
}
