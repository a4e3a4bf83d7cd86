package store

import (
	"cmp"
	"maps"
	"strings"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// entryCodec reads one entry of a stream as it came.
func entryCodec(values map[string]any) codec {
	return codec{get: func(name string) string { return redis.Text(values[name]) }}
}

// EntryFields returns an entry of the journal by name, with the fields of its lists gone and now.
func EntryFields(values map[string]any) map[string]any {
	entry := maps.Clone(values)
	for name := range strings.FieldsSeq(redis.Text(values["gone"])) {
		entry[name] = ""
	}
	for name := range strings.FieldsSeq(redis.Text(values["now"])) {
		entry[name] = values["at"]
	}
	delete(entry, "gone")
	delete(entry, "now")
	return entry
}

// ReadJournalEntry reads an entry of the journal. An unreadable field gets the zero value.
func ReadJournalEntry(values map[string]any) (e model.JournalEntry) {
	c := entryCodec(EntryFields(values))
	c.text("uid", &e.UID)
	c.text("event", (*string)(&e.Event))
	c.time("at", &e.At)
	c.notes(&e)
	var m model.Model // only the changed fields, as the entry has them
	c.model(&m)
	e.AttemptUID, e.AttemptNo = cmp.Or(e.EndedUID, m.AttemptUID, m.LastAttemptUID), cmp.Or(e.EndedNo, m.AttemptNo)
	e.Freshness = m.Freshness
	e.About = cmp.Or(c.get("key"), c.get("signature"))
	e.RefreshAt, e.DeadlineAt, e.Why, e.DisabledReason = m.RefreshAt, m.DeadlineAt, m.Why, m.DisabledReason
	return e
}

// ReadNotification reads an entry of the outbox. An unreadable field gets the zero value.
func ReadNotification(values map[string]any) (n model.Notification) {
	c := entryCodec(values)
	c.text("uid", &n.UID)
	c.text("event", (*string)(&n.Notice))
	c.time("at", &n.At)
	c.number("attempt_no", &n.AttemptNo)
	c.text("reason", &n.Reason)
	c.text("error_type", &n.ErrorType)
	c.text("refresh_why", &n.Why)
	c.time("last_success_at", &n.LastSuccessAt)
	return n
}
