package poller

import (
	"errors"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/scripts"
)

// message is one inbound message on its way through a round: a result of a worker, or a command of an application.
type message struct {
	claimed scripts.Claimed
	result  *model.Message // nil: none
	command *model.Command // nil: none

	home scripts.Keys // the part of the queue in which its model lives
	own  bool         // that is this part, or the message is about no model

	taken string // the attempt of its model that a worker was found to have

	// Why the message changes no model; an empty counter: it is still to be decided.
	counter, reason string
}

// decode reads a message of a queue.
func decode(claimed scripts.Claimed, queue Store) *message {
	m := &message{claimed: claimed, own: true}
	if size, most, large := claimed.Large(); large {
		m.counter, m.reason = model.CounterOversized, "expected at most "+most+" bytes, found "+size
		return m
	}
	var err error
	if claimed.FromControl() {
		m.command = new(model.Command)
		*m.command, err = model.DecodeCommand([]byte(claimed.Raw()))
	} else {
		m.result = new(model.Message)
		*m.result, err = queue.Wire().DecodeMessage([]byte(claimed.Raw()))
	}
	if err != nil {
		m.counter, m.reason = refusal(err)
		return m
	}
	m.home, m.own = queue.Home(m.uid())
	if m.command != nil && !m.own && !claimed.Numbered() { // it was claimed when nobody knew of parts
		m.own, m.counter, m.reason = true, model.CounterMalformed, "uid: expected a command for this part of the queue, found one for "+m.home.Queue()
	}
	return m
}

// refusal is where an unusable message is counted, and why it is unusable.
func refusal(err error) (counter, reason string) {
	var rejection *model.Rejection
	if errors.As(err, &rejection) {
		return rejection.Counter, rejection.Reason
	}
	return model.CounterMalformed, err.Error()
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

// subject is what can be read of whom the message is about, for the log: it may be unusable.
func (m *message) subject() (uid, attemptUID string) {
	switch {
	case m.command != nil:
		return m.command.UID, ""
	case m.result != nil:
		return m.result.UID, m.result.AttemptUID
	default:
		return "", ""
	}
}

// subjects are the models that messages are about, and the commands among the messages.
func subjects(messages []*message) (uids []string, commands []*model.Command) {
	for _, m := range messages {
		if m.counter != "" {
			continue
		}
		uids = append(uids, m.uid())
		if m.command != nil {
			commands = append(commands, m.command)
		}
	}
	return uids, commands
}

// decide turns the message into an item to commit.
func (m *message) decide(snapshot *scripts.Snapshot, now time.Time) scripts.Item {
	item := scripts.Item{Message: m.claimed, UID: m.uid(), Counter: m.counter, Reason: m.reason}
	if m.counter != "" {
		return item
	}
	record := snapshot.Records[item.UID]
	record.Taken = m.taken != "" && m.taken == record.AttemptUID
	var decision model.Decision
	var outcome model.Outcome
	var err error
	field := "uid"
	switch {
	case m.command != nil:
		decision, outcome, err = record.Execute(m.command, snapshot.Policies, record.Exists, now)
	case !record.Exists:
		field, outcome = record.Wire.WithDefaults().ModelName, model.UnknownModel
	default:
		decision, outcome = record.Handle(*m.result, now)
	}
	item.Counter = string(outcome)
	switch {
	case err != nil:
		item.Counter, item.Reason = refusal(err)
	case outcome == model.UnknownModel:
		item.Reason = field + ": expected a stored model, found " + document.Found(item.UID)
		if !m.own {
			item.Reason = field + ": expected in " + m.home.Output() + ", as reply_to said, found " + document.Found(item.UID)
		}
	case outcome == model.Busy:
		item.Reason = "run: expected an idle model, found an attempt queued or running; force supersedes it"
	case outcome == model.Stopped:
		item.Reason = "run: expected a model that was not disabled by hand, found one; enable it, or force the run"
	case outcome == model.Applied:
		item.Transition = record.Decide(decision, now)
	}
	return item
}
