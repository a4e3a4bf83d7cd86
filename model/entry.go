package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
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
	// Traceparent is the part of a trace that the attempt belongs to; empty: it is not traced, or what stands there is none.
	Traceparent string

	fields map[string]json.RawMessage
	wire   Wire
}

// ParseEntry is Wire.ParseEntry of a queue that says nothing.
func ParseEntry(raw string) (Entry, error) { return Wire{}.ParseEntry(raw) }

// ParseEntry reads an entry of the input list. Only the two uids are required: producers other than refreshd may leave out the rest. What was
// pushed before the queue had names of its own is read too. With an error, what could be read is in the entry all the same.
func (w Wire) ParseEntry(raw string) (Entry, error) {
	e := Entry{wire: w.WithDefaults()}
	if err := json.Unmarshal([]byte(raw), &e.fields); err != nil || e.fields == nil {
		return e, fmt.Errorf("entry: expected a JSON object, found %s", document.Found(raw))
	}
	if strings.HasSuffix(raw, `,"v":1}`) { // of a release that numbered its contract
		delete(e.fields, "v")
	}
	e.wire.ModelName, e.wire.AttemptName = e.nameOf(e.wire.ModelName, defaultModelName), e.nameOf(e.wire.AttemptName, defaultAttemptName)
	err := errors.Join(
		e.read(e.wire.ModelName, &e.UID),
		e.read(e.wire.AttemptName, &e.AttemptUID),
		e.read("attempt_no", &e.AttemptNo),
		e.readTime("deadline_at", &e.DeadlineAt),
		e.readTime("planned_at", &e.PlannedAt),
	)
	if e.read(traceparentName, &e.Traceparent) != nil || ValidateTraceparent(e.Traceparent) != nil {
		e.Traceparent = ""
	}
	switch {
	case err != nil:
		return e, err
	case e.UID == "":
		return e, errors.New(e.wire.ModelName + ": expected the uid of a model, found nothing")
	case e.AttemptUID == "":
		return e, errors.New(e.wire.AttemptName + ": expected the uid of the attempt, found nothing")
	}
	return e, nil
}

// nameOf is the name under which a uid stands: that of the queue, unless only the other one stands there.
func (e *Entry) nameOf(name, other string) string {
	if _, found := e.fields[name]; !found && e.fields[other] != nil {
		return other
	}
	return name
}

// Payload is the model's own part of the entry: a JSON object.
func (e *Entry) Payload() json.RawMessage {
	if payload, found := e.fields[payloadName]; found && e.wire.Nested {
		return payload
	}
	payload := maps.Clone(e.fields)
	flat := e.wire
	flat.Nested = false
	for _, name := range flat.reserved() {
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
