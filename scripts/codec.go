package scripts

import (
	"fmt"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Fields of the hash <queue>:model:<uid> that are read one by one.
const (
	fieldRev        = "rev"
	fieldAttemptUID = "attempt_uid"
	fieldDeadlineAt = "deadline_at"
	fieldRefreshAt  = "refresh_at"
)

// codec turns a model into the fields of its hash, or a journal entry into those of its stream entry, and back. An absent value is an
// absent field.
type codec struct {
	get   func(name string) string // nil: it writes
	set   func(name, value string)
	fault string // what cannot be read
}

// encode renders a model as the fields of its hash, without rev.
func encode(m *model.Model) map[string]string {
	hash := make(map[string]string)
	c := codec{set: func(name, value string) { hash[name] = value }}
	c.model(m)
	return hash
}

// decode reads the fields of a hash. A value that cannot be read is left out and told as a fault: the model then waits with
// safe values instead of stopping its batch.
func decode(uid string, hash map[string]string) model.Model {
	m, c := model.Model{UID: uid}, codec{get: func(name string) string { return hash[name] }}
	c.model(&m)
	m.Fault = c.fault
	return m
}

// model lists all fields of the hash but rev.
func (c *codec) model(m *model.Model) {
	c.text("rrule", &m.Rule)
	c.text("timezone", &m.Timezone)
	c.text("dtstart", &m.Dtstart)
	c.text("policy", &m.PolicyName)

	c.time(fieldRefreshAt, &m.RefreshAt)
	c.text("refresh_why", &m.Why)
	c.text(fieldAttemptUID, &m.AttemptUID)
	c.number("attempt_no", &m.AttemptNo)
	c.time("started_at", &m.StartedAt)
	c.time(fieldDeadlineAt, &m.DeadlineAt)
	c.time("entry_deadline_at", &m.EntryDeadlineAt)
	c.time("entry_planned_at", &m.EntryPlannedAt)
	c.time("processing_at", &m.ProcessingAt)
	c.text("worker", &m.Worker)
	c.flag("again", &m.Again)
	c.flag("refresh_disabled_until_update", &m.Disabled)
	c.text("refresh_disabled_user_friendly_reason", &m.DisabledReason)
	c.text("user_friendly_status", &m.UserFriendlyStatus)
	c.number("progress", &m.Progress)
	c.time("last_success_at", &m.LastSuccessAt)
	c.time("failing_since", &m.FailingSince)
	c.time("final_failure_at", &m.FinalFailureAt)
	c.text("last_attempt_uid", &m.LastAttemptUID)
	c.number("deferrals", &m.Deferrals)
	c.time("trying_since", &m.TryingSince)
	c.number("total_retries", &m.TotalRetries)
	c.number("successful_retries", &m.SuccessfulRetries)
	c.number("retried_cycles", &m.RetriedCycles)
}

// journal lists all fields of a journal entry, in their order.
func (c *codec) journal(e *model.JournalEntry) {
	c.text("uid", &e.UID)
	c.text("event", (*string)(&e.Event))
	c.time("at", &e.At)
	c.text("attempt_uid", &e.AttemptUID)
	c.number("attempt_no", &e.AttemptNo)
	c.time("refresh_at", &e.RefreshAt)
	c.time("deadline_at", &e.DeadlineAt)
	c.text("refresh_why", &e.Why)
	c.text("reason", &e.Reason)
	c.text("error_type", &e.ErrorType)
	changed := "" // unlike the others it may be true, false or not told
	if e.Changed != nil {
		changed = strconv.FormatBool(*e.Changed)
	}
	c.text("changed", &changed)
	if value, err := strconv.ParseBool(changed); err == nil {
		e.Changed = &value
	}
	c.text("policy_error", &e.PolicyError)
	c.flag("held", &e.Held)
	c.flag("final", &e.Final)
	c.text("disabled_reason", &e.DisabledReason)
}

func (c *codec) text(name string, value *string) {
	switch {
	case c.get != nil:
		*value = c.get(name)
	case *value != "":
		c.set(name, *value)
	}
}

func (c *codec) flag(name string, value *bool) {
	text := flag(*value)
	c.text(name, &text)
	*value = text != ""
}

func (c *codec) time(name string, value *time.Time) {
	text := model.FormatTime(*value)
	if c.text(name, &text); c.get == nil || text == "" {
		return
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		c.fault = fmt.Sprintf("%s: expected an RFC 3339 time, found %s", name, document.Found(text))
	}
	*value = at.UTC().Truncate(time.Millisecond)
}

func (c *codec) number(name string, value *int) {
	text := number(*value)
	if c.text(name, &text); c.get == nil || text == "" {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		c.fault = fmt.Sprintf("%s: expected a whole number, found %s", name, document.Found(text))
		return
	}
	*value = n
}

// number renders a number; empty: 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// flag renders what is set as "1"; empty: it is not.
func flag(set bool) string {
	if set {
		return "1"
	}
	return ""
}
