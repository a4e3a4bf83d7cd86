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
	Read(ctx context.Context, uids []string, commands []*model.Command) (*scripts.Snapshot, error)
	Commit(ctx context.Context, batch scripts.Batch) ([]scripts.Code, error)
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
	done    bool
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

// execute carries out orders, at most batchSize of them: it reads the models, lets package model decide, and commits all decisions in one
// script. What changed meanwhile is decided again. An error is a failure of Redis; it is then unknown which of the orders were carried
// out.
func execute(ctx context.Context, store queue, orders []*order) error {
	pending := slices.DeleteFunc(slices.Clone(orders), func(o *order) bool { return o.done })
	for range maxPasses {
		if len(pending) == 0 {
			return nil
		}
		if err := pass(ctx, store, pending); err != nil {
			return err
		}
		pending = slices.DeleteFunc(pending, func(o *order) bool { return o.done })
	}
	for _, order := range pending {
		order.refuse(fmt.Errorf("expected the model to stand still for a moment, found it changed %d times", maxPasses))
	}
	return nil
}

// pass decides and commits orders once. Those that are not done then are to be decided again.
func pass(ctx context.Context, store queue, orders []*order) error {
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	uids, commands := make([]string, len(orders)), make([]*model.Command, len(orders))
	for i, order := range orders {
		uids[i], commands[i] = order.command.UID, &order.command
	}
	snapshot, err := store.Read(ctx, uids, commands)
	if err != nil {
		return err
	}
	batch := scripts.Batch{Now: now}
	var changing []*order
	for _, order := range orders {
		if transition := order.decide(snapshot, now); transition != nil {
			changing, batch.Items = append(changing, order), append(batch.Items, scripts.Item{Transition: transition})
		}
	}
	codes, err := store.Commit(ctx, batch)
	if err != nil {
		return err
	}
	retry := make(map[string]bool)
	for i, code := range codes {
		switch order := changing[i]; {
		case code == scripts.CodeBroken:
			order.refuse(errors.New("expected the key of the model to hold a model, found something else"))
		case code.Retry():
			retry[order.command.UID] = true
		default:
			order.done = true
		}
	}
	for _, order := range orders {
		// What changes nothing may have been decided on top of a refused decision, and falls with it.
		if retry[order.command.UID] && !slices.Contains(changing, order) {
			order.done = false
		}
	}
	return nil
}

// decide settles the order or returns the transition that would carry it out.
func (o *order) decide(snapshot *scripts.Snapshot, now time.Time) *scripts.Transition {
	o.result, o.refused, o.done, o.saved = "", nil, false, nil
	record := snapshot.Records[o.command.UID]
	existed := record.Exists
	transition, outcome, err := snapshot.Execute(&o.command, now)
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
