package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// MessageType names a worker's message about an attempt. docs/wire.md describes each.
type MessageType string

// The message types of the output list.
const (
	MessageSuccess     MessageType = "success"
	MessageFailure     MessageType = "failure"
	MessageStatus      MessageType = "user_friendly_status"
	MessageStarted     MessageType = "started"
	MessagePostponed   MessageType = "postponed"
	MessageInterrupted MessageType = "interrupted"
	MessageReady       MessageType = "ready"
)

// Message is one entry of the output list. Fields that the type does not use are ignored, as are unknown fields.
type Message struct {
	Type           MessageType
	UID            string             // the model
	AttemptUID     string             // the fence
	Changed        *bool              // success: whether the refresh found anything new
	Metrics        map[string]float64 // success and ready: its counts
	Unpublished    bool               // success: its worker has published nothing, as the verdict was
	ReplyTo        string             // ready: the list on which its worker waits for the verdict
	policy.Failure                    // failure and postponed
	// RetryAt is the wish of a worker that names an instant instead of a delay.
	RetryAt  time.Time
	Status   string // user_friendly_status: a text for the owner
	Progress *int   // user_friendly_status: 0-100 percent
	Worker   string // started: who works
	// SignsEvery is how often the worker gives a sign of life (started); 0: it does not say.
	SignsEvery time.Duration
	// Traceparent is the part of the trace of the attempt in which the work was done; empty: the worker does not say.
	Traceparent string
	Log         string // of a message that ends the attempt: its log, with its secrets: KeptLog masks them
	LogURL      string // the address of the rest
	// Ignored are the fields that cannot be used, in the order in which they are read. The rest of the message counts as if they were absent.
	Ignored []string
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
	counterNoUID       = "no_uid"
	counterUnknownType = "unknown_type"
	CounterOversized   = "oversized"
	CounterForwarded   = "forwarded" // commands that were passed on to the part of their model
)

// DecodeMessage reads one entry of the output list. Every error is a *Rejection; the message has the uid of the model if that can be read.
func (w Wire) DecodeMessage(raw []byte) (Message, error) {
	doc, err := decodeObject(raw)
	if err != nil {
		return Message{}, err
	}
	m := Message{Type: MessageType(doc.Text("type"))}
	m.readUIDs(doc, w)
	if doc.Err() != nil {
		return m, asRejection(doc.Err())
	}
	text, flag := func(doc *document.Reader, name string) string { return Masked(doc.Text(name)) }, (*document.Reader).Flag
	optional(&m, &m.Traceparent, doc, traceparentName, func(doc *document.Reader, name string) string {
		text := doc.Text(name)
		doc.Fail(validateTraceparent(text))
		return text
	})
	if m.Type != MessageStatus && m.Type != MessageStarted {
		optional(&m, &m.Log, doc, "log", (*document.Reader).Text)
		optional(&m, &m.LogURL, doc, "log_url", logURL)
	}
	switch m.Type {
	case MessageSuccess:
		optional(&m, &m.Changed, doc, "changed", flag)
		m.readMetrics(doc)
		var published *bool
		optional(&m, &published, doc, "published", flag)
		m.Unpublished = published != nil && !*published
	case MessageReady:
		m.ReplyTo = text(doc, "reply_to")
		m.readMetrics(doc)
		return m, asRejection(doc.Err())
	case MessageFailure:
		optional(&m, &m.Reason, doc, "reason", text)
		optional(&m, &m.ErrorType, doc, "error_type", text)
		optional(&m, &m.UserFriendlyReason, doc, "user_friendly_reason", text)
		optional(&m, &m.Retryable, doc, "retryable", flag)
		optional(&m, &m.ByServer, doc, "retry_after_by", func(doc *document.Reader, name string) bool { return doc.OneOf(name, "", ByServer) == ByServer })
		m.readRetryAfter(doc)
	case MessageStatus:
		optional(&m, &m.Status, doc, "status", text)
		optional(&m, &m.Progress, doc, "progress", func(doc *document.Reader, name string) *int {
			percent, found := doc.Number(name, 0, 100)
			if progress := int(percent); found {
				return &progress
			}
			return nil
		})
	case MessageStarted:
		optional(&m, &m.Worker, doc, "worker", text)
		if m.Worker == "" && doc.Fields["processing_id"] != nil {
			optional(&m, &m.Worker, doc, "processing_id", func(doc *document.Reader, name string) string {
				text, _ := doc.Scalar(name)
				return Masked(text)
			})
		}
		m.readSignsEvery(doc)
	case MessagePostponed:
		if doc.Fields[fieldRetryAfter] != nil {
			m.readRetryAfter(doc)
		} else {
			m.Ignored = append(m.Ignored, fieldRetryAfter)
		}
	case MessageInterrupted:
	default:
		return m, unknownType(m.Type, MessageSuccess, MessageFailure, MessageStatus, MessageStarted, MessagePostponed, MessageInterrupted, MessageReady)
	}
	return m, nil
}

func asRejection(err error) error {
	if _, is := errors.AsType[*Rejection](err); is || err == nil {
		return err
	}
	return &Rejection{CounterMalformed, err}
}

func decodeObject(raw []byte) (*document.Reader, error) {
	refuse := func(want, found string) (*document.Reader, error) {
		return nil, &Rejection{CounterMalformed, document.Refuse("", want, found)}
	}
	value, _ := document.Decode(raw, "policy")
	if fields, is := value.(map[string]any); is {
		return &document.Reader{Fields: fields}, nil
	}
	if !utf8.Valid(raw) {
		return refuse("a JSON object in UTF-8", document.Found(Masked(string(raw))))
	}
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&map[string]any{}) == nil && !json.Valid(raw) {
		return refuse("one JSON object", "more behind it")
	}
	return refuse("a JSON object", document.Found(Masked(string(raw))))
}

func unknownType[T ~string](found T, known ...T) error {
	names := make([]string, len(known))
	for i, name := range known {
		names[i] = string(name)
	}
	return &Rejection{counterUnknownType, document.Refuse("type", strings.Join(names, ", "), document.Found(Masked(string(found))))}
}

// readUIDs reads both uids. A payload may use the names that are not the queue's own, so those are read only where the own ones are absent.
func (m *Message) readUIDs(doc *document.Reader, wire Wire) {
	stands := func(name string) bool { return doc.Fields[name] != nil }
	models := wire.modelNames()
	if at := slices.IndexFunc(models, stands); at >= 0 {
		models = models[:at+1]
	}
	attempts, own := wire.attemptNames()
	if slices.ContainsFunc(attempts[:own], stands) {
		attempts = attempts[:own]
	}
	m.UID = agreed(doc, models, "the uid of a model")
	m.AttemptUID = agreed(doc, attempts, "the uid of the attempt")
}

// agreed reads a uid that may have several names. With an error, the first one found is returned all the same.
func agreed(doc *document.Reader, names []string, what string) (uid string) {
	one, at := document.Reader{Fields: doc.Fields}, ""
	for _, name := range names {
		switch text := one.Text(name); {
		case one.Err() != nil:
		case uid == "":
			uid, at = text, name
		case text != "" && text != uid:
			one.Fail(&Rejection{counterNoUID, document.Refuse(at, "the same uid as "+name, "another")})
		}
	}
	if uid == "" {
		one.Fail(&Rejection{counterNoUID, document.Refuse(names[0], what, "nothing")})
	}
	doc.Fail(one.Err())
	return uid
}

// optional reads a field, if it is there; one that cannot be used is listed in Ignored.
func optional[T any](m *Message, place *T, doc *document.Reader, name string, read func(doc *document.Reader, name string) T) {
	if doc.Fields[name] == nil {
		return
	}
	one := document.Reader{Fields: doc.Fields}
	value := read(&one, name)
	if one.Err() != nil {
		m.Ignored = append(m.Ignored, name)
		return
	}
	*place = value
}

const fieldRetryAfter = "retry_after"

// ByServer marks a failure whose retry_after was read from a header of a server, in the field retry_after_by.
const ByServer = "server"

func (m *Message) readRetryAfter(doc *document.Reader) {
	optional(m, &m.RetryAfter, doc, fieldRetryAfter, func(doc *document.Reader, name string) time.Duration {
		text, found := doc.Scalar(name)
		if !found {
			return 0
		}
		for _, layout := range instantLayouts {
			if at, err := time.Parse(layout, text); err == nil && !at.IsZero() {
				m.RetryAt = at.UTC().Truncate(time.Millisecond)
				return 0
			}
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if m.ByServer { // its policy bounds it, so that it is never too long
			seconds = min(seconds, maxRetryAfter.Seconds())
		}
		if err == nil && seconds >= 0 && seconds <= maxRetryAfter.Seconds() {
			return time.Duration(seconds * float64(time.Second)).Truncate(time.Millisecond)
		}
		wait := doc.Length(name, 0)
		if wait > maxRetryAfter {
			doc.Refuse(name, "at most a year", document.Found(text))
		}
		return wait
	})
}

func (m *Message) readSignsEvery(doc *document.Reader) {
	const name = "signs_every"
	optional(m, &m.SignsEvery, doc, name, func(doc *document.Reader, name string) time.Duration {
		every := doc.LengthWithin(name, 0, document.MaxDuration)
		doc.Require(doc.Fields[name] == nil || every > 0, name, "a duration above zero")
		return every
	})
}

// instantLayouts are RFC 3339 and the forms of Retry-After (RFC 9110).
var instantLayouts = []string{time.RFC3339, "Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

const maxRetryAfter = 365 * 24 * time.Hour

// Outcome names how a message was received when it changed nothing.
type Outcome string

// The outcomes. Applied is the only one that comes with a decision to write.
const (
	Applied      Outcome = ""
	Stale        Outcome = "stale"         // the uid is not the one of the running attempt
	Duplicate    Outcome = "duplicate"     // the uid is of the last ended attempt, not superseded, or `started` was said before; unless EventLate
	UnknownModel Outcome = "unknown_model" // no such model
	Unchanged    Outcome = "unchanged"     // a save that changes nothing
	Busy         Outcome = "busy"          // run-now while an attempt is queued or running
	Stopped      Outcome = "stopped"       // run-now of a model that was disabled by hand
	Already      Outcome = "already"       // a bulk run of a model that was started since the bulk began
	Broken       Outcome = "broken"        // a bulk met something else than a model
)

// Handle applies a worker's message to the model at now. Only the current attempt can change anything.
func (m *Model) Handle(message Message, now time.Time) (Decision, Outcome) {
	switch {
	case message.AttemptUID == "":
		return Decision{}, Stale // an idle model has no uid either: absent must never equal absent
	case message.AttemptUID != m.AttemptUID && message.AttemptUID == m.LastAttemptUID:
		return m.answerLate(message, now)
	case message.AttemptUID != m.AttemptUID:
		return Decision{}, Stale
	}
	if !message.RetryAt.IsZero() {
		message.RetryAfter = max(0, message.RetryAt.Sub(now))
	}
	m.Policy.Bound(&message.Failure)
	if message.RetryAfter > maxRetryAfter {
		message.RetryAfter, message.Ignored = 0, append(slices.Clip(message.Ignored), fieldRetryAfter)
	}
	if message.Type == MessagePostponed && slices.Contains(message.Ignored, fieldRetryAfter) { // it is tried again after a safe delay
		message.RetryAfter = safeDelay
	}
	var decision Decision
	switch message.Type {
	case MessageSuccess:
		decision = m.judge(message, now)
	case MessageFailure:
		decision = m.Fail(message.Failure, now)
	case MessagePostponed:
		decision = m.Postpone(message.RetryAfter, now)
	case MessageInterrupted:
		decision = m.deferAttempt(EventInterrupted, 0, "interrupted: again at once", now)
	case MessageReady:
		decision = m.ready(message, now)
	case MessageStarted:
		var begins bool
		if decision, begins = m.Begin(now, message.Worker); begins {
			m.expectSigns(&decision.Next, message.SignsEvery, now)
		} else if decision, begins = m.beginAgain(message.SignsEvery, now); !begins {
			return Decision{}, Duplicate
		}
	default:
		decision = m.sign(now)
		if message.Status != "" {
			decision.Next.UserFriendlyStatus = document.Shorten(message.Status, document.MaxText)
		}
		if message.Progress != nil {
			decision.Next.Progress = *message.Progress
		}
	}
	decision.Late = now.After(m.ExpiresAt()) && decision.Event != EventStatus
	decision.Ignored, decision.Traceparent = message.Ignored, message.Traceparent
	if ended := decision.Ended; ended != nil {
		ended.Ignored, ended.LogURL = message.Ignored, message.LogURL
		if m.KeepsLogs && message.Log != "" {
			decision.Log = KeptLog(message.Log)
			ended.LogBytes = len(decision.Log)
		}
	}
	return decision, Applied
}

// answerLate notes the first success of a timed-out attempt, if its history is known. Any other message about an ended attempt is a duplicate.
func (m *Model) answerLate(message Message, now time.Time) (Decision, Outcome) {
	late := message.Type == MessageSuccess && len(m.Past) > 0 && m.Past[0].AttemptUID == message.AttemptUID && m.Past[0].Outcome == EventTimeout
	if !late || m.Past[0].Late > 0 {
		return Decision{}, Duplicate
	}
	ended := m.Past[0]
	ended.Late = max(time.Millisecond, now.Sub(ended.EndedAt))
	return Decision{Event: EventLate, Next: m.State, Ended: &ended, Replaces: true}, Applied
}

const maxMasked = 8 << 10 // bytes of a text in which secrets are looked for, far more than is kept of any

// Masked is a text of a worker, other than its log, without secrets. It may have been cut before.
func Masked(text string) string {
	if len(text) > maxMasked {
		text = document.Shorten(text, maxMasked)
	}
	return mask(text)
}
