package transfer

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func (i *Import) models(ctx context.Context, part *store.Store, tasks []*task) error {
	puts := make([]*model.Command, len(tasks))
	for at, t := range tasks {
		puts[at] = &model.Command{Type: model.CommandPut, UID: t.uid(), Definition: t.moved.Definition, By: i.By}
	}
	with := &pastReader{Store: part}
	refused, err := store.Execute(ctx, with, puts, func(at int, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
		return i.decide(tasks[at], puts[at], snapshot, with.pasts[tasks[at].uid()], now)
	})
	for at, reason := range refused {
		tasks[at].err = reason
	}
	return err
}

// pastReader also reads the histories of the models that exist.
type pastReader struct {
	*store.Store

	pasts map[string][]string
}

func (r *pastReader) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	snapshot, err := r.Store.Read(ctx, uids, commands)
	if err == nil {
		existing := slices.DeleteFunc(slices.Clone(uids), func(uid string) bool { return !snapshot.Records[uid].Exists })
		r.pasts, err = r.Report().Past(ctx, existing)
	}
	return snapshot, err
}

// decide returns the transition that would import a line; nil: the queue has it already.
func (i *Import) decide(t *task, put *model.Command, snapshot *store.Snapshot, past []string, now time.Time) (*store.Transition, error) {
	record := snapshot.Records[t.uid()]
	t.existed, t.applied = record.Exists, false
	decision, outcome, err := t.execute(record, put, snapshot.Policies, past, now)
	switch {
	case err != nil || outcome == model.Unchanged:
		return nil, err
	case t.existed && !i.Replace:
		return nil, document.Refuse("uid", "a model that is not stored yet, or is just as the line says, or --replace", "another state of it")
	}
	decision.By, t.applied = i.By, true
	return snapshot.Apply(put, decision, now), nil
}

func (t *task) execute(record *store.Record, put *model.Command, policies model.Policies, past []string, now time.Time) (model.Decision, model.Outcome, error) {
	if !t.hasState {
		return record.Execute(put, policies, record.Exists, now)
	}
	moved := t.moved
	moved.Definition = put.Definition // completed, where it brings its own policy along
	p, err := policies.Find(&moved.Definition)
	if err != nil {
		return model.Decision{}, model.Unchanged, err
	}
	return record.Import(moved, p, record.Exists, past, now)
}
