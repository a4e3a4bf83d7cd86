package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model/document"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// queue is what it takes to carry out commands. *scripts.Store is one.
type queue interface {
	Now(ctx context.Context) (time.Time, error)
	OpenDesk(ctx context.Context, uids []string, commands []*model.Command) (*scripts.Desk, error)
	Apply(ctx context.Context, transitions []*scripts.Transition, owner string, maxQueued int, now time.Time) ([]scripts.Code, error)
}

// order is one command for one model, and what became of it.
type order struct {
	command model.Command
	// position says where in a file the command stands, down to a field of it; nil: it stands on the command line.
	position func(field string) string
	result   string // one of the results
	// refused says why nothing happened; nil: it was done, or there was nothing to do.
	refused error
	next    time.Time    // the refresh_at that follows
	saved   *model.Model // what a put made of the model; nil: nothing

	taken bool // the queued attempt that the command supersedes has been taken by a worker
	done  bool
}

// The results of a command.
const (
	resultCreated   = "created"
	resultUpdated   = "updated"
	resultUnchanged = "unchanged"
	resultRemoved   = "removed"
	resultRun       = "run"
	resultEnabled   = "enabled"
	resultDisabled  = "disabled"
	resultRefused   = "refused"
)

var resultOf = map[model.CommandType]string{
	model.CommandPut: resultUpdated, model.CommandRemove: resultRemoved, model.CommandRun: resultRun,
	model.CommandEnable: resultEnabled, model.CommandDisable: resultDisabled,
}

const (
	// batchSize is how many commands are decided and applied at once.
	batchSize = 200
	// maxPasses bounds how often a command is decided again because its model changed meanwhile.
	maxPasses = 50
)

func (o *order) refuse(err error) {
	o.result, o.refused, o.done = resultRefused, err, true
}

// problem is why the command was refused, with its position.
func (o *order) problem() string {
	var field *document.Error
	switch {
	case o.position == nil && o.command.UID == "":
		return o.refused.Error()
	case o.position == nil:
		return o.command.UID + ": " + o.refused.Error()
	case errors.As(o.refused, &field):
		return o.position(field.Field) + ": " + o.refused.Error()
	default:
		return o.position("") + ": " + o.refused.Error()
	}
}

// obey carries out orders, at most batchSize of them: it reads the models, lets package model decide, and applies all
// decisions in one script. What changed meanwhile is decided again. An error is trouble with Redis; it is then unknown which
// of the orders were carried out.
func obey(ctx context.Context, store queue, orders []*order) error {
	pending := slices.DeleteFunc(slices.Clone(orders), func(o *order) bool { return o.done })
	for range maxPasses {
		if len(pending) == 0 {
			return nil
		}
		var err error
		if pending, err = obeyOnce(ctx, store, pending); err != nil {
			return err
		}
	}
	for _, order := range pending {
		order.refuse(fmt.Errorf("expected the model to stand still for a moment, found it changed %d times", maxPasses))
	}
	return nil
}

// obeyOnce decides and applies orders and returns those to be decided again.
func obeyOnce(ctx context.Context, store queue, orders []*order) ([]*order, error) {
	now, err := store.Now(ctx)
	if err != nil {
		return nil, err
	}
	uids, commands := make([]string, len(orders)), make([]*model.Command, len(orders))
	for i, order := range orders {
		uids[i], commands[i] = order.command.UID, &order.command
	}
	desk, err := store.OpenDesk(ctx, uids, commands)
	if err != nil {
		return nil, err
	}
	var changing []*order
	var transitions []*scripts.Transition
	for _, order := range orders {
		if transition := order.decide(desk, now); transition != nil {
			changing, transitions = append(changing, order), append(transitions, transition)
		}
	}
	codes, err := store.Apply(ctx, transitions, "", 0, now)
	if err != nil {
		return nil, err
	}
	again := conclude(changing, codes)
	return slices.DeleteFunc(orders, func(o *order) bool {
		// What was decided on top of a refused decision falls with it.
		return !again[o.command.UID] || slices.Contains(changing, o) && o.done
	}), nil
}

// conclude notes what became of the transitions and returns the models whose commands must be decided again.
func conclude(changing []*order, codes []scripts.Code) map[string]bool {
	again := make(map[string]bool)
	for i, code := range codes {
		order := changing[i]
		switch code {
		case scripts.CodeApplied:
			order.done = true
		case scripts.CodeBroken:
			order.refuse(errors.New("expected the key of the model to hold a model, found something else"))
		case scripts.CodeTaken:
			order.taken = true
			again[order.command.UID] = true
		default:
			again[order.command.UID] = true
		}
	}
	return again
}

// decide settles the order or returns the transition that would carry it out.
func (o *order) decide(desk *scripts.Desk, now time.Time) *scripts.Transition {
	o.result, o.refused, o.done, o.saved = "", nil, false, nil
	record := desk.Records[o.command.UID]
	existed := record.Exists
	transition, outcome, err := desk.Obey(&o.command, !o.taken, now)
	switch {
	case err != nil:
		o.refuse(err)
	case outcome == model.UnknownModel:
		o.refuse(errUnknownModel)
	case outcome == model.Busy:
		o.refuse(errors.New("expected an idle model, found an attempt queued or running; --force supersedes it"))
	case outcome == model.Unchanged:
		o.result, o.done = resultUnchanged, true
	case o.command.Type == model.CommandPut && !existed:
		o.result = resultCreated
	default:
		o.result = resultOf[o.command.Type]
	}
	if o.refused == nil {
		o.next = record.RefreshAt // the record has moved on with the decision
	}
	if transition != nil && o.command.Type == model.CommandPut {
		saved := record.Model
		o.saved = &saved
	}
	return transition
}

var errUnknownModel = errors.New("expected the uid of a stored model, found none of that name")
