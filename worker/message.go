package worker

import (
	"encoding/json"
	"fmt"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

type message struct {
	Type               model.MessageType  `json:"-"` // as the next two, encode writes it
	UID                string             `json:"-"`
	AttemptUID         string             `json:"-"`
	Changed            *bool              `json:"changed,omitempty"`
	Metrics            map[string]float64 `json:"metrics,omitempty"`
	Published          *bool              `json:"published,omitempty"`
	ReplyTo            string             `json:"reply_to,omitempty"`
	Reason             string             `json:"reason,omitempty"`
	ErrorType          string             `json:"error_type,omitempty"`
	Retryable          *bool              `json:"retryable,omitempty"`
	RetryAfter         any                `json:"retry_after,omitempty"`    // seconds, or a time
	RetryAfterBy       string             `json:"retry_after_by,omitempty"` // model.ByServer; empty: the worker
	UserFriendlyReason string             `json:"user_friendly_reason,omitempty"`
	Status             string             `json:"status,omitempty"`
	Progress           *int               `json:"progress,omitempty"`
	Worker             string             `json:"worker,omitempty"`
	SignsEvery         float64            `json:"signs_every,omitempty"` // seconds
	Traceparent        string             `json:"traceparent,omitempty"`
	Log                string             `json:"log,omitempty"`

	owner string // whose message it is
	entry string // in the taken list of owner
	ends  bool   // entry is removed with this message
}

// MaxText bounds every text of a message, in bytes; a longer one is cut.
const MaxText = 2000

// encode renders the message in the form of a queue.
func (m message) encode(wire model.Wire) string {
	for _, text := range []*string{&m.Reason, &m.ErrorType, &m.UserFriendlyReason, &m.Status, &m.Worker} {
		if len(*text) > MaxText {
			*text = document.Shorten(*text, MaxText)
		}
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode a message: %v", err)) // texts, numbers and flags only: cannot fail
	}
	wire = wire.WithDefaults()
	text := `{"type":"` + string(m.Type) + `","` + wire.ModelName + `":` + document.Quote(m.UID) + `,"` + wire.AttemptName + `":` + document.Quote(m.AttemptUID)
	if rest := string(encoded[1:]); rest != "}" {
		return text + "," + rest
	}
	return text + "}"
}

// outcome renders the result of a handler. Nil is success. Of two marks that contradict each other the outer one counts.
func (a *Attempt) outcome(err error) message {
	m := a.message(model.MessageSuccess)
	if _, held := factOf[withheld](err); held {
		m.Published, err = new(bool), nil
	}
	if err == nil {
		if a.unchanged.Load() {
			m.Changed = new(bool)
		}
		m.Metrics = a.counted()
		return m
	}
	if after, found := factOf[postponed](err); found {
		m.Type, m.RetryAfter = model.MessagePostponed, after.wish
		return m
	}
	m.Type, m.Reason = model.MessageFailure, err.Error()
	if text, found := factOf[toldReason](err); found {
		m.Reason = string(text)
	}
	if retry, found := factOf[retryable](err); found {
		m.Retryable = (*bool)(&retry)
	}
	if after, found := factOf[retryAfter](err); found {
		m.RetryAfter = after.wish
		if by, _ := factOf[byServer](err); bool(by) {
			m.RetryAfterBy = model.ByServer
		}
	}
	kind, _ := factOf[errorType](err)
	text, _ := factOf[ownerText](err)
	m.ErrorType, m.UserFriendlyReason = string(kind), string(text)
	return m
}
