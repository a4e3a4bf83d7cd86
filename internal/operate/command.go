package operate

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Request is one command for one model, and its outcome.
type Request struct {
	Command model.Command
	// Position returns the place of the command in a file, or of a field of it; nil: the command line.
	Position func(field string) string
	// PriorDigest is the digest of the definition that the request replaces, see DefinitionDigest; empty: whatever is stored.
	PriorDigest string
	inWords     bool   // the rule of a put was written in English
	Result      string // one of the results
	// Refused says why nothing happened; nil: it was done, or nothing had to be done.
	Refused error
	Next    time.Time    // the refresh_at that follows
	Saved   *model.Model // the model after a put; nil: unchanged
	savedAt time.Time
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
	model.CommandAccept: "accepted", model.CommandReject: "rejected",
}

// verbs are the commands of refreshd, as deeds name them.
var verbs = map[model.CommandType]string{
	model.CommandPut: "model put", model.CommandRemove: "model rm", model.CommandRun: "model run", model.CommandEnable: "model enable",
	model.CommandDisable: "model disable", model.CommandAccept: "suspect accept", model.CommandReject: "suspect reject",
}

// BatchSize is how many commands are decided and applied at once.
const BatchSize = 500

func (r *Request) refuse(err error) { r.Result, r.Refused = ResultRefused, err }

func (r *Request) problem() string {
	if r.Position == nil {
		return r.Command.UID + ": " + r.Refused.Error()
	}
	return definitions.Document{Position: r.Position}.At(r.Refused).Error()
}

const sideBySide = 4

// Execute carries out requests, some parts at a time, and in batches of at most BatchSize.
func Execute(ctx context.Context, queue *store.Queue, requests []*Request) error {
	if err := queue.RequireWhole(); err != nil && slices.ContainsFunc(requests, func(r *Request) bool { return r.Command.Type != model.CommandRemove }) {
		return err // a remove mends: the model may be in a part that is not its home
	}
	byPart := store.ByPart(queue, requests, func(r *Request) string { return r.Command.UID })
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(sideBySide)
	for part, requests := range byPart {
		parts.Go(func() error { return queue.PartError(part, execute(ctx, part, requests)) })
	}
	return parts.Wait()
}

// execute carries out the requests of one part that are not refused, see store.Execute.
func execute(ctx context.Context, on store.Executor, requests []*Request) error {
	requests = slices.DeleteFunc(slices.Clone(requests), func(r *Request) bool { return r.Refused != nil })
	commands := redis.Map(requests, func(r *Request) *model.Command { return &r.Command })
	refused, err := store.Execute(ctx, on, commands, func(i int, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
		return requests[i].decide(snapshot, now)
	})
	for i, reason := range refused {
		if reason != nil {
			requests[i].refuse(reason)
		}
	}
	return err
}

// decide returns the transition of the request; nil: there is nothing to do.
func (r *Request) decide(snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
	record := snapshot.Records[r.Command.UID]
	existed := record.Exists
	if r.PriorDigest != "" && r.PriorDigest != DefinitionDigest(record) {
		return nil, errDefinitionChanged
	}
	decision, outcome, err := record.Execute(&r.Command, snapshot.Policies, existed, now)
	r.Result, r.Saved = resultOf[r.Command.Type], nil
	switch {
	case err != nil:
		return nil, err
	case outcome == model.UnknownModel:
		return nil, hint.For(explain.ErrUnknownModel, hint.FindModel, r.Command.UID)
	case outcome == model.Busy, outcome == model.Stopped:
		return nil, hint.RunRefused(outcome, &record.Model)
	case outcome == model.Unchanged:
		r.Result, r.Next = ResultUnchanged, record.RefreshAt
		return nil, nil
	case r.Command.Type == model.CommandPut && !existed:
		r.Result = ResultCreated
	}
	transition := snapshot.Apply(&r.Command, decision, now)
	r.Next = record.RefreshAt // the record has moved on with the decision
	if r.Command.Type == model.CommandPut {
		r.Saved, r.savedAt = new(record.Model), now
	}
	return transition, nil
}
