package store

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// fieldRev is the field of the hash <queue>:model:<uid> that counts transitions.
const fieldRev = "rev"

// fieldNames are the other fields of that hash, in their order. The fields of a definition come first, then the fields of a plan.
var fieldNames = namesOf((*codec).model)

// definedFields is how many of them belong to the definition, and planFields how many are needed to know when a waiting model starts.
var (
	definedFields = len(namesOf((*codec).definition))
	planFields    = definedFields + len(namesOf((*codec).plan))
)

func namesOf(list func(*codec, *model.Model)) (names []string) {
	list(&codec{set: func(name, _ string) { names = append(names, name) }, absent: true}, new(model.Model))
	return names
}

var places = func() map[string]int {
	places := make(map[string]int, len(fieldNames))
	for i, name := range fieldNames {
		places[name] = i
	}
	return places
}()

// values are the values of the fields of a hash, by their places. An absent value is an empty text.
type values []string

func (v values) of(name string) string {
	if v == nil {
		return ""
	}
	return v[places[name]]
}

// The fields that are read one by one.
const (
	fieldAttemptUID = "attempt_uid"
	fieldDeadlineAt = "deadline_at"
	fieldHeardAt    = "heard_at"
	fieldGuarded    = "guarded"
	fieldRefreshAt  = "refresh_at"
	fieldWhy        = "refresh_why"
	fieldTicket     = "ticket" // txn.lua writes it
	FieldError      = "error"  // likewise
)

// attemptFields are those that only a model with an attempt has: they go with its attempt_uid.
var attemptFields = []string{
	"counted_by", "started_at", fieldDeadlineAt, "entry_deadline_at", "entry_times", "taken_at",
	"processing_at", "worker", "silent_after", fieldHeardAt, "again", "outdated", "traced", fieldGuarded,
}

// isOfAttempt says the same by place, for each transition.
var isOfAttempt = redis.Map(fieldNames, func(name string) bool { return slices.Contains(attemptFields, name) })

// codec converts a model to the fields of its hash, or a stream entry to its values, and back.
type codec struct {
	get    func(name string) string // nil: it writes
	set    func(name, value string)
	absent bool            // it writes absent values too
	fault  *document.Error // what cannot be read; nil: all can
}

// encode renders a model as the values of its fields, without rev.
func encode(m *model.Model) values {
	v := make(values, 0, len(fieldNames))
	c := codec{set: func(_, value string) { v = append(v, value) }, absent: true}
	c.model(m)
	return v
}

// decode reads the values of all fields, or of those up to the plan. A value that it cannot read becomes a fault: the model waits with safe values
// and does not stop its batch.
func decode(uid string, v values) model.Model {
	m, place := model.Model{UID: uid}, -1
	c := codec{get: func(string) string { place++; return v[place] }}
	if c.definition(&m); len(v) == planFields {
		c.plan(&m)
	} else {
		c.state(&m)
	}
	if c.fault != nil {
		m.Fault = c.fault.Error()
	}
	return m
}

// labelPrefix begins the names of the fields that hold labels.
const labelPrefix = "label:"

// split fills in the fields of a model but rev, and returns its labels and the names of other fields.
func split(hash map[string]string, v values) (labels map[string]string, others []string) {
	for name, value := range hash {
		if place, known := places[name]; known {
			v[place] = value
		} else if label, is := strings.CutPrefix(name, labelPrefix); is && model.ValidateLabel(label, value) == nil {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[label] = value
		} else if name != fieldRev {
			others = append(others, name)
		}
	}
	return labels, others
}

// model lists all fields of the hash but rev.
func (c *codec) model(m *model.Model) {
	c.definition(m)
	c.state(m)
}

// definition lists those that somebody has saved.
func (c *codec) definition(m *model.Model) {
	c.text("rrule", &m.Rule)
	c.text("timezone", &m.Timezone)
	c.text("dtstart", &m.Dtstart)
	c.text("policy", &m.PolicyName)
}

// state lists those that transitions write.
func (c *codec) state(m *model.Model) {
	c.plan(m)
	c.text("parked_by", (*string)(&m.ParkedBy))
	c.text(fieldAttemptUID, &m.AttemptUID)
	c.text(fieldWhy, &m.Why)
	c.time("not_before", &m.NotBefore)
	c.text("reserved", &m.Reserved)
	c.text("counted_by", &m.Counted)
	c.time("parked_since", &m.ParkedSince)
	c.number("attempt_no", &m.AttemptNo)
	c.time("started_at", &m.StartedAt)
	c.time(fieldDeadlineAt, &m.DeadlineAt)
	c.entryDeadline(m)
	c.entryTimes(m)
	c.number(fieldTicket, &m.Ticket)
	c.time("taken_at", &m.TakenAt)
	c.time("processing_at", &m.ProcessingAt)
	c.text("worker", &m.Worker)
	c.length("silent_after", &m.SilentAfter)
	c.time(fieldHeardAt, &m.HeardAt)
	c.flag("again", &m.Again)
	c.flag("outdated", &m.Outdated)
	c.flag("unpublished", &m.Unpublished)
	c.text("usual", &m.Usual)
	c.flag("traced", &m.Traced)
	c.flag(fieldGuarded, &m.Guarded)
	c.flag("refresh_disabled_until_update", &m.Disabled)
	c.time("refresh_disabled_at", &m.DisabledAt)
	c.text("refresh_disabled_user_friendly_reason", &m.DisabledReason)
	c.text("refresh_disabled_by", (*string)(&m.DisabledBy))
	c.text("refresh_disabled_who", &m.DisabledWho)
	c.text("user_friendly_status", &m.UserFriendlyStatus)
	c.number("progress", &m.Progress)
	c.time("last_success_at", &m.LastSuccessAt)
	c.fence(m)
	c.time("failing_since", &m.FailingSince)
	c.text(FieldError, &m.FingerprintID)
	c.time("final_failure_at", &m.FinalFailureAt)
	c.text("last_attempt_uid", &m.LastAttemptUID)
	c.number("deferrals", &m.Deferrals)
	c.number("deaths", &m.Deaths)
	c.time("trying_since", &m.TryingSince)
	c.text("freshness", (*string)(&m.Freshness))
	c.time("stale_at", &m.StaleAt)
	c.time("fresh_since", &m.FreshSince)
	c.number("total_retries", &m.TotalRetries)
	c.number("successful_retries", &m.SuccessfulRetries)
	c.number("retried_cycles", &m.RetriedCycles)
}

// plan lists the fields that decide when a model starts its planned refresh.
func (c *codec) plan(m *model.Model) {
	c.time(fieldRefreshAt, &m.RefreshAt)
	c.text("refresh_for", (*string)(&m.Trigger))
	c.length("phase", &m.Phase)
	c.time("planned_for", &m.PlannedFor)
}

// entryDeadline is left out as long as it is the deadline.
func (c *codec) entryDeadline(m *model.Model) {
	at := m.EntryDeadlineAt
	if at.Equal(m.DeadlineAt) {
		at = time.Time{}
	}
	if c.time("entry_deadline_at", &at); c.get == nil {
		return
	}
	if m.EntryDeadlineAt = at; at.IsZero() {
		m.EntryDeadlineAt = m.DeadlineAt
	}
}

// entryTimes are two times in one field, as each field costs with each attempt. The second may be absent.
func (c *codec) entryTimes(m *model.Model) {
	times := strings.TrimSuffix(model.FormatTime(m.EntryDueAt)+" "+model.FormatTime(m.EntryPlannedAt), " ")
	if c.text("entry_times", &times); c.get == nil {
		return
	}
	due, next, _ := strings.Cut(times, " ")
	m.EntryDueAt, m.EntryPlannedAt = c.parseTime("entry_times", due), c.parseTime("entry_times", next)
}

// fence is left out if it follows from the start of the running attempt, or else from the last success.
func (c *codec) fence(m *model.Model) {
	latest := max(0, cmp.Or(m.StartedAt, m.LastSuccessAt, time.UnixMilli(0)).UnixMilli())
	own := 0
	if m.Fence > latest {
		own = int(m.Fence)
	}
	if c.number("fence", &own); c.get != nil {
		m.Fence = cmp.Or(int64(own), latest)
	}
}

// notes lists the fields of a journal entry that are none of the model.
func (c *codec) notes(e *model.JournalEntry) {
	c.number("ended_attempt_no", &e.EndedNo)
	c.text("ended_attempt_uid", &e.EndedUID)
	c.text("reason", &e.Reason)
	c.text("error_type", &e.ErrorType)
	changed := "" // unlike the others it may be true, false or absent
	if e.Changed != nil {
		changed = strconv.FormatBool(*e.Changed)
	}
	if c.text("changed", &changed); c.get != nil && changed != "" {
		if value, err := strconv.ParseBool(changed); err == nil {
			e.Changed = &value
		}
	}
	c.text("policy_error", &e.PolicyError)
	c.flag("held", &e.Held)
	c.flag("final", &e.Final)
	c.text("by", &e.By)
	c.length("wait", &e.Wait)
	c.length("work", &e.Work)
	c.text("who", &e.Who)
	c.text("freshness_was", (*string)(&e.PriorFreshness))
}

func (c *codec) text(name string, value *string) {
	switch {
	case c.get != nil:
		*value = c.get(name)
	case *value != "" || c.absent:
		c.set(name, *value)
	}
}

func (c *codec) flag(name string, value *bool) {
	text := redis.Flag(*value)
	c.text(name, &text)
	*value = text != ""
}

func (c *codec) time(name string, value *time.Time) {
	text := model.FormatTime(*value)
	if c.text(name, &text); c.get != nil && text != "" {
		*value = c.parseTime(name, text)
	}
}

func (c *codec) parseTime(name, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		c.fault = document.Refuse(name, "an RFC 3339 time", document.Found(text))
	}
	return at.UTC().Truncate(time.Millisecond)
}

func (c *codec) length(name string, value *time.Duration) {
	text := ""
	if *value > 0 {
		text = document.FormatDuration(*value)
	}
	if c.text(name, &text); c.get == nil {
		return
	}
	length, err := document.ParseDuration(text)
	if err != nil {
		c.fault = document.Refuse(name, "a duration", document.Found(text))
	}
	*value = length
}

func (c *codec) number(name string, value *int) {
	text := redis.Number(*value)
	if c.text(name, &text); c.get == nil || text == "" {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		c.fault = document.Refuse(name, "a whole number", document.Found(text))
		return
	}
	*value = n
}
