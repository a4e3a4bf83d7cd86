package poller

import (
	"context"
	"errors"
	"time"

	"github.com/refreshd/refreshd/model/document"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// letter is one claimed message on its way through a round.
type letter struct {
	claimed scripts.Claimed
	uid     string         // of the model; empty when the message cannot be read
	message *model.Message // from a worker; nil: not one
	command *model.Command // from an application; nil: not one

	// What the pass decided: exactly one of the two.
	transition *scripts.Transition
	settlement *scripts.Settlement

	taken bool // the queued attempt that the command supersedes has been taken by a worker
	done  bool
}

func decode(claimed []scripts.Claimed) []*letter {
	letters := make([]*letter, len(claimed))
	for i, entry := range claimed {
		letters[i] = newLetter(entry)
	}
	return letters
}

func newLetter(claimed scripts.Claimed) *letter {
	l := &letter{claimed: claimed}
	if size, most, large := claimed.Large(); large {
		l.reject(model.CounterOversized, "expected at most "+most+" bytes, found "+size)
		return l
	}
	var err error
	if claimed.FromControl() {
		var command model.Command
		command, err = model.DecodeCommand([]byte(claimed.Raw()))
		l.command, l.uid = &command, command.UID
	} else {
		var message model.Message
		message, err = model.DecodeMessage([]byte(claimed.Raw()))
		l.message, l.uid = &message, message.UID
	}
	if err != nil {
		l.uid, l.message, l.command = "", nil, nil
		l.refuse(err)
	}
	return l
}

// refuse settles the letter as unusable.
func (l *letter) refuse(err error) {
	var rejection *model.Rejection
	if errors.As(err, &rejection) {
		l.reject(rejection.Counter, rejection.Reason)
		return
	}
	l.reject(model.CounterMalformed, err.Error())
}

func (l *letter) reject(counter, reason string) {
	l.transition = nil
	l.settlement = &scripts.Settlement{Claimed: l.claimed, Counter: counter, Reason: reason}
}

// count settles the letter as one that is known to change nothing.
func (l *letter) count(counter string) {
	l.settlement = &scripts.Settlement{Claimed: l.claimed, Counter: counter}
}

// open reads everything that the letters are about.
func (p *Poller) open(ctx context.Context, letters []*letter) (*scripts.Desk, error) {
	var uids []string
	var commands []*model.Command
	for _, letter := range letters {
		if letter.uid != "" {
			uids = append(uids, letter.uid)
		}
		if letter.command != nil {
			commands = append(commands, letter.command)
		}
	}
	return p.store.OpenDesk(ctx, uids, commands)
}

// decide turns the letter into a transition or a settlement. One that cannot be read was settled when it was read.
func (l *letter) decide(desk *scripts.Desk, now time.Time) {
	if l.uid == "" {
		return
	}
	l.transition, l.settlement = nil, nil
	if l.command != nil {
		l.obey(desk, now)
		return
	}
	record := desk.Records[l.uid]
	if !record.Exists {
		l.reject(string(model.UnknownModel), "big_table_uid: expected a stored model, found "+document.Found(l.uid))
		return
	}
	decision, outcome := record.Handle(*l.message, now)
	if outcome != model.Applied {
		l.count(string(outcome))
		return
	}
	l.apply(record.Decide(decision, now))
}

func (l *letter) apply(transition *scripts.Transition) {
	transition.Claimed = l.claimed.Entry
	l.transition = transition
}

func (l *letter) obey(desk *scripts.Desk, now time.Time) {
	transition, outcome, err := desk.Obey(l.command, !l.taken, now)
	switch {
	case err != nil:
		l.refuse(err)
	case outcome == model.Unchanged:
		l.count(string(outcome))
	case outcome == model.UnknownModel:
		l.reject(string(outcome), "uid: expected a stored model, found "+document.Found(l.uid))
	case outcome == model.Busy:
		l.reject(string(outcome), "run: expected an idle model, found an attempt queued or running; force supersedes it")
	default:
		l.apply(transition)
	}
}
