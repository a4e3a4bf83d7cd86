package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// FindBulk reads a bulk of all parts; false: none of that name is going on, or was within a day.
func (q QueueFleet) FindBulk(ctx context.Context, id string) (sum Bulk, found bool, err error) {
	err = q.Each(func(part *Store) error {
		bulk, there, err := part.ReadBulk(ctx, id)
		if there && err == nil {
			sum.add(&bulk)
		}
		found = found || there
		return err
	})
	return sum, found, err
}

// Bulks lists the bulks of all parts: those that were over within a day first, then the others, the oldest first.
func (q QueueFleet) Bulks(ctx context.Context) ([]Bulk, error) {
	read := func(part *Store) ([]Bulk, error) {
		ended, err := part.Fleet().EndedBulks(ctx)
		if err != nil {
			return nil, err
		}
		open, err := part.Bulks(ctx)
		return append(ended, open...), err
	}
	return sumOf(q.Queue, read, func(b *Bulk) string { return b.ID }, (*Bulk).add, func(a, b Bulk) int {
		return cmp.Or(trueFirst(a.State().Over(), b.State().Over()), a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
}

// BeginNewBulk begins a bulk in every part, under an id of its own. After an error it may have begun in some.
func (q QueueFleet) BeginNewBulk(ctx context.Context, wish model.Bulk) (id string, err error) {
	id = string(wish.Action) + "-" + strings.ToLower(rand.Text()[:8])
	if err := q.BeginBulk(ctx, id, wish); err != nil {
		return id, fmt.Errorf("%w; refreshd bulk cancel %s ends what has begun", err, id)
	}
	return id, nil
}

// BeginBulk begins a bulk in every part; each has its share of the rate. After an error it may have begun in some.
func (q QueueFleet) BeginBulk(ctx context.Context, id string, wish model.Bulk) error {
	wish.Rate = wish.Rate.Share(len(q.Parts))
	return q.write(func(part *Store) error { _, err := part.Fleet().BeginBulk(ctx, id, wish); return err })
}

// CancelBulk ends a bulk in every part; false: it is in none, or over in all.
func (q QueueFleet) CancelBulk(ctx context.Context, id string) (cancelled bool, err error) {
	err = q.Each(func(part *Store) error {
		is, err := part.Fleet().CancelBulk(ctx, id)
		cancelled = cancelled || is
		return err
	})
	return cancelled, err
}
