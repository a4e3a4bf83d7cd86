package store

import (
	"context"
	"fmt"

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
	wish.Ticket = int(whole(started))
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
