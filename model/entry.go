package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Entry is one attempt as it stands in the input list.
type Entry struct {
	UID        string    // the model
	AttemptUID string    // the fence
	AttemptNo  int       // 1 is the first run since the last success; 0: not told
	DeadlineAt time.Time // zero: not told
	PlannedAt  time.Time // the next planned refresh; zero: none

	fields map[string]json.RawMessage
}

// ParseEntry reads an entry of the input list. Only the two uids are required: producers other than refreshd may leave out the rest.
// With an error, what could be read is in the entry all the same.
func ParseEntry(raw string) (Entry, error) {
	var e Entry
	if err := json.Unmarshal([]byte(raw), &e.fields); err != nil || e.fields == nil {
		return e, fmt.Errorf("entry: expected a JSON object, found %s", document.Found(raw))
	}
	err := errors.Join(
		e.read("big_table_uid", &e.UID),
		e.read("refresh_attempt_uid", &e.AttemptUID),
		e.read("attempt_no", &e.AttemptNo),
		e.readTime("deadline_at", &e.DeadlineAt),
		e.readTime("planned_at", &e.PlannedAt),
	)
	switch {
	case err != nil:
		return e, err
	case e.UID == "":
		return e, errors.New("big_table_uid: expected the uid of a model, found nothing")
	case e.AttemptUID == "":
		return e, errors.New("refresh_attempt_uid: expected the uid of the attempt, found nothing")
	}
	return e, nil
}

// Payload is the model's own part of the entry: a JSON object.
func (e *Entry) Payload() json.RawMessage {
	payload := maps.Clone(e.fields)
	for _, name := range ReservedFields {
		delete(payload, name)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the & of a URL must stay one for programs that do not decode JSON
	_ = encoder.Encode(payload)  // what was decoded can be encoded
	return bytes.TrimSpace(text.Bytes())
}

func (e *Entry) read(name string, value any) error {
	raw, found := e.fields[name]
	if !found {
		return nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("%s: expected another kind of value, found %s", name, document.Found(string(raw)))
	}
	return nil
}

// readTime reads an RFC 3339 time; null and "" are absent.
func (e *Entry) readTime(name string, at *time.Time) error {
	var text string
	if err := e.read(name, &text); err != nil || text == "" {
		return err
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%s: expected an RFC 3339 time, found %s", name, document.Found(text))
	}
	*at = parsed.UTC()
	return nil
}
