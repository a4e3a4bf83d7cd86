package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Attempt is one run that was handed to this worker.
type Attempt struct {
	UID        string    // the model
	AttemptUID string    // the fence: what is written under it may be stale as soon as the context has ended
	AttemptNo  int       // 1 is the first run since the last success; 0: not told
	DeadlineAt time.Time // as it was when the attempt was taken; the context follows the deadline when it moves. Zero: not told
	PlannedAt  time.Time // the next planned refresh; zero: none
	// Payload is the model's own part of the entry: a JSON object.
	Payload json.RawMessage
	// Raw is the whole entry as it came.
	Raw string

	owner, entry string // where it stands in Redis; entry is Raw, which a handler may change
	unchanged    atomic.Bool
	status       *status // nil outside a pool
}

// Status tells the owner how far the work is. percent is 0 to 100; negative means unknown. It may be called as often as one
// likes, from any goroutine: only a few of them are told, but always the last.
func (a *Attempt) Status(text string, percent int) {
	if a.status == nil {
		return
	}
	m := a.message(model.MessageStatus)
	m.Status = text
	if percent >= 0 {
		progress := min(percent, 100)
		m.Progress = &progress
	}
	a.status.say(m)
}

// Unchanged makes the success that follows say that the refresh found nothing new.
func (a *Attempt) Unchanged() { a.unchanged.Store(true) }

func (a *Attempt) message(kind model.MessageType) message {
	return message{Type: kind, UID: a.UID, AttemptUID: a.AttemptUID, owner: a.owner}
}

// over makes a message the last one of the attempt: with it the entry leaves the taken list. Without a type nothing is told.
func (a *Attempt) over(m message) message {
	m.owner, m.entry, m.ends = a.owner, a.entry, true
	return m
}

// decodeAttempt reads an entry of the input list. Only the two uids are required: producers other than refreshd may leave out
// the rest.
func decodeAttempt(raw string) (*Attempt, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("entry: expected a JSON object, found %s", model.Found(raw))
	}
	a := &Attempt{Raw: raw, entry: raw}
	err := errors.Join(
		readField(fields, "big_table_uid", &a.UID),
		readField(fields, "refresh_attempt_uid", &a.AttemptUID),
		readField(fields, "attempt_no", &a.AttemptNo),
		readTime(fields, "deadline_at", &a.DeadlineAt),
		readTime(fields, "planned_at", &a.PlannedAt),
	)
	switch {
	case err != nil:
		return nil, err
	case a.UID == "":
		return nil, errors.New("big_table_uid: expected the uid of a model, found nothing")
	case a.AttemptUID == "":
		return nil, errors.New("refresh_attempt_uid: expected the uid of the attempt, found nothing")
	}
	return a, a.readPayload(fields)
}

func (a *Attempt) readPayload(fields map[string]json.RawMessage) error {
	for _, name := range model.ReservedFields {
		delete(fields, name)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the & of a URL must stay one for programs that do not decode JSON
	err := encoder.Encode(fields)
	a.Payload = bytes.TrimSpace(text.Bytes())
	return err
}

func readField(fields map[string]json.RawMessage, name string, value any) error {
	raw, found := fields[name]
	if !found {
		return nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("%s: expected another kind of value, found %s", name, model.Found(string(raw)))
	}
	return nil
}

// readTime reads an RFC 3339 time; null and "" are absent.
func readTime(fields map[string]json.RawMessage, name string, at *time.Time) error {
	var text string
	if err := readField(fields, name, &text); err != nil || text == "" {
		return err
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%s: expected an RFC 3339 time, found %s", name, model.Found(text))
	}
	*at = parsed.UTC()
	return nil
}
