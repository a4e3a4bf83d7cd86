package model

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Limit bounds the models of one key, such as host=example.com. A limit set at run time precedes the limits of policies and of the queue.
type Limit struct {
	Name    string // the key, or of a limit of the queue the template of its keys
	Running int    // attempts at a time; 0: any number
	Rate    policy.Rate
	Until   time.Time // from then on it is forgotten; zero: never
	Since   time.Time
	Reason  string
	By      string
}

// MaxRunning is the largest number of attempts at a time that a limit may name.
const MaxRunning = 100_000

var limitName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}=[A-Za-z0-9_.:/@+~-]{1,100}$`)

// Validate reports the first field out of range.
func (l *Limit) Validate() error {
	_, err := policy.ParseKey(l.Name)
	switch {
	case err != nil && !limitName.MatchString(l.Name):
		return document.Refuse("key", "a key such as host=example.com, or a template such as {host(input_url)}", document.Found(l.Name))
	case l.Running < 0 || l.Running > MaxRunning:
		return document.Refuse("running", fmt.Sprint("1 to ", MaxRunning), document.Found(l.Running))
	case l.Running == 0 && l.Rate.Count == 0:
		return document.Refuse("", "running or rate, or both", "neither")
	case !l.Until.IsZero() && !l.Until.After(l.Since):
		return document.Refuse("until", "a time after "+FormatTime(l.Since), FormatTime(l.Until))
	default:
		return nil
	}
}

// QueueLimit is a limit that was set for all keys of a template.
type QueueLimit struct {
	Key policy.Key
	Limit
}

// Ended reports whether the limit is over at now.
func (l *Limit) Ended(now time.Time) bool { return !l.Until.IsZero() && !l.Until.After(now) }

// Ended names the limits set at run time that are over at now.
func (b *Blockers) Ended(now time.Time) (names []string) {
	for name, limit := range b.Limits {
		if limit.Ended(now) {
			names = append(names, name)
		}
	}
	for _, limit := range b.QueueLimits {
		if limit.Ended(now) {
			names = append(names, limit.Name)
		}
	}
	return names
}

// LimitsOf returns the limits in force for a model at now, by key: of its policy and of the queue, or as set for a key at run time. Each part of a
// queue has its share of them, at least one attempt.
func (b *Blockers) LimitsOf(m *Model, now time.Time) (limits []Limit) {
	if len(m.Policy.Limits)+len(b.QueueLimits) == 0 {
		return nil
	}
	add := func(key policy.Key, running int, rate policy.Rate) {
		limit := Limit{Name: key.Of(m.Payload, m.Labels, m.PolicyKey()), Running: running, Rate: rate}
		if limit.Name == "" || slices.ContainsFunc(limits, func(other Limit) bool { return other.Name == limit.Name }) {
			return
		}
		if own, set := b.Limits[limit.Name]; set && !own.Ended(now) {
			limit = own
		}
		if b.Parts > 1 && limit.Running > 0 {
			turn := (b.Part + int(crc32.ChecksumIEEE([]byte(limit.Name)))%b.Parts) % b.Parts
			share := limit.Running / b.Parts
			if turn < limit.Running%b.Parts {
				share++
			}
			limit.Running = max(1, share)
		}
		if limit.Rate.Count > 0 {
			limit.Rate.Per *= time.Duration(max(1, b.Parts))
		}
		limits = append(limits, limit)
	}
	for _, limit := range m.Policy.Limits {
		add(limit.Key, limit.Running, limit.Rate)
	}
	for _, limit := range b.QueueLimits {
		if !limit.Ended(now) {
			add(limit.Key, limit.Running, limit.Rate)
		}
	}
	slices.SortFunc(limits, func(a, b Limit) int { return cmp.Compare(a.Name, b.Name) })
	return limits
}

// LimiterState is the capacity left of a key, as it was read.
type LimiterState struct {
	Running int      // attempts that run
	Lapsed  []string // some of the models that hold a slot past its deadline
	Slots
}

// Limiters are a dispatcher's knowledge of keys within a round: read, and updated by its decisions. They belong to one goroutine.
type Limiters struct {
	Keys     map[string]*LimiterState
	Circuits map[string]*CircuitState
	Limits   map[string][]Limit // of models, by their uids, as Needs returned them; others are computed
}

// Learn adds the state of keys that are not known yet.
func (l *Limiters) Learn(other Limiters) {
	if l.Keys == nil {
		l.Keys, l.Circuits, l.Limits = map[string]*LimiterState{}, map[string]*CircuitState{}, map[string][]Limit{}
	}
	maps.Copy(l.Limits, other.Limits)
	for name, state := range other.Keys {
		l.Keys[name] = cmp.Or(l.Keys[name], state)
	}
	for name, state := range other.Circuits {
		l.Circuits[name] = cmp.Or(l.Circuits[name], state)
	}
}

func (l *Limiters) key(name string) *LimiterState {
	if l.Keys[name] == nil {
		l.Learn(Limiters{Keys: map[string]*LimiterState{name: {}}})
	}
	return l.Keys[name]
}

// Free gives places of a key back that attempts had taken when it was read.
func (l *Limiters) Free(name string, places int) { l.key(name).Running -= places }

func (l *Limiters) limitsOf(b *Blockers, m *Model, now time.Time) []Limit {
	limits, known := l.Limits[m.UID]
	if !known {
		limits = b.LimitsOf(m, now)
	}
	return limits
}

// Full finds a key without a free slot; empty: none.
func (l *Limiters) Full(limits []Limit) string {
	for _, limit := range limits {
		if limit.Running > 0 && l.key(limit.Name).Running >= limit.Running {
			return limit.Name
		}
	}
	return ""
}

// Acquire is the capacity that a start takes of a key, or that a waiting model reserves: all of it or nothing.
type Acquire struct {
	Name          string // the key
	Limit         int    // attempts that may run, this one included; 0: any number
	Before, After Slots  // as they were read, and as they are from now on
}

// closed finds the key that opens last, among those that an answer has closed and those with a held slot.
func (l *Limiters) closed(limits []Limit, held []string, now time.Time) (name string, opens time.Time) {
	for _, limit := range limits {
		_, by := l.key(limit.Name).ClosedAt(now)
		stops := slices.Contains(held, limit.Name) || by != ""
		if at := ceilMillis(l.key(limit.Name).Closed); stops && at.After(now) && at.After(opens) {
			name, opens = limit.Name, at
		}
	}
	return name, opens
}

// reserve finds the first instant at which all keys have a slot.
func (l *Limiters) reserve(limits []Limit, held []string, now time.Time) (at time.Time, acquires []Acquire, holds []string) {
	at = now
	for _, limit := range limits {
		state, interval := l.key(limit.Name), limit.Rate.Interval()
		acquire := Acquire{limit.Name, limit.Running, state.Slots, state.Slots}
		switch {
		case slices.Contains(held, limit.Name):
			holds = append(holds, limit.Name)
		case interval > 0 || state.Free.After(now) || state.Closed.After(now):
			var slot time.Time
			slot, acquire.After = state.reserve(interval, now)
			at, holds = latest(at, slot), append(holds, limit.Name)
		}
		acquires = append(acquires, acquire)
	}
	return ceilMillis(at), acquires, holds
}

// start uses the slots of a start: held ones since an instant, others from now on.
func (l *Limiters) start(limits []Limit, acquires []Acquire, held []string, since, now time.Time) {
	for i, limit := range limits {
		slot := now
		if since.Before(now) && slices.Contains(held, limit.Name) {
			slot = since
		}
		if interval := limit.Rate.Interval(); interval > 0 {
			acquires[i].After = acquires[i].After.start(slot, interval, now)
		}
		l.key(limit.Name).Running++
	}
}

func (l *Limiters) acquire(acquires []Acquire) {
	for _, acquire := range acquires {
		l.key(acquire.Name).Slots = acquire.After
	}
}

// CountedBy returns the keys of a kind that count an attempt, from State.Counted.
func CountedBy(all, kind string) (keys []string) {
	for _, counted := range strings.Fields(all) {
		if of, name := Blocker(counted).Split(); of == kind {
			keys = append(keys, name)
		}
	}
	return keys
}

// Slots say when the key of a rate lets starts through, in whole microseconds. A model without room reserves a slot. Late models start one after
// the other when the key opens, so that no outage ends in a burst.
type Slots struct {
	Free   time.Time // the first slot that nobody has reserved; zero: any instant is
	Closed time.Time // until then nothing starts, whatever is reserved; zero: it is open
	By     string    // whose answer has closed it, such as "tbl_1 (http_429)"; empty: the pace of the rate
	Paced  time.Time // until when the pace had closed it before an answer did; zero: it had not
}

// ClosedAt is until when an answer has closed the key, and by whom; zero: none has, or it has opened by now.
func (s Slots) ClosedAt(now time.Time) (until time.Time, by string) {
	if s.By == "" || !s.Closed.After(now) {
		return time.Time{}, ""
	}
	return s.Closed, s.By
}

// Open opens a key at now, or as soon as its pace allows. Reserved slots move forward by as much as its closing had moved them back.
func (s Slots) Open(now time.Time) Slots {
	opens := latest(now, s.Paced)
	return Slots{Free: latest(opens, s.Free.Add(opens.Sub(s.Closed))), Closed: opens, Paced: s.Paced}
}

// evenly is how much too soon a start may come. Without it a start delayed by a millisecond would delay all behind it.
const evenly = 100 * time.Millisecond

const lineKept = time.Hour

// ParseSlots reads the result of String. Unreadable slots are zero.
func ParseSlots(text string) Slots {
	free, rest, _ := strings.Cut(text, " ")
	closed, by, _ := strings.Cut(rest, " ")
	closed, paced, _ := strings.Cut(closed, "/")
	return Slots{readMicros(free), readMicros(closed), by, readMicros(paced)}
}

// String is the stored form: "FREE CLOSED/PACED BY", instants in Unix microseconds; empty for the zero value.
func (s Slots) String() string {
	text := micros(s.Free)
	if !s.Closed.IsZero() {
		closed := strings.TrimSuffix(micros(s.Closed)+"/"+micros(s.Paced), "/")
		text = strings.TrimSuffix(text+" "+closed+" "+s.By, " ")
	}
	return text
}

func (s Slots) reserve(interval time.Duration, now time.Time) (slot time.Time, after Slots) {
	slot = latest(s.Free, s.Closed, now)
	s.Free = ceilMicros(slot.Add(interval))
	return slot, s
}

// start closes the key for an interval. A late start moves the whole line.
func (s Slots) start(slot time.Time, interval time.Duration, now time.Time) (after Slots) {
	place := latest(s.Closed, slot)
	late := max(0, now.Sub(place)-evenly)
	after.Closed = ceilMicros(place.Add(late + interval))
	after.Free = latest(s.Free.Add(late), after.Closed)
	return after
}

// Last is from when on nobody needs to know of the slots any more.
func (s Slots) Last() time.Time {
	if s.Free.Sub(s.Closed) > evenly { // somebody holds one
		return s.Free.Add(lineKept)
	}
	return latest(s.Free, s.Closed)
}

func latest(at time.Time, others ...time.Time) time.Time {
	return slices.MaxFunc(append(others, at), time.Time.Compare)
}

func ceilMillis(at time.Time) time.Time {
	return at.Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

func ceilMicros(at time.Time) time.Time {
	return at.Add(time.Microsecond - 1).Truncate(time.Microsecond)
}

func micros(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMicro(), 10)
}

func readMicros(text string) time.Time {
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil || us <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
