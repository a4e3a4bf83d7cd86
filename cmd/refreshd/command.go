package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// executor is what it takes to carry out commands. *scripts.Store is one.
type executor interface {
	Now(ctx context.Context) (time.Time, error)
	Read(ctx context.Context, uids []string, commands []*model.Command) (*scripts.Snapshot, error)
	Commit(ctx context.Context, batch scripts.Batch) ([]scripts.Code, error)
}

// request is one command for one model, and what became of it.
type request struct {
	command model.Command
	// position says where in a file the command stands, down to a field of it; nil: it stands on the command line.
	position func(field string) string
	result   string // one of the results
	// refused says why nothing happened; nil: it was done, or there was nothing to do.
	refused error
	next    time.Time    // the refresh_at that follows
	saved   *model.Model // what a put made of the model; nil: nothing
	taken   string       // the attempt of the model that a worker was found to have
	done    bool
}

// The results of a command.
const (
	resultCreated   = "created"
	resultUpdated   = "updated"
	resultUnchanged = "unchanged"
	resultRemoved   = "removed"
	resultRefused   = "refused"
)

var resultOf = map[model.CommandType]string{
	model.CommandPut: resultUpdated, model.CommandRemove: resultRemoved, model.CommandRun: "run",
	model.CommandEnable: "enabled", model.CommandDisable: "disabled",
}

const (
	// batchSize is how many commands are decided and applied at once.
	batchSize = 500
	// maxPasses bounds how often a command is decided again because its model changed meanwhile.
	maxPasses = 50
)

func (r *request) refuse(err error) {
	r.result, r.refused, r.done = resultRefused, err, true
}

// problem is why the command was refused, with its position.
func (r *request) problem() string {
	if r.position == nil {
		return r.command.UID + ": " + r.refused.Error()
	}
	return definitions.Document{Position: r.position}.At(r.refused).Error()
}

// sideBySide is how many parts of a queue are asked at a time.
const sideBySide = 4

// executeAll carries out requests, those of each part together and at most batchSize of them, and some parts side by side. An error is that
// of execute.
func executeAll(ctx context.Context, queue *scripts.Queue, requests []*request) error {
	if err := queue.RequireWhole(); err != nil && slices.ContainsFunc(requests, func(r *request) bool { return r.command.Type != model.CommandRemove }) {
		return err // a remove mends: the model may be in a part that is not its home
	}
	byPart := make(map[*scripts.Store][]*request)
	for _, request := range requests {
		part := queue.Of(request.command.UID)
		byPart[part] = append(byPart[part], request)
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(sideBySide)
	for part, requests := range byPart {
		parts.Go(func() error { return queue.PartError(part, execute(ctx, part, requests)) })
	}
	return parts.Wait()
}

// execute carries out requests, at most batchSize of them: it reads the models, lets package model decide, and commits all decisions in one
// script. What changed meanwhile is decided again. An error is a failure of Redis; it is then unknown which of the requests were carried
// out.
func execute(ctx context.Context, store executor, requests []*request) error {
	pending := slices.DeleteFunc(slices.Clone(requests), func(r *request) bool { return r.done })
	for range maxPasses {
		if len(pending) == 0 {
			return nil
		}
		if err := pass(ctx, store, pending); err != nil {
			return err
		}
		pending = slices.DeleteFunc(pending, func(r *request) bool { return r.done })
	}
	for _, request := range pending {
		request.refuse(fmt.Errorf("expected the model to stand still for a moment, found it changed %d times", maxPasses))
	}
	return nil
}

// pass decides and commits requests once. Those that are not done then are to be decided again.
func pass(ctx context.Context, store executor, requests []*request) error {
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	uids, commands := make([]string, len(requests)), make([]*model.Command, len(requests))
	for i, request := range requests {
		uids[i], commands[i] = request.command.UID, &request.command
	}
	snapshot, err := store.Read(ctx, uids, commands)
	if err != nil {
		return err
	}
	batch := scripts.Batch{Now: now}
	var changing []*request
	for _, request := range requests {
		if transition := request.decide(snapshot, now); transition != nil {
			changing, batch.Items = append(changing, request), append(batch.Items, scripts.Item{Transition: transition})
		}
	}
	codes, err := store.Commit(ctx, batch)
	if err != nil {
		return err
	}
	retry := make(map[string]bool)
	for i, code := range codes {
		switch request := changing[i]; {
		case code == scripts.CodeBroken:
			request.refuse(errors.New("expected the key of the model to hold a model, found something else"))
		case code.Retry():
			if code == scripts.CodeTaken {
				request.taken = batch.Items[i].Transition.AttemptUID()
			}
			retry[request.command.UID] = true
		default:
			request.done = true
		}
	}
	for _, request := range requests {
		// What changes nothing may have been decided on top of a refused decision, and falls with it.
		if retry[request.command.UID] && !slices.Contains(changing, request) {
			request.done = false
		}
	}
	return nil
}

// decide settles the request or returns the transition that would carry it out. It may be called again until the request is done.
func (r *request) decide(snapshot *scripts.Snapshot, now time.Time) *scripts.Transition {
	record := snapshot.Records[r.command.UID]
	existed := record.Exists
	record.Taken = r.taken != "" && r.taken == record.AttemptUID
	decision, outcome, err := record.Execute(&r.command, snapshot.Policies, existed, now)
	r.result, r.refused, r.saved = resultOf[r.command.Type], nil, nil
	switch {
	case err != nil:
		r.refuse(err)
	case outcome == model.UnknownModel:
		r.refuse(errUnknownModel)
	case outcome == model.Busy:
		r.refuse(errors.New("expected an idle model, found an attempt queued or running; --force supersedes it"))
	case outcome == model.Stopped:
		r.refuse(errors.New("expected a model that was not disabled by hand, found one; enable it, or run it with --force"))
	case outcome == model.Unchanged:
		r.result, r.next, r.done = resultUnchanged, record.RefreshAt, true
	case r.command.Type == model.CommandPut && !existed:
		r.result = resultCreated
	}
	if r.done {
		return nil
	}
	transition := snapshot.Apply(&r.command, decision, now)
	r.next = record.RefreshAt // the record has moved on with the decision
	if r.command.Type == model.CommandPut {
		r.saved = new(record.Model)
	}
	return transition
}

var errUnknownModel = errors.New("expected the uid of a stored model, found none of that name")
