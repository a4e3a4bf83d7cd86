package poller

import (
	"context"
	"errors"
	"time"

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

// desk is what a pass needs to decide: the models of its letters as they were read, moving on with each decision.
type desk struct {
	records  map[string]*scripts.Record
	policies map[string]model.Policy
	queued   map[string]string // attempt uid to entry of the input list; only when a command may supersede one
}

// open reads everything that the letters are about, and stores the inline policies that they bring.
func (p *Poller) open(ctx context.Context, letters []*letter) (*desk, error) {
	var uids, names []string
	supersedes := false
	for _, letter := range letters {
		if letter.uid == "" {
			continue
		}
		uids = append(uids, letter.uid)
		if letter.command == nil {
			continue
		}
		supersedes = supersedes || letter.command.Supersedes()
		if letter.command.Type != model.CommandPut {
			continue
		}
		names = append(names, letter.command.Definition.PolicyName)
		if inline := letter.command.Definition.Inline; inline != nil {
			if err := p.store.SavePolicy(ctx, *inline); err != nil {
				return nil, err
			}
		}
	}
	desk := &desk{}
	var err error
	if desk.records, err = p.store.Load(ctx, uids); err != nil {
		return nil, err
	}
	if desk.policies, err = p.store.Policies(ctx, names); err != nil {
		return nil, err
	}
	if supersedes {
		desk.queued, err = p.store.Queued(ctx)
	}
	return desk, err
}

// decide turns the letter into a transition or a settlement.
func (d *desk) decide(l *letter, now time.Time) {
	l.transition = nil
	if l.uid == "" {
		return // settled when it was read
	}
	l.settlement = nil
	record := d.records[l.uid]
	if l.command != nil {
		d.obey(l, record, now)
		return
	}
	if !record.Exists {
		l.reject(string(model.UnknownModel), "big_table_uid: expected a stored model, found "+model.Found(l.uid))
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

func (d *desk) obey(l *letter, record *scripts.Record, now time.Time) {
	policy, known := d.policies[l.command.Definition.PolicyName]
	if l.command.Type == model.CommandPut && !known {
		l.reject(model.CounterMalformed, "policy: expected the name of a stored policy, found "+model.Found(l.command.Definition.PolicyName))
		return
	}
	entry := d.queued[record.AttemptUID]
	decision, outcome, err := record.Obey(*l.command, policy, record.Exists, now)
	switch {
	case err != nil:
		l.refuse(err)
	case outcome == model.Unchanged:
		l.count(string(outcome))
	case outcome == model.UnknownModel:
		l.reject(string(outcome), "uid: expected a stored model, found "+model.Found(l.uid))
	case outcome == model.Busy:
		l.reject(string(outcome), "run: expected an idle model, found an attempt queued or running; force supersedes it")
	default:
		l.apply(record.Decide(decision, now))
		if l.command.Supersedes() && !l.taken {
			l.transition.TakeBack = entry
		}
	}
}
