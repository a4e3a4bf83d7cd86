package poller

import (
	"cmp"
	"errors"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// message is one inbound message on its way through a round: a result of a worker, or a command of an application.
type message struct {
	claimed store.Claimed
	result  *model.Message // nil: none
	command *model.Command // nil: none

	home store.Keys // the part of the queue in which its model lives
	own  bool       // that is this part, or the message is about no model

	steered bool // a command about the queue, which is carried out: it is counted by its type

	taken string // the attempt of its model that a worker was found to have

	// Why the message changes no model; an empty counter: it is still to be decided, and no reason: it is only counted.
	counter string
	reason  error

	replies string // the name of the list on which the sender of the command is told; empty: on none
}

// decode reads a message of a queue; its store tells how messages are written, where models live, and where commands are replied to.
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
		*m.result, err = queue.Wire().DecodeMessage([]byte(claimed.Raw()))
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
		m.reason = document.Refuse("uid", "a command for this part of the queue", "one for "+m.home.Queue())
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
	uid, _ := m.subject()
	return uid
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
func (m *message) decide(snapshot *store.Snapshot, now time.Time) store.Item {
	item, reason := store.Item{Message: m.claimed, UID: m.uid(), Counter: m.counter}, m.reason
	if m.counter == "" {
		reason = m.decideModel(&item, snapshot, now)
	}
	if reason != nil {
		item.Reason = reason.Error()
	}
	if m.command != nil && m.counter != model.CounterForwarded {
		m.reply(&item, reason, now)
	}
	return item
}

// reply lets the item note the id of its command, and tell the sender of that what became of it, if it asks for either.
func (m *message) reply(item *store.Item, reason error, now time.Time) {
	outcome := model.Outcome(item.Counter)
	if m.steered && outcome != model.Duplicate {
		outcome = model.Applied
	}
	if outcome != model.Duplicate { // a duplicate was noted when it was none
		item.CommandID = m.command.ID
	}
	if m.replies != "" {
		item.Reply = store.Reply{Name: m.replies, Text: m.command.Reply(outcome, reason, now)}
	}
}

// decideModel decides what the message does to its model. It returns why it cannot be handled; nil: it can, or is only counted.
func (m *message) decideModel(item *store.Item, snapshot *store.Snapshot, now time.Time) (reason error) {
	record := snapshot.Records[item.UID]
	record.Taken = m.taken != "" && m.taken == record.AttemptUID
	var decision model.Decision
	var outcome model.Outcome
	var err error
	field := "uid"
	switch {
	case record.Broken: // refused by the commit, which says what the key holds
		item.Transition = record.Mend()
		return nil
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
		item.Counter, reason = refusal(err)
	case outcome == model.UnknownModel && !m.own:
		reason = document.Refuse(field, "in "+m.home.Output()+", as reply_to said", document.Found(item.UID))
	case outcome == model.UnknownModel:
		reason = document.Refuse(field, "a stored model", document.Found(item.UID))
	case outcome == model.Busy:
		reason = document.Refuse("run", "an idle model", "an attempt queued or running; force supersedes it")
	case outcome == model.Stopped:
		reason = document.Refuse("run", "a model that was not disabled by hand", "one; enable it, or force the run")
	case outcome == model.Applied:
		item.Transition = record.Decide(decision, now)
	}
	return reason
}
