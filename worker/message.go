package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// message is one entry of the output list.
type message struct {
	Type               model.MessageType `json:"type"`
	UID                string            `json:"big_table_uid"`
	AttemptUID         string            `json:"refresh_attempt_uid"`
	Changed            *bool             `json:"changed,omitempty"`
	Reason             string            `json:"reason,omitempty"`
	ErrorType          string            `json:"error_type,omitempty"`
	Retryable          *bool             `json:"retryable,omitempty"`
	RetryAfter         any               `json:"retry_after,omitempty"` // seconds, or a time
	UserFriendlyReason string            `json:"user_friendly_reason,omitempty"`
	Status             string            `json:"status,omitempty"`
	Progress           *int              `json:"progress,omitempty"`
	Worker             string            `json:"worker,omitempty"`

	owner string // whose message it is
	entry string // what stands in the taken list of owner
	ends  bool   // entry is removed with this message
}

// answer is the message as Redis gets it.
func (m message) answer() scripts.Answer {
	answer := scripts.Answer{Ends: m.ends, Entry: m.entry}
	if m.Type != "" {
		answer.Message = m.encode()
	}
	return answer
}

// maxReason bounds every text of a message, in bytes.
const maxReason = 2000

func (m message) encode() string {
	for _, text := range []*string{&m.Reason, &m.ErrorType, &m.UserFriendlyReason, &m.Status, &m.Worker} {
		*text = bounded(*text, maxReason)
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode a message: %v", err)) // texts, numbers and flags only: cannot fail
	}
	return string(encoded)
}

// bounded cuts a text to most bytes, without leaving half a character.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// outcome renders what a handler returned. Nil is success.
func (a *Attempt) outcome(err error) message {
	m := a.message(model.MessageSuccess)
	if err == nil {
		m.Changed = a.changed()
		return m
	}
	var postponed *postponeError
	if errors.As(err, &postponed) {
		m.Type, m.RetryAfter = model.MessagePostponed, seconds(postponed.after)
		return m
	}
	m.Type = model.MessageFailure
	m.describe(err)
	return m
}

// describe collects what the wrappers around an error say; of two that contradict each other the outer one counts.
func (m *message) describe(err error) {
	m.Reason = err.Error()
	var (
		retryable *retryableError
		wait      *retryAfterError
		typed     *typedError
		friendly  *friendlyError
	)
	if errors.As(err, &retryable) {
		m.Retryable = &retryable.retryable
	}
	if errors.As(err, &wait) {
		m.RetryAfter = wait.wish()
	}
	if errors.As(err, &typed) {
		m.ErrorType = typed.kind
	}
	if errors.As(err, &friendly) {
		m.UserFriendlyReason = friendly.text
	}
}

func (e *retryAfterError) wish() any {
	if e.at.IsZero() {
		return seconds(e.after)
	}
	return model.FormatTime(e.at)
}

// seconds renders a wait in whole milliseconds.
func seconds(d time.Duration) json.Number {
	return json.Number(fmt.Sprintf("%.3f", d.Seconds()))
}
