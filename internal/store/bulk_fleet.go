package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// BeginBulk writes down a bulk that begins now, with what the walk of this part is to meet; pollers carry it out. It returns it as it is
// written.
func (s Fleet) BeginBulk(ctx context.Context, id string, wish model.Bulk) (Bulk, error) {
	started, err := s.Clients.Read.HGet(ctx, s.Keys.Stats(), string(model.EventStart)).Result()
	if err != nil && !Missing(err) {
		return Bulk{}, fmt.Errorf("begin a bulk: %w", err)
	}
	if wish.Since, err = s.Now(ctx); err != nil { // behind the ticket: what is started in between counts as started since
		return Bulk{}, err
	}
	wish.Ticket = int(parseInt(started))
	b := Bulk{ID: id, Bulk: wish, Place: WalkBegins}
	if _, b.Size, err = s.source(ctx, wish.Selector); err != nil {
		return Bulk{}, err
	}
	_, err = s.change(ctx, s.Keys.Holds(), order{}, func() (change, error) { return change{bulk: &b}, nil })
	return b, Wrap(err, "begin a bulk")
}

// EndedBulks reads the bulks that were over within a day, the oldest first.
func (s Fleet) EndedBulks(ctx context.Context) ([]Bulk, error) {
	return s.readBulks(ctx, s.Keys.BulksEnded())
}

// CancelBulk ends a bulk; false: there is none, or it is over. What it has done stays done.
func (s Fleet) CancelBulk(ctx context.Context, id string) (bool, error) {
	for {
		b, found, err := s.ReadBulk(ctx, id)
		if err != nil || !found || !b.EndedAt.IsZero() {
			return false, err
		}
		now, err := s.Now(ctx)
		if err != nil {
			return false, err
		}
		b.Cancelled = true
		if moved, err := s.MoveBulk(ctx, &b, now); moved || err != nil { // otherwise a poller has moved it meanwhile
			return moved, err
		}
	}
}

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

// FindBulk reads a bulk at one instant with whether it stands among those that are not over.
func (s *Store) FindBulk(ctx context.Context, id string) (b Bulk, there, open bool, err error) {
	pipe := s.Clients.Read.TxPipeline()
	hash, score := pipe.HGetAll(ctx, s.Keys.Bulk(id)), pipe.ZScore(ctx, s.Keys.Bulks(), id)
	if err := ExecReads(ctx, pipe); err != nil {
		return b, false, false, fmt.Errorf("look for a bulk: %w", err)
	}
	return readBulk(id, hash.Val()), len(hash.Val()) > 0, score.Err() == nil, nil
}

// ListBulk makes a bulk known that nobody would carry out.
func (s *Store) ListBulk(ctx context.Context, b Bulk) error {
	err := s.Clients.Write.ZAddNX(ctx, s.Keys.Bulks(), redis.Z{Score: float64(b.Since.UnixMilli()), Member: b.ID}).Err()
	return Wrap(err, "list a bulk again")
}
