package scripts

import (
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// streamFields are the fields of one entry of a stream, in order; a field without a value is left out.
type streamFields []string

func (f *streamFields) add(name, value string) {
	if value != "" {
		*f = append(*f, name, value)
	}
}

// journalEntry lists the fields of one entry of <queue>:journal; empty for what is no transition.
func (t *Transition) journalEntry(now time.Time) []string {
	e, is := t.decision.Journal(t.uid, now)
	if !is {
		return nil
	}
	f := streamFields{"uid", e.UID, "event", string(e.Event), "at", model.FormatTime(e.At)}
	f.add("attempt_uid", e.AttemptUID)
	f.add("attempt_no", number(e.AttemptNo))
	f.add("refresh_at", model.FormatTime(e.RefreshAt))
	f.add("deadline_at", model.FormatTime(e.DeadlineAt))
	f.add("refresh_why", e.Why)
	f.add("reason", e.Reason)
	f.add("error_type", e.ErrorType)
	if e.Changed != nil {
		f.add("changed", strconv.FormatBool(*e.Changed))
	}
	f.add("policy_error", e.PolicyError)
	f.add("held", flag(e.Held))
	f.add("final", flag(e.Final))
	f.add("disabled_reason", e.DisabledReason)
	return f
}

// notification lists the fields of one entry of <queue>:outbox; empty: nobody is told.
func (t *Transition) notification(now time.Time) []string {
	n, is := t.decision.Notification(t.uid, now)
	if !is {
		return nil
	}
	f := streamFields{"event", string(n.Notice), "uid", n.UID, "at", model.FormatTime(n.At), "attempt_no", strconv.Itoa(n.AttemptNo)}
	if n.Notice == policy.NoticeDisabled {
		f = append(f, "reason", n.Reason, "refresh_why", n.Why)
	}
	return f
}

func readJournalEntry(values map[string]any) model.JournalEntry {
	e := streamEntry(values)
	entry := model.JournalEntry{
		UID: e.text("uid"), Event: model.Event(e.text("event")), At: e.time("at"),
		AttemptUID: e.text("attempt_uid"), AttemptNo: e.number("attempt_no"),
		RefreshAt: e.time("refresh_at"), DeadlineAt: e.time("deadline_at"), Why: e.text("refresh_why"),
		Reason: e.text("reason"), ErrorType: e.text("error_type"), PolicyError: e.text("policy_error"),
		Held: e.text("held") != "", Final: e.text("final") != "", DisabledReason: e.text("disabled_reason"),
	}
	if changed, err := strconv.ParseBool(e.text("changed")); err == nil {
		entry.Changed = &changed
	}
	return entry
}

func readNotification(values map[string]any) model.Notification {
	e := streamEntry(values)
	return model.Notification{
		UID: e.text("uid"), Notice: policy.Notice(e.text("event")), At: e.time("at"),
		AttemptNo: e.number("attempt_no"), Reason: e.text("reason"), Why: e.text("refresh_why"),
	}
}

// streamEntry is one entry of a stream as it came.
type streamEntry map[string]any

func (e streamEntry) text(name string) string { return text(e[name]) }

func (e streamEntry) number(name string) int {
	n, _ := strconv.Atoi(e.text(name))
	return n
}

func (e streamEntry) time(name string) time.Time {
	at, _ := time.Parse(time.RFC3339, e.text(name))
	return at
}
