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

// Messages name some of the messages that are kept until a person decides: by their IDs, by their group, or all.
type Messages struct {
	IDs   []string
	Group string // of rejected ones
	All   bool
}

// Validate refuses several of these and none. kind is as in "a rejected".
func (m Messages) Validate(kind string) error {
	ways := slices.DeleteFunc([]bool{len(m.IDs) > 0, m.Group != "", m.All}, func(named bool) bool { return !named })
	if len(ways) == 1 {
		return nil
	}
	return refuse("", "the ID of "+kind+" message, or several, or `all`", []string{"neither", "", "both", "a group too"}[len(ways)])
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
	// group is the id of the group of one that is kept in a queue.
	group func(queue string, one *T) string
}

var (
	keptRejected = kept[store.Rejected]{"a rejected", outbox.Outbox.Rejected, (*store.Rejected).ID,
		func(queue string, r *store.Rejected) string { return groupOf(queue, r).ID }}
	keptUndelivered = kept[outbox.Undelivered]{"an undelivered", outbox.Outbox.Undelivered, (*outbox.Undelivered).ID,
		func(string, *outbox.Undelivered) string { return "" }}
)

// change does something with the named messages of each part.
func (k kept[T]) change(
	ctx context.Context, o Operator, m Messages, do func(outbox.Outbox, context.Context, []T) (int, error),
) (changed Changed, err error) {
	if err := cmp.Or(m.Validate(k.kind), o.Queue.RequireWhole()); err != nil {
		return changed, err
	}
	missing, want := slices.Clone(m.IDs), k.kind+" message"
	if m.Group != "" {
		missing, want = []string{m.Group}, "a group of messages"
	}
	err = o.Queue.Each(func(part *store.Store) error {
		all, err := k.read(outbox.Of(part), ctx)
		if err != nil {
			return err
		}
		count, err := do(outbox.Of(part), ctx, slices.DeleteFunc(all, func(one T) bool {
			own, named := k.id(&one), m.IDs
			if m.Group != "" {
				own, named = k.group(part.Keys.Queue, &one), []string{m.Group}
			}
			missing = slices.DeleteFunc(missing, func(other string) bool { return other == own })
			return !m.All && !slices.Contains(named, own)
		}))
		changed.Done += count
		return err
	})
	for _, id := range missing {
		changed.Refused = append(changed.Refused, fmt.Errorf("%s: expected the ID of %s, found none of that ID", id, want))
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
