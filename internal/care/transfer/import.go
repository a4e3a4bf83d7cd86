package transfer

import (
	"context"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

// Import saves what Export has written. What the queue has already just as the line says stays as it is, so that an import may be repeated.
type Import struct {
	Queue *store.Queue
	// Replace: what the queue has otherwise becomes what the line says. Without it, such a line is refused.
	Replace bool
	// By is who wants it, for the journal; empty: nobody says.
	By string
	// Refused is told why a line was refused, in the order of the lines.
	Refused func(position func(field string) string, uid string, err error)

	Models, Policies, Calendars, Limits Count
}

// Count is what became of lines.
type Count struct {
	Created   int `json:"created"`
	Replaced  int `json:"replaced"`
	Unchanged int `json:"unchanged"`
	Refused   int `json:"refused"`
}

// All is how many lines there were.
func (c Count) All() int { return c.Created + c.Replaced + c.Unchanged + c.Refused }

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

// batcher fills batches with lines. What is no model stands alone, as models may need it, and a uid once.
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

func (i *Import) batch(ctx context.Context, batch []*task) error {
	var store func(context.Context, *task) error
	var count *Count
	switch batch[0].kind {
	case kindCalendar:
		store, count = i.importCalendar, &i.Calendars
	case kindLimit:
		store, count = i.importLimit, &i.Limits
	case kindPolicy:
		store, count = i.importPolicy, &i.Policies
	default:
		return i.importModels(ctx, batch)
	}
	if err := store(ctx, batch[0]); err != nil {
		return err
	}
	i.count(count, batch[0])
	return nil
}

func (i *Import) importModels(ctx context.Context, batch []*task) error {
	parts, within := errgroup.WithContext(ctx)
	parts.SetLimit(sideBySide)
	for part, tasks := range store.ByPart(i.Queue, undone(batch), (*task).uid) {
		parts.Go(func() error { return i.Queue.PartError(part, i.models(within, part, tasks)) })
	}
	if err := parts.Wait(); err != nil {
		return err
	}
	for _, t := range batch {
		i.count(&i.Models, t)
	}
	return nil
}

func undone(tasks []*task) []*task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t *task) bool { return t.done })
}

func (i *Import) count(c *Count, t *task) {
	switch {
	case t.err != nil:
		c.Refused++
		i.Refused(t.Position, t.uid(), t.err)
	case !t.applied:
		c.Unchanged++
	case t.existed:
		c.Replaced++
	default:
		c.Created++
	}
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
	for _, part := range i.Queue.Parts {
		found, same, err := here(part)
		if err != nil {
			return i.Queue.PartError(part, err)
		}
		t.existed, all = t.existed || found && !same, all && same
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
