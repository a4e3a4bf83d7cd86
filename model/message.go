package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// MessageType names what a worker says about an attempt. docs/wire.md describes each.
type MessageType string

// The message types of the output list.
const (
	MessageSuccess     MessageType = "success"
	MessageFailure     MessageType = "failure"
	MessageStatus      MessageType = "user_friendly_status"
	MessageStarted     MessageType = "started"
	MessagePostponed   MessageType = "postponed"
	MessageInterrupted MessageType = "interrupted"
)

// Message is one entry of the output list. Fields that the type does not use are ignored, as are unknown fields.
type Message struct {
	Type           MessageType
	UID            string // the model
	AttemptUID     string // the fence
	Changed        *bool  // success: whether the refresh found anything new
	policy.Failure        // failure and postponed
	// RetryAt is the wish of a worker that names an instant instead of a delay.
	RetryAt  time.Time
	Status   string // user_friendly_status: a text for the owner
	Progress *int   // user_friendly_status: 0-100 percent
	Worker   string // started: who works
}

// Rejection says why a message cannot be handled and under which counter that is filed.
type Rejection struct {
	Counter string // malformed, no_uid, unknown_type or oversized
	Err     error  // mostly a *document.Error
}

func (r *Rejection) Error() string { return r.Err.Error() }

func (r *Rejection) Unwrap() error { return r.Err }

// The counters of messages that cannot be handled.
const (
	CounterMalformed   = "malformed"
	CounterNoUID       = "no_uid"
	CounterUnknownType = "unknown_type"
	CounterOversized   = "oversized"
	CounterForwarded   = "forwarded" // commands that were passed on to the part of their model
)

// DecodeMessage reads one entry of the output list. Every error is a *Rejection.
func DecodeMessage(raw []byte) (Message, error) {
	doc, err := decodeObject(raw)
	if err != nil {
		return Message{}, err
	}
	message, err := readMessage(doc)
	return message, asRejection(err)
}

// asRejection files a refused field under malformed; a *Rejection passes unchanged.
func asRejection(err error) error {
	var rejection *Rejection
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rejection):
		return rejection
	default:
		return &Rejection{CounterMalformed, err}
	}
}

// decodeObject reads raw as exactly one JSON object; numbers keep their digits.
func decodeObject(raw []byte) (document.Object, error) {
	if !utf8.Valid(raw) {
		return document.Object{}, &Rejection{CounterMalformed, document.Refuse("", "a JSON object in UTF-8", document.Found(string(raw)))}
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil || fields == nil {
		return document.Object{}, &Rejection{CounterMalformed, document.Refuse("", "a JSON object", document.Found(string(raw)))}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return document.Object{}, &Rejection{CounterMalformed, document.Refuse("", "one JSON object", "more behind it")}
	}
	return document.Object{Fields: fields}, nil
}

func readMessage(doc document.Object) (Message, error) {
	var message Message
	err := cmp.Or(into((*string)(&message.Type), doc.Text, "type"), message.readUIDs(doc))
	if err != nil {
		return message, err
	}
	switch message.Type {
	case MessageSuccess:
		message.Changed, err = doc.Flag("changed")
	case MessageFailure:
		err = message.readFailure(doc)
	case MessageStatus:
		err = message.readStatus(doc)
	case MessageStarted:
		err = message.readStarted(doc)
	case MessagePostponed:
		err = message.readPostponed(doc)
	case MessageInterrupted:
	default:
		err = unknownType(message.Type, MessageSuccess, MessageFailure, MessageStatus, MessageStarted, MessagePostponed, MessageInterrupted)
	}
	return message, err
}

func unknownType[T ~string](found T, known ...T) error {
	names := make([]string, len(known))
	for i, name := range known {
		names[i] = string(name)
	}
	return &Rejection{CounterUnknownType, document.Refuse("type", strings.Join(names, ", "), document.Found(string(found)))}
}

// into reads a field into its place. Several such reads stand in a cmp.Or: all of them run, and the first error counts.
func into[T any](place *T, read func(name string) (T, error), name string) (err error) {
	*place, err = read(name)
	return err
}

// readUIDs reads the model and the fence. The fence may come under either of two names; a missing, empty or contradicting
// one is an error, and is never compared.
func (m *Message) readUIDs(doc document.Object) error {
	var request, refresh string
	err := cmp.Or(
		into(&m.UID, doc.Text, "big_table_uid"),
		into(&request, doc.Text, "request_attempt_uid"),
		into(&refresh, doc.Text, "refresh_attempt_uid"),
	)
	m.AttemptUID = max(request, refresh)
	switch {
	case err != nil:
	case m.UID == "":
		err = &Rejection{CounterNoUID, document.Refuse("big_table_uid", "the uid of a model", "nothing")}
	case request == "" && refresh == "":
		err = &Rejection{CounterNoUID, document.Refuse("refresh_attempt_uid", "the uid of the attempt", "nothing")}
	case request != "" && refresh != "" && request != refresh:
		err = &Rejection{CounterNoUID, document.Refuse("refresh_attempt_uid", "the same uid as request_attempt_uid", "another")}
	}
	return err
}

func (m *Message) readFailure(doc document.Object) error {
	return cmp.Or(
		into(&m.Reason, doc.Text, "reason"),
		into(&m.ErrorType, doc.Text, "error_type"),
		into(&m.UserFriendlyReason, doc.Text, "user_friendly_reason"),
		into(&m.Retryable, doc.Flag, "retryable"),
		m.readRetryAfter(doc),
	)
}

// readRetryAfter accepts seconds, any duration text, or an RFC 3339 time.
func (m *Message) readRetryAfter(doc document.Object) error {
	text, found, err := doc.Scalar("retry_after")
	if err != nil || !found {
		return err
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		m.RetryAt = at.UTC().Truncate(time.Millisecond)
		return nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err == nil && seconds >= 0 && seconds <= maxRetryAfter.Seconds() {
		m.RetryAfter = time.Duration(seconds * float64(time.Second)).Truncate(time.Millisecond)
		return nil
	}
	if m.RetryAfter, err = document.ParseDuration(text); err != nil || m.RetryAfter > maxRetryAfter {
		return document.Refuse("retry_after", "seconds, a duration or an RFC 3339 time, at most a year", document.Found(text))
	}
	return nil
}

// maxRetryAfter bounds how far a worker may push its model into the future.
const maxRetryAfter = 365 * 24 * time.Hour

// wait is how long after now the worker wants the next attempt at the earliest.
func (m *Message) wait(now time.Time) time.Duration {
	if m.RetryAt.IsZero() {
		return m.RetryAfter
	}
	return min(max(0, m.RetryAt.Sub(now)), maxRetryAfter)
}

func (m *Message) readStatus(doc document.Object) (err error) {
	if m.Status, err = doc.Text("status"); err != nil {
		return err
	}
	text, found, err := doc.Scalar("progress")
	if err != nil || !found || doc.Fields["progress"] == nil {
		return err
	}
	percent, err := strconv.ParseFloat(text, 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return document.Refuse("progress", "a number from 0 to 100", document.Found(text))
	}
	progress := int(percent)
	m.Progress = &progress
	return nil
}

func (m *Message) readStarted(doc document.Object) (err error) {
	if m.Worker, err = doc.Text("worker"); err != nil || m.Worker != "" {
		return err
	}
	if doc.Fields["processing_id"] == nil {
		return nil
	}
	m.Worker, _, err = doc.Scalar("processing_id")
	return err
}

func (m *Message) readPostponed(doc document.Object) error {
	if doc.Fields["retry_after"] == nil {
		return document.Refuse("retry_after", "seconds, a duration or an RFC 3339 time", "nothing")
	}
	return m.readRetryAfter(doc)
}

// Outcome names how a message was received when it changed nothing.
type Outcome string

// The outcomes. Applied is the only one that comes with a decision to write.
const (
	Applied      Outcome = ""
	Stale        Outcome = "stale"         // the uid is not that of the running attempt
	Duplicate    Outcome = "duplicate"     // the uid is that of the attempt that ended last, or `started` was said before
	UnknownModel Outcome = "unknown_model" // no such model
	Unchanged    Outcome = "unchanged"     // a save that changes nothing
	Busy         Outcome = "busy"          // run-now while an attempt is queued or running
	Stopped      Outcome = "stopped"       // run-now of a model that was disabled by hand
)

// Handle decides what a worker's message does to the model at now. Only the current attempt can change anything.
func (m *Model) Handle(message Message, now time.Time) (Decision, Outcome) {
	switch {
	case message.AttemptUID == "":
		return Decision{}, Stale // an idle model has no uid either: absent must never equal absent
	case message.AttemptUID != m.AttemptUID && message.AttemptUID == m.LastAttemptUID:
		return Decision{}, Duplicate
	case message.AttemptUID != m.AttemptUID:
		return Decision{}, Stale
	}
	var decision Decision
	switch message.Type {
	case MessageSuccess:
		decision = m.Succeed(now, message.Changed)
	case MessageFailure:
		failure := message.Failure
		failure.RetryAfter = message.wait(now)
		decision = m.Fail(failure, now)
	case MessagePostponed:
		decision = m.Postpone(message.wait(now), now)
	case MessageInterrupted:
		decision = m.Interrupt(now)
	case MessageStarted:
		var first bool
		if decision, first = m.Begin(now, message.Worker); !first {
			return Decision{}, Duplicate
		}
	default:
		decision = m.report(message)
	}
	decision.Late = now.After(m.DeadlineAt) && message.Type != MessageStatus
	return decision, Applied
}

// report stores what the owner may see while the attempt runs; it is no transition.
func (m *Model) report(message Message) Decision {
	decision := Decision{Event: EventStatus, Next: m.State}
	if message.Status != "" {
		decision.Next.UserFriendlyStatus = document.Shorten(message.Status, document.MaxText)
	}
	if message.Progress != nil {
		decision.Next.Progress = *message.Progress
	}
	return decision
}
