package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// models imports models of one part. What changes meanwhile is decided again.
func (i *Import) models(ctx context.Context, part *store.Store, tasks []*task) error {
	for range maxPasses {
		if tasks = undone(tasks); len(tasks) == 0 {
			return nil
		}
		if err := i.pass(ctx, part, tasks); err != nil {
			return err
		}
	}
	for _, t := range undone(tasks) {
		t.refuse(fmt.Errorf("expected the model to stand still for a moment, found it changed %d times", maxPasses))
	}
	return nil
}

// pass decides and commits once.
func (i *Import) pass(ctx context.Context, part *store.Store, tasks []*task) error {
	now, err := part.Now(ctx)
	if err != nil {
		return err
	}
	uids, commands := make([]string, len(tasks)), make([]*model.Command, len(tasks))
	for at, t := range tasks {
		uids[at] = t.uid()
		commands[at] = &model.Command{Type: model.CommandPut, UID: t.uid(), Definition: t.moved.Definition, By: i.By}
	}
	snapshot, err := part.Read(ctx, uids, commands)
	if err != nil {
		return err
	}
	pasts, err := part.Report().Past(ctx, slices.DeleteFunc(uids, func(uid string) bool { return !snapshot.Records[uid].Exists }))
	if err != nil {
		return err
	}
	batch := store.Batch{Now: now}
	var changing []*task
	for at, t := range tasks {
		if transition := i.decide(t, commands[at], snapshot, pasts[t.uid()], now); transition != nil {
			changing, batch.Items = append(changing, t), append(batch.Items, store.Item{Transition: transition})
		}
	}
	codes, err := part.Commit(ctx, batch)
	if err != nil {
		return err
	}
	for at, code := range codes {
		changing[at].settle(code, &batch.Items[at])
	}
	return nil
}

func (t *task) settle(code store.Code, item *store.Item) {
	switch {
	case code == store.CodeBroken || code == store.CodeBlocked:
		t.refuse(errors.New(item.Misfit))
	case code == store.CodeTaken:
		t.takenUID = item.Transition.AttemptUID()
	case !code.Retry():
		t.applied, t.done = true, true
	}
}

// decide settles a line, or returns the transition that would import it.
func (i *Import) decide(t *task, put *model.Command, snapshot *store.Snapshot, past []string, now time.Time) *store.Transition {
	record := snapshot.Records[t.uid()]
	t.existed = record.Exists
	decision, outcome, err := t.execute(record, put, snapshot.Policies, past, now)
	switch {
	case err != nil:
		t.refuse(err)
	case outcome == model.Unchanged:
		t.done = true
	case t.existed && !i.Replace:
		t.refuse(document.Refuse("uid", "a model that is not stored yet, or is just as the line says, or --replace", "another state of it"))
	}
	if t.done {
		return nil
	}
	decision.By = i.By
	return snapshot.Apply(put, decision, now)
}

// execute decides what a line does to a model: with a state the model becomes what the line says, without one it is put.
func (t *task) execute(record *store.Record, put *model.Command, policies model.Policies, past []string, now time.Time) (model.Decision, model.Outcome, error) {
	if !t.whole {
		record.Taken = t.takenUID != "" && t.takenUID == record.AttemptUID
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
