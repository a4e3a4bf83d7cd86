package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Entry is one attempt in the input list.
type Entry struct {
	UID        string    // the model
	AttemptUID string    // the fence
	AttemptNo  int       // 1 is the first run since the last success; 0: unknown
	DeadlineAt time.Time // zero: unknown
	PlannedAt  time.Time // the next planned refresh; zero: none
	DueAt      time.Time // the time that the attempt is for; zero: unknown, like Purpose and Fence
	Purpose    Purpose
	Fence      int64 // grows with each attempt of the model
	Deaths     int   // so many workers have died over it
	// Traceparent is the part of a trace that the attempt belongs to; empty: none, or none that can be read.
	Traceparent string

	fields map[string]json.RawMessage
	wire   Wire
}

// ParseEntry reads an entry of the input list. Only the two uids are required, also under their default names. With an error, the entry has the
// fields that could be read.
func (w Wire) ParseEntry(raw string) (Entry, error) {
	e := Entry{wire: w.WithDefaults()}
	if err := json.Unmarshal([]byte(raw), &e.fields); err != nil || e.fields == nil {
		return e, fmt.Errorf("entry: expected a JSON object, found %s", document.Found(raw))
	}
	e.wire.ModelName, e.wire.AttemptName = e.nameOf(e.wire.ModelName, defaultModelName), e.nameOf(e.wire.AttemptName, defaultAttemptName)
	err := errors.Join(
		e.read(e.wire.ModelName, &e.UID),
		e.read(e.wire.AttemptName, &e.AttemptUID),
		e.read("attempt_no", &e.AttemptNo),
		e.readTime("deadline_at", &e.DeadlineAt),
		e.readTime("planned_at", &e.PlannedAt),
	)
	e.readFence()
	e.readDeaths()
	if e.read(traceparentName, &e.Traceparent) != nil || validateTraceparent(e.Traceparent) != nil {
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

// nameOf falls back to the other name if only that one is present.
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
	names := flat.reserved()
	if e.Fence != 0 {
		names = append(names, fenceNames...)
	}
	if e.Deaths != 0 {
		names = append(names, deathsName)
	}
	for _, name := range names {
		delete(payload, name)
	}
	text, _ := plainJSON(payload) // a decoded value can be encoded
	return text
}

// plainJSON leaves the & of a URL one, for programs that do not decode JSON.
func plainJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
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

// readFence reads the three fields together or none: else they belong to a payload that had such a name before it was reserved.
func (e *Entry) readFence() {
	var fence int64
	var purpose Purpose
	var dueAt time.Time
	err := errors.Join(json.Unmarshal(e.fields["fence"], &fence), json.Unmarshal(e.fields["for"], &purpose), json.Unmarshal(e.fields["due_at"], &dueAt))
	if err == nil && fence > 0 && purpose != "" {
		e.Fence, e.Purpose, e.DueAt = fence, purpose, dueAt.UTC()
	}
}

// readDeaths leaves a payload alone that had the name before it was reserved: refreshd writes no fence into its entries.
func (e *Entry) readDeaths() {
	var deaths int
	ours := e.Fence != 0 || e.AttemptNo == 0 // an entry without a number is of another producer
	if json.Unmarshal(e.fields[deathsName], &deaths) == nil && deaths > 0 && ours {
		e.Deaths = deaths
	}
}

// Purpose is the reason for an attempt, for its worker.
type Purpose string

// The purposes.
const (
	ForPlanned Purpose = "planned" // a planned refresh
	ForRetry   Purpose = "retry"   // a retry after a failure
	ForRun     Purpose = "run"     // somebody runs the model, alone or with others
	ForChange  Purpose = "change"  // somebody has saved the model
)

func (m *Model) purpose(s *State) Purpose {
	oneShot := m.Rule == "" && s.EntryPlannedAt.IsZero() // not m.OneShot: the rule of a policy may change while the entry is in the list
	switch {
	case s.Trigger == TriggerHand, s.Trigger == TriggerRun:
		return ForRun
	case s.Trigger == TriggerRetry, s.Trigger == TriggerDeferred && s.AttemptNo > 1:
		return ForRetry
	case s.Trigger == TriggerChange, oneShot:
		return ForChange
	default:
		return ForPlanned
	}
}

// Entry renders the entry of the running attempt for the input list; empty: none is running. It follows byte for byte from the state and the queue,
// because an entry is taken back by its value.
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
	if m.Wire.Nested || !namesFence(m.Payload) {
		text = strconv.AppendInt(append(text, `","fence":`...), s.Fence, 10)
		if s.kills() {
			text = strconv.AppendInt(append(text, `,"deaths":`...), int64(s.Deaths), 10)
		}
		text = append(append(text, `,"due_at":"`...), FormatTime(s.EntryDueAt)...)
		text = append(append(text, `","for":"`...), m.purpose(s)...)
	}
	if m.ReplyTo != "" {
		text = append(text, `","reply_to":"`+m.ReplyTo...) // the name of a queue has nothing that JSON escapes
	}
	if s.Traced {
		text = append(text, `","traceparent":"`+Traceparent(s.AttemptUID, SpanSchedule)...)
	}
	return string(append(text, `"}`...))
}

// canonicalPayload sorts keys and drops spaces, so that equal payloads are equal texts.
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
	payload, err := plainJSON(fields)
	switch {
	case err != nil:
		return "", document.Refuse("payload", "values that JSON can hold", err.Error())
	case len(payload) > maxPayload:
		return "", document.Refuse("payload", fmt.Sprintf("at most %d bytes of JSON", maxPayload), fmt.Sprintf("%d", len(payload)))
	default:
		return string(payload), nil
	}
}

// maxPayload bounds a payload in bytes: each attempt carries it through the input list.
const maxPayload = 64 << 10

// maxDepth bounds nesting: many JSON readers give up at some depth.
const maxDepth = 100

// checkValue refuses values that many JSON readers cannot read.
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

// TraceID is the id of the trace of an attempt, 32 hexadecimal digits. It follows from the uid of the attempt: so others can add to the trace.
func TraceID(attemptUID string) string {
	sum := sha256.Sum256([]byte(attemptUID))
	return hex.EncodeToString(sum[:16])
}

// SpanID is the id of a part of that trace, 16 hexadecimal digits.
func SpanID(attemptUID, part string) string {
	sum := sha256.Sum256([]byte(attemptUID + " " + part))
	return hex.EncodeToString(sum[:8])
}

// The parts of a trace.
const (
	SpanSchedule = "schedule" // from refresh_at to the start: the root
	SpanWait     = "wait"     // from the start until a worker begins
	SpanRun      = "run"      // the work
	SpanApply    = "apply"    // from when a poller has the result until it is applied
)

// Traceparent is a part of the trace of an attempt, as in W3C Trace Context.
func Traceparent(attemptUID, part string) string {
	return "00-" + TraceID(attemptUID) + "-" + SpanID(attemptUID, part) + "-01"
}

var traceparentPattern = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// validateTraceparent accepts a traceparent of version 00, or nothing.
func validateTraceparent(text string) error {
	if text == "" || traceparentPattern.MatchString(text) {
		return nil
	}
	return document.Refuse(traceparentName, "a traceparent of W3C Trace Context", document.Found(text))
}

const traceparentName = "traceparent"

// SpanWithin is the span that a traceparent names; empty: it is none of the trace of that attempt.
func SpanWithin(traceparent, attemptUID string) string {
	found := traceparentPattern.FindStringSubmatch(traceparent)
	if found == nil || found[1] != TraceID(attemptUID) {
		return ""
	}
	return found[2]
}
