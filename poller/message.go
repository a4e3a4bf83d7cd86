package poller

import (
	"cmp"
	"errors"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// message is one inbound message on its way through a round: a result of a worker, or a command of an application.
type message struct {
	claimed store.Claimed
	result  *model.Message // nil: none
	command *model.Command // nil: none

	home *store.Keys // the part of the queue in which its model lives
	own  bool        // that is this part, or the message is about no model

	applied bool   // a command about the queue, which was applied: it is counted by its type
	taken   string // the attempt of its model that a worker was found to have

	// Why the message changes no model. An empty counter: it is still to be decided. No reason: it is only counted.
	counter string
	reason  error

	replies string // the name of the list on which its sender is told; empty: on none
	wire    model.Wire
}

func decode(claimed store.Claimed, queue Store) *message {
	m := &message{claimed: claimed, own: true}
	if size, most, large := claimed.Large(); large {
		m.counter, m.reason = model.CounterOversized, document.Refuse("", "at most "+most+" bytes", size)
		return m
	}
	var err error
	if claimed.FromControl() {
		m.command = new(model.Command)
		*m.command, err = model.DecodeCommand([]byte(claimed.Raw()))
		if m.command.ReplyTo != "" {
			var failed error
			m.replies, failed = queue.ReplyName(m.command.ReplyTo)
			err = cmp.Or(err, failed)
		}
	} else {
		m.result = new(model.Message)
		m.wire = queue.Wire()
		if *m.result, err = m.wire.DecodeMessage([]byte(claimed.Raw())); err == nil && m.result.Type == model.MessageReady {
			m.replies, err = queue.ReplyName(m.result.ReplyTo)
		}
	}
	if err != nil {
		m.counter, m.reason = refusal(err)
		return m
	}
	if m.command != nil && m.command.Type.OfQueue() {
		return m
	}
	m.home, m.own = queue.Home(m.uid())
	if m.command != nil && !m.own && !claimed.Numbered() { // it was claimed when nobody knew of parts
		m.own, m.counter = true, model.CounterMalformed
		m.reason = document.Refuse("uid", "a command for this part of the queue", "one for "+m.home.Queue)
	}
	return m
}

// refusal is where an unusable message is counted, and why it is unusable.
func refusal(err error) (counter string, reason error) {
	if rejection, is := errors.AsType[*model.Rejection](err); is {
		return rejection.Counter, rejection.Err
	}
	return model.CounterMalformed, err
}

// uid is the model that the message is about; empty: it cannot be read.
func (m *message) uid() string {
	switch {
	case m.command != nil:
		return m.command.UID
	case m.result != nil:
		return m.result.UID
	default:
		return ""
	}
}
