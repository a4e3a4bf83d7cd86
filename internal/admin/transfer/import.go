package transfer

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Import saves the lines of Export. If the queue has the same already, nothing changes, so an import may be repeated.
type Import struct {
	Queue *store.Queue
	// Replace overwrites objects that differ from their line. Without it, such a line is refused.
	Replace bool
	// By is who wants it, for the journal; empty: nobody says.
	By string
	// Refused receives the refused lines, in their order.
	Refused func(Refusal)

	Models    Count `json:"models"`
	Policies  Count `json:"policies"`
	Calendars Count `json:"calendars"`
	Limits    Count `json:"limits"`
}

// Count counts the results of lines.
type Count struct {
	Created   int `json:"created"`
	Replaced  int `json:"replaced"`
	Unchanged int `json:"unchanged"`
	Refused   int `json:"refused"`
}

// All is how many lines there were.
func (c Count) All() int { return c.Created + c.Replaced + c.Unchanged + c.Refused }

// Refusal is a line that was refused.
type Refusal struct {
	UID   string `json:"uid"`
	Field string `json:"field"` // empty: the whole line
	Error string `json:"error"` // with the position
}

const (
	// importBatch is how many models are decided and committed at once.
	importBatch = 500
	// sideBySide is how many parts of a queue are asked at a time.
	sideBySide = 4
)

// Read imports all lines. A line that is refused harms only itself. An error is one of Redis or of the reader, and it is then unknown
// whether the last lines were imported: to repeat them is safe.
func (i *Import) Read(ctx context.Context, name string, in io.Reader) error {
	if err := i.Queue.RequireWhole(); err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	batches := make(chan []*task, 1) // the next one is read while one is committed
	work.Go(func() error {
		defer close(batches)
		b := batcher{ctx: ctx, to: batches}
		if err := definitions.ReadLines(name, in, b.add); err != nil {
			return err
		}
		return b.send()
	})
	work.Go(func() error {
		for batch := range batches {
			if err := i.batch(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	return work.Wait()
}

type task struct {
	entry

	err     error // why it was refused; nil: it was not
	done    bool
	existed bool
	applied bool
}

func (t *task) uid() string { return t.moved.UID }

func (t *task) refuse(err error) { t.err, t.done = err, true }

// batcher fills batches with lines. Anything but a model has a batch of its own, as models may need it. A batch has a uid once.
type batcher struct {
	ctx   context.Context
	to    chan<- []*task
	batch []*task
	uids  map[string]bool
}

func (b *batcher) add(doc definitions.Document) error {
	e, err := readEntry(doc)
	t := &task{entry: e}
	if err != nil {
		t.refuse(err)
	}
	alone := slices.Contains([]string{kindCalendar, kindLimit, kindPolicy}, e.kind)
	if alone || b.uids[t.uid()] || len(b.batch) == importBatch {
		if err := b.send(); err != nil {
			return err
		}
	}
	if b.uids == nil {
		b.uids = make(map[string]bool, importBatch)
	}
	b.batch = append(b.batch, t)
	if err == nil {
		b.uids[t.uid()] = !alone
	}
	if alone {
		return b.send()
	}
	return nil
}

func (b *batcher) send() error {
	if len(b.batch) == 0 {
		return nil
	}
	select {
	case b.to <- b.batch:
		b.batch, b.uids = nil, nil
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// batch imports one line, or models, and counts the results.
func (i *Import) batch(ctx context.Context, batch []*task) error {
	count, only := &i.Models, batch[0]
	var err error
	switch only.kind {
	case kindCalendar:
		count = &i.Calendars
		err = i.importCalendar(ctx, only)
	case kindLimit:
		count = &i.Limits
		err = i.importLimit(ctx, only)
	case kindPolicy:
		count = &i.Policies
		err = i.importPolicy(ctx, only)
	default:
		parts, within := errgroup.WithContext(ctx)
		parts.SetLimit(sideBySide)
		left := slices.DeleteFunc(slices.Clone(batch), func(t *task) bool { return t.done })
		for part, tasks := range store.ByPart(i.Queue, left, (*task).uid) {
			parts.Go(func() error { return i.Queue.PartError(part, i.importModels(within, part, tasks)) })
		}
		err = parts.Wait()
	}
	if err != nil {
		return err
	}
	for _, t := range batch {
		switch {
		case t.err != nil:
			count.Refused++
			refusal := Refusal{UID: t.uid(), Error: t.At(t.err).Error()}
			if refused, is := errors.AsType[*document.Error](t.err); is {
				refusal.Field = refused.Field
			}
			i.Refused(refusal)
		case !t.applied:
			count.Unchanged++
		case t.existed:
			count.Replaced++
		default:
			count.Created++
		}
	}
	return nil
}

func (i *Import) importPolicy(ctx context.Context, t *task) error {
	return i.store(t, "the policy "+t.policy.Name+" as it is here, which its models get", func(part *store.Store) (found, same bool, err error) {
		stored, err := part.Policies(ctx, []string{t.policy.Name})
		here, found := stored[t.policy.Name]
		return found, found && here.Equal(t.policy), err
	}, func() error { return i.Queue.Fleet().PutPolicy(ctx, t.policy) })
}

// store stores in every part what a line says, unless all have just that. here says whether a part has something of that name, and whether it is the
// same. wanted is what the line should say otherwise.
func (i *Import) store(t *task, wanted string, here func(*store.Store) (found, same bool, err error), put func() error) error {
	if t.done {
		return nil
	}
	all := true
	err := i.Queue.Each(func(part *store.Store) error {
		found, same, err := here(part)
		t.existed, all = t.existed || found && !same, all && same
		return err
	})
	if err != nil {
		return err
	}
	if t.existed && !i.Replace {
		t.refuse(document.Refuse(t.kind, wanted+", or --replace", "another one"))
	}
	if t.done || all {
		return nil
	}
	t.applied = true
	return put()
}

// importModels imports models of one part. Equal models stay as they are.
func (i *Import) importModels(ctx context.Context, part *store.Store, tasks []*task) error {
	puts := redis.Map(tasks, func(t *task) *model.Command {
		return &model.Command{Type: model.CommandPut, UID: t.uid(), Definition: t.moved.Definition, By: i.By}
	})
	with := &pastReader{Store: part}
	refused, err := store.Execute(ctx, with, puts, func(at int, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
		t, put := tasks[at], puts[at]
		record := snapshot.Records[t.uid()]
		t.existed, t.applied = record.Exists, false
		decision, outcome, err := t.execute(record, put, snapshot.Policies, with.pasts[t.uid()], now)
		switch {
		case err != nil || outcome == model.Unchanged:
			return nil, err
		case t.existed && !i.Replace:
			return nil, document.Refuse("uid", "a model that is not stored yet, or is just as the line says, or --replace", "another state of it")
		}
		decision.By, t.applied = i.By, true
		return snapshot.Apply(put, decision, now), nil
	})
	for at, reason := range refused {
		tasks[at].err = reason
	}
	return err
}

// pastReader also reads the histories of the models that exist.
type pastReader struct {
	*store.Store

	pasts map[string][]model.Attempt
}

func (r *pastReader) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	snapshot, err := r.Store.Read(ctx, uids, commands)
	if err == nil {
		existing := slices.DeleteFunc(slices.Clone(uids), func(uid string) bool { return !snapshot.Records[uid].Exists })
		r.pasts, err = r.Report().Histories(ctx, existing, 0)
	}
	return snapshot, err
}

func (t *task) execute(record *store.Record, put *model.Command, policies model.Policies, past []model.Attempt, now time.Time) (model.Decision, model.Outcome, error) {
	if !t.hasState {
		return record.Execute(put, policies, record.Exists, now)
	}
	moved := t.moved
	moved.Definition = put.Definition // completed, where it brings its own policy along
	p, err := policies.Find(&moved.Definition)
	if err != nil {
		return model.Decision{}, model.Unchanged, err
	}
	here := redis.Map(past, func(a model.Attempt) string { return a.Entry() })
	return record.Import(moved, p, record.Exists, here, now)
}
