package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Executor is what it takes to carry out commands. *store.Store is one.
type Executor interface {
	Now(ctx context.Context) (time.Time, error)
	Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error)
	Commit(ctx context.Context, batch store.Batch) ([]store.Code, error)
}

// Request is one command for one model, and what became of it.
type Request struct {
	Command model.Command
	// Position says where in a file the command stands, down to a field of it; nil: it stands on the command line.
	Position func(field string) string
	InWords  bool   // the rule of a put was written in English
	Result   string // one of the results
	// Refused says why nothing happened; nil: it was done, or there was nothing to do.
	Refused error
	Next    time.Time    // the refresh_at that follows
	Saved   *model.Model // what a put made of the model; nil: nothing
	taken   string       // the attempt of the model that a worker was found to have
	done    bool
}

// The results of a command.
const (
	ResultCreated   = "created"
	ResultUpdated   = "updated"
	ResultUnchanged = "unchanged"
	ResultRemoved   = "removed"
	ResultRefused   = "refused"
)

var resultOf = map[model.CommandType]string{
	model.CommandPut: ResultUpdated, model.CommandRemove: ResultRemoved, model.CommandRun: "run",
	model.CommandEnable: "enabled", model.CommandDisable: "disabled",
}

const (
	// BatchSize is how many commands are decided and applied at once.
	BatchSize = 500
	// MaxPasses bounds how often a command is decided again because its model changed meanwhile.
	MaxPasses = 50
)

// Refuse ends a request with a reason: nothing happened.
func (r *Request) Refuse(err error) {
	r.Result, r.Refused, r.done = ResultRefused, err, true
}

// Problem is why the command was refused, with its position.
func (r *Request) Problem() string {
	if r.Position == nil {
		return r.Command.UID + ": " + r.Refused.Error()
	}
	return definitions.Document{Position: r.Position}.At(r.Refused).Error()
}

// sideBySide is how many parts of a queue are asked at a time.
const sideBySide = 4

// ExecuteAll carries out requests, those of each part together and at most BatchSize of them, and some parts side by side. An error is that
// of Execute.
func ExecuteAll(ctx context.Context, queue *store.Queue, requests []*Request) error {
	if err := queue.RequireWhole(); err != nil && slices.ContainsFunc(requests, func(r *Request) bool { return r.Command.Type != model.CommandRemove }) {
		return err // a remove mends: the model may be in a part that is not its home
	}
	byPart := make(map[*store.Store][]*Request)
	for _, request := range requests {
		part := queue.Of(request.Command.UID)
		byPart[part] = append(byPart[part], request)
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(sideBySide)
	for part, requests := range byPart {
		parts.Go(func() error { return queue.PartError(part, Execute(ctx, part, requests)) })
	}
	return parts.Wait()
}

// Execute carries out requests, at most BatchSize of them: it reads the models, lets package model decide, and commits all decisions in one
// script. What changed meanwhile is decided again. An error is a failure of Redis; it is then unknown which of the requests were carried
// out.
func Execute(ctx context.Context, store Executor, requests []*Request) error {
	pending := slices.DeleteFunc(slices.Clone(requests), func(r *Request) bool { return r.done })
	for range MaxPasses {
		if len(pending) == 0 {
			return nil
		}
		if err := pass(ctx, store, pending); err != nil {
			return err
		}
		pending = slices.DeleteFunc(pending, func(r *Request) bool { return r.done })
	}
	for _, request := range pending {
		request.Refuse(fmt.Errorf("expected the model to stand still for a moment, found it changed %d times", MaxPasses))
	}
	return nil
}

// pass decides and commits requests once. Those that are not done then are to be decided again.
func pass(ctx context.Context, queue Executor, requests []*Request) error {
	now, err := queue.Now(ctx)
	if err != nil {
		return err
	}
	uids, commands := make([]string, len(requests)), make([]*model.Command, len(requests))
	for i, request := range requests {
		uids[i], commands[i] = request.Command.UID, &request.Command
	}
	snapshot, err := queue.Read(ctx, uids, commands)
	if err != nil {
		return err
	}
	batch := store.Batch{Now: now}
	var changing []*Request
	for _, request := range requests {
		if transition := request.decide(snapshot, now); transition != nil {
			changing, batch.Items = append(changing, request), append(batch.Items, store.Item{Transition: transition})
		}
	}
	codes, err := queue.Commit(ctx, batch)
	if err != nil {
		return err
	}
	retry := make(map[string]bool)
	for i, code := range codes {
		switch request := changing[i]; {
		case code == store.CodeBroken || code == store.CodeBlocked:
			request.Refuse(errors.New(batch.Items[i].Misfit))
		case code.Retry():
			if code == store.CodeTaken {
				request.taken = batch.Items[i].Transition.AttemptUID()
			}
			retry[request.Command.UID] = true
		default:
			request.done = true
		}
	}
	for _, request := range requests {
		// What changes nothing may have been decided on top of a refused decision, and falls with it.
		if retry[request.Command.UID] && !slices.Contains(changing, request) {
			request.done = false
		}
	}
	return nil
}

// decide settles the request or returns the transition that would carry it out. It may be called again until the Request is done.
func (r *Request) decide(snapshot *store.Snapshot, now time.Time) *store.Transition {
	record := snapshot.Records[r.Command.UID]
	existed := record.Exists
	record.Taken = r.taken != "" && r.taken == record.AttemptUID
	decision, outcome, err := record.Execute(&r.Command, snapshot.Policies, existed, now)
	r.Result, r.Refused, r.Saved = resultOf[r.Command.Type], nil, nil
	switch {
	case err != nil:
		r.Refuse(err)
	case outcome == model.UnknownModel:
		r.Refuse(explain.ErrUnknownModel)
	case outcome == model.Busy:
		r.Refuse(errors.New("expected an idle model, found an attempt queued or running; --force supersedes it"))
	case outcome == model.Stopped:
		r.Refuse(errors.New("expected a model that was not disabled by hand, found one; enable it, or run it with --force"))
	case outcome == model.Unchanged:
		r.Result, r.Next, r.done = ResultUnchanged, record.RefreshAt, true
	case r.Command.Type == model.CommandPut && !existed:
		r.Result = ResultCreated
	}
	if r.done {
		return nil
	}
	transition := snapshot.Apply(&r.Command, decision, now)
	r.Next = record.RefreshAt // the record has moved on with the decision
	if r.Command.Type == model.CommandPut {
		r.Saved = new(record.Model)
	}
	return transition
}
