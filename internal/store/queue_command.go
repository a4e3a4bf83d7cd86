package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// ApplyQueueCommand carries out a command about the queue in each of its parts, and tells what became of it. A refusal is a *document.Error; after any
// other error the command is to be repeated, which changes nothing twice. Nor does one that comes behind a later one, from whoever has lost the lane.
func (s *Store) ApplyQueueCommand(ctx context.Context, c *model.Command, claimed Claimed, now time.Time) (model.Outcome, error) {
	if handled, err := s.handled(ctx, c.ID, now); err != nil || handled {
		return model.Duplicate, err
	}
	changed, failed := false, []error(nil)
	for _, part := range s.parts() {
		is, err := part.applyQueueCommand(ctx, c, s.Fleet().orderOf(claimed), now)
		if refused, is := errors.AsType[*document.Error](err); is {
			return model.Unchanged, refused
		}
		changed, failed = changed || is, append(failed, err)
	}
	if err := errors.Join(failed...); err != nil || changed {
		return model.Applied, err
	}
	return model.Unchanged, nil
}

// handled reports whether a command of this id was handled within a day.
func (s *Store) handled(ctx context.Context, id string, now time.Time) (bool, error) {
	if id == "" {
		return false, nil
	}
	at, err := s.Clients.Read.ZScore(ctx, s.Keys.Commands(), id).Result()
	if Missing(err) {
		return false, nil
	}
	return now.Add(-24*time.Hour).UnixMilli() < int64(at), Wrap(err, "look for the id of a command")
}

// applyQueueCommand carries out a command about the queue in one part; false: there was nothing to change.
func (s *Store) applyQueueCommand(ctx context.Context, c *model.Command, by order, now time.Time) (bool, error) {
	switch c.Type {
	case model.CommandHold:
		hold := c.HoldAt(now)
		return s.Fleet().putHold(ctx, &hold, by)
	case model.CommandRelease:
		within := &c.Hold.Within
		if !c.Spread {
			within = nil
		}
		return s.Fleet().releaseHold(ctx, c.Hold.ID, within, now, by)
	case model.CommandRequeue:
		return s.requeueAbout(ctx, c.UID)
	default:
		return false, fmt.Errorf("expected a command about the queue, found %s", c.Type)
	}
}

// requeueAbout requeues the rejected messages about a model, or all if uid is empty. One of which only the beginning is kept stays.
func (s *Store) requeueAbout(ctx context.Context, uid string) (bool, error) {
	entries, err := s.Fleet().Rejected(ctx)
	if err != nil {
		return false, err
	}
	entries = slices.DeleteFunc(entries, func(r Rejected) bool {
		_, cut := r.Message()
		return cut != nil || uid != "" && r.UID != uid
	})
	moved, err := s.Fleet().RequeueRejected(ctx, entries)
	return moved > 0, err
}
