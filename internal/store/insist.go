package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Insistent carries out saves. When there was no answer it asks Redis again, and what a commit without one has done.
type Insistent struct {
	Executor
	// Again is told of each call: nil, or that there was no answer. Then it waits before the next try, and reports whether there is one.
	Again func(ctx context.Context, err error) bool
}

// Passing reports whether an error may be gone the next time: Redis did not answer, or is not ready.
func Passing(err error) bool {
	return !Answered(err) || slices.ContainsFunc([]string{"LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "TRYAGAIN", "MOVED", "ASK"},
		func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

func insist[T any](ctx context.Context, i *Insistent, ask func() (T, error)) (answer T, repeated bool, err error) {
	for {
		answer, err = ask()
		if err == nil || !Passing(err) {
			i.Again(ctx, nil)
			return answer, repeated, err
		}
		if !i.Again(ctx, err) {
			return answer, repeated, err
		}
		repeated = true
	}
}

// Now reads the one clock.
func (i *Insistent) Now(ctx context.Context) (time.Time, error) {
	now, _, err := insist(ctx, i, func() (time.Time, error) { return i.Executor.Now(ctx) })
	return now, err
}

// Read reads the models of commands.
func (i *Insistent) Read(ctx context.Context, uids []string, commands []*model.Command) (*Snapshot, error) {
	snapshot, _, err := insist(ctx, i, func() (*Snapshot, error) { return i.Executor.Read(ctx, uids, commands) })
	return snapshot, err
}

// Commit commits transitions. To send the same once more is safe: what was applied is refused then, as its model has changed. Of what is refused it
// asks whether it was applied before.
func (i *Insistent) Commit(ctx context.Context, batch Batch) ([]Code, error) {
	codes, repeated, err := insist(ctx, i, func() ([]Code, error) { return i.Executor.Commit(ctx, batch) })
	last := map[string]*Transition{} // of each model that has changed
	for at, code := range codes {
		if t := batch.Items[at].Transition; repeated && code.Retry() {
			last[t.uid] = t
		}
	}
	if len(last) == 0 {
		return codes, err
	}
	puts := make([]*model.Command, 0, len(last))
	for uid := range last {
		puts = append(puts, &model.Command{UID: uid}) // so that their payloads are read
	}
	snapshot, err := i.Read(ctx, slices.Collect(maps.Keys(last)), puts)
	if err != nil {
		return nil, err
	}
	for at := range codes {
		if t := batch.Items[at].Transition; codes[at].Retry() && snapshot.Records[t.uid].follows(last[t.uid]) {
			codes[at] = CodeApplied
		}
	}
	return codes, nil
}

// follows reports whether the model is what a save has made of it, or has moved on from what only that has changed about its definition.
func (r *Record) follows(t *Transition) bool {
	saved := t.decision.Definition
	if saved == nil || !r.Exists || r.Payload != saved.Payload || !maps.Equal(r.Labels, saved.Labels) ||
		!slices.Equal(r.stored[:definedFields], t.after[:definedFields]) {
		return false
	}
	redefines := t.creates() || t.payload != "" || !slices.Equal(t.before[:definedFields], t.after[:definedFields])
	return redefines || r.rev == t.newRev && slices.Equal(r.stored, t.after)
}
