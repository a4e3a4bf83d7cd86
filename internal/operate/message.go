package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/store"
)

// Messages name some of the messages that are kept until a person decides: by their IDs, or all.
type Messages struct {
	IDs []string
	All bool
}

// Validate refuses both and neither. kind is as in "a rejected".
func (m Messages) Validate(kind string) error {
	if m.All == (len(m.IDs) > 0) {
		return refuse("", "the ID of "+kind+" message, or several, or `all`", map[bool]string{true: "both", false: "neither"}[m.All])
	}
	return nil
}

// Changed is the outcome for messages.
type Changed struct {
	Done    int
	Refused []error // why the others were refused
}

// change does something with the named messages of each part.
func change[T any](
	o Operator, m Messages, kind string, read func(*store.Store) ([]T, error), id func(*T) string, do func(*store.Store, []T, *Changed) (int, error),
) (changed Changed, err error) {
	if err := cmp.Or(m.Validate(kind), o.Queue.RequireWhole()); err != nil {
		return changed, err
	}
	missing := slices.Clone(m.IDs)
	err = o.Queue.Each(func(part *store.Store) error {
		kept, err := read(part)
		if err != nil {
			return err
		}
		count, err := do(part, slices.DeleteFunc(kept, func(one T) bool {
			own := id(&one)
			missing = slices.DeleteFunc(missing, func(other string) bool { return other == own })
			return !m.All && !slices.Contains(m.IDs, own)
		}), &changed)
		changed.Done += count
		return err
	})
	for _, id := range missing {
		changed.Refused = append(changed.Refused, fmt.Errorf("%s: expected the ID of %s message, found none of that ID", id, kind))
	}
	return changed, err
}

// Rejected is a message that could not be handled.
type Rejected struct {
	ID    string `json:"id"`
	Queue string `json:"queue"` // the queue, or the part of it, in which it is kept
	UID   string `json:"uid"`
	Raw   string `json:"raw"`
	store.Rejected
}

// Rejected lists the rejected messages about a model, or all, the oldest first.
func (o Operator) Rejected(ctx context.Context, uid string) (all []Rejected, err error) {
	err = o.Queue.Each(func(part *store.Store) error {
		entries, err := outbox.Of(part).Rejected(ctx)
		for _, entry := range entries {
			if uid == "" || entry.UID == uid {
				all = append(all, Rejected{entry.ID(), part.Keys.Queue, entry.UID, entry.Raw, entry})
			}
		}
		return err
	})
	return all, err
}

// RequeueRejected moves rejected messages back to the lists that they came from. One that is not kept whole stays.
func (o Operator) RequeueRejected(ctx context.Context, m Messages) (Changed, error) {
	return o.changeRejected(ctx, m, func(part *store.Store, entries []store.Rejected, changed *Changed) (int, error) {
		entries = slices.DeleteFunc(entries, func(r store.Rejected) bool {
			_, err := r.Message()
			if err != nil {
				changed.Refused = append(changed.Refused, fmt.Errorf("%s: %w", r.ID(), err))
			}
			return err != nil
		})
		return outbox.Of(part).RequeueRejected(ctx, entries)
	})
}

// DropRejected forgets rejected messages.
func (o Operator) DropRejected(ctx context.Context, m Messages) (Changed, error) {
	return o.changeRejected(ctx, m, func(part *store.Store, entries []store.Rejected, _ *Changed) (int, error) {
		return outbox.Of(part).DropRejected(ctx, entries)
	})
}

func (o Operator) changeRejected(ctx context.Context, m Messages, do func(*store.Store, []store.Rejected, *Changed) (int, error)) (Changed, error) {
	read := func(part *store.Store) ([]store.Rejected, error) { return outbox.Of(part).Rejected(ctx) }
	return change(o, m, "a rejected", read, (*store.Rejected).ID, do)
}

// Undelivered is a message of the notifier that could not be delivered.
type Undelivered struct {
	ID    string `json:"id"`
	Queue string `json:"queue"` // the queue, or the part of it, in which it is kept
	outbox.Undelivered
	Notices []json.RawMessage `json:"notices"`
}

// Undelivered lists the messages that could not be delivered, the oldest first.
func (o Operator) Undelivered(ctx context.Context) (all []Undelivered, err error) {
	err = o.Queue.Each(func(part *store.Store) error {
		kept, err := outbox.Of(part).Undelivered(ctx)
		for _, one := range kept {
			found := Undelivered{ID: one.ID(), Queue: part.Keys.Queue, Undelivered: one}
			for _, notice := range one.Notices {
				found.Notices = append(found.Notices, json.RawMessage(notice))
			}
			all = append(all, found)
		}
		return err
	})
	return all, err
}

// RequeueUndelivered sends messages to their recipients again.
func (o Operator) RequeueUndelivered(ctx context.Context, m Messages) (Changed, error) {
	return o.changeUndelivered(ctx, m, outbox.Outbox.RequeueUndelivered)
}

// DropUndelivered forgets messages that could not be delivered.
func (o Operator) DropUndelivered(ctx context.Context, m Messages) (Changed, error) {
	return o.changeUndelivered(ctx, m, outbox.Outbox.DropUndelivered)
}

func (o Operator) changeUndelivered(ctx context.Context, m Messages, do func(outbox.Outbox, context.Context, []outbox.Undelivered) (int, error)) (Changed, error) {
	read := func(part *store.Store) ([]outbox.Undelivered, error) { return outbox.Of(part).Undelivered(ctx) }
	return change(o, m, "an undelivered", read, (*outbox.Undelivered).ID, func(part *store.Store, named []outbox.Undelivered, _ *Changed) (int, error) {
		return do(outbox.Of(part), ctx, named)
	})
}
