package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Entry renders the entry of the input list for the running attempt: the two uids, the payload beside them as the queue wants it, and
// fields that a worker may ignore. It follows from the state and the queue alone, byte for byte, because an entry is taken back by its value.
// Empty: no attempt is running.
func (m *Model) Entry() string { return m.entry(&m.State) }

func (m *Model) entry(s *State) string {
	if !s.Running() {
		return ""
	}
	text := make([]byte, 0, len(m.Payload)+256)
	wire := m.Wire.WithDefaults()
	text = append(text, `{"`+wire.ModelName+`":`+document.Quote(m.UID)+`,"`+wire.AttemptName+`":`+document.Quote(s.AttemptUID)...)
	if m.Wire.Nested {
		text = append(append(text, `,"payload":`...), cmp.Or(m.Payload, "{}")...)
	} else if fields := strings.TrimSuffix(strings.TrimPrefix(m.Payload, "{"), "}"); fields != "" {
		text = append(append(text, ','), fields...)
	}
	text = append(text, `,"attempt_no":`+strconv.Itoa(s.AttemptNo)+`,"deadline_at":"`+FormatTime(s.EntryDeadlineAt)...)
	if !s.EntryPlannedAt.IsZero() {
		text = append(text, `","planned_at":"`+FormatTime(s.EntryPlannedAt)...)
	}
	if m.ReplyTo != "" {
		text = append(text, `","reply_to":"`+m.ReplyTo...) // the name of a queue has nothing that JSON escapes
	}
	if s.Traced {
		text = append(text, `","traceparent":"`+Traceparent(s.AttemptUID, SpanSchedule)...)
	}
	return string(append(text, `"}`...))
}

// canonicalPayload renders a payload with sorted keys and no spaces, so that equal payloads are equal texts.
func canonicalPayload(value any) (string, error) {
	if value == nil {
		return "{}", nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return "", document.Refuse("payload", "an object", document.Found(value))
	}
	if err := checkValue(fields, "payload", maxDepth); err != nil {
		return "", err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return "", document.Refuse("payload", "values that JSON can hold", err.Error())
	}
	payload := strings.TrimSpace(text.String())
	if len(payload) > maxPayload {
		return "", document.Refuse("payload", fmt.Sprintf("at most %d bytes of JSON", maxPayload), fmt.Sprintf("%d", len(payload)))
	}
	return payload, nil
}

// maxPayload bounds a payload in bytes, because each attempt carries it through the input list and in the memory of a worker. What
// is larger belongs where the payload can point to.
const maxPayload = 64 << 10

// maxDepth is how deep a payload may be nested: many JSON readers, of workers in other languages too, give up at some depth.
const maxDepth = 100

// checkValue refuses what a worker could not read: values nested too deep, and numbers beyond a float64.
func checkValue(value any, field string, depth int) error {
	if depth == 0 {
		return document.Refuse("payload", fmt.Sprintf("values at most %d levels deep", maxDepth), "more")
	}
	switch v := value.(type) {
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return document.Refuse(field, "a number that a float64 can hold", document.Found(v))
		}
	case []any:
		for i, item := range v {
			if err := checkValue(item, fmt.Sprintf("%s[%d]", field, i), depth-1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := checkValue(v[name], field+"."+document.Shorten(name, document.MaxFound), depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}
