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

// kept are messages of one kind that are kept until a person decides.
type kept[T any] struct {
	kind string // as in "a rejected"
	read func(outbox.Outbox, context.Context) ([]T, error)
	id   func(*T) string
}

var (
	keptRejected    = kept[store.Rejected]{"a rejected", outbox.Outbox.Rejected, (*store.Rejected).ID}
	keptUndelivered = kept[outbox.Undelivered]{"an undelivered", outbox.Outbox.Undelivered, (*outbox.Undelivered).ID}
)

// change does something with the named messages of each part.
func (k kept[T]) change(
	ctx context.Context, o Operator, m Messages, do func(outbox.Outbox, context.Context, []T) (int, error),
) (changed Changed, err error) {
	if err := cmp.Or(m.Validate(k.kind), o.Queue.RequireWhole()); err != nil {
		return changed, err
	}
	missing := slices.Clone(m.IDs)
	err = o.Queue.Each(func(part *store.Store) error {
		all, err := k.read(outbox.Of(part), ctx)
		if err != nil {
			return err
		}
		count, err := do(outbox.Of(part), ctx, slices.DeleteFunc(all, func(one T) bool {
			own := k.id(&one)
			missing = slices.DeleteFunc(missing, func(other string) bool { return other == own })
			return !m.All && !slices.Contains(m.IDs, own)
		}))
		changed.Done += count
		return err
	})
	for _, id := range missing {
		changed.Refused = append(changed.Refused, fmt.Errorf("%s: expected the ID of %s message, found none of that ID", id, k.kind))
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
	var cut []error
	changed, err := keptRejected.change(ctx, o, m, func(box outbox.Outbox, ctx context.Context, entries []store.Rejected) (int, error) {
		return box.RequeueRejected(ctx, slices.DeleteFunc(entries, func(r store.Rejected) bool {
			_, err := r.Message()
			if err != nil {
				cut = append(cut, fmt.Errorf("%s: %w", r.ID(), err))
			}
			return err != nil
		}))
	})
	changed.Refused = append(cut, changed.Refused...)
	return changed, err
}

// DropRejected forgets rejected messages.
func (o Operator) DropRejected(ctx context.Context, m Messages) (Changed, error) {
	return keptRejected.change(ctx, o, m, outbox.Outbox.DropRejected)
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
	return keptUndelivered.change(ctx, o, m, outbox.Outbox.RequeueUndelivered)
}

// DropUndelivered forgets messages that could not be delivered.
func (o Operator) DropUndelivered(ctx context.Context, m Messages) (Changed, error) {
	return keptUndelivered.change(ctx, o, m, outbox.Outbox.DropUndelivered)
}
