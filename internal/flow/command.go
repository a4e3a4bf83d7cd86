package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// ApplyQueueCommand carries out a queue command in each part. A refusal is a *document.Error. Repeat it after any other error: nothing is changed
// twice, nor by a former leader behind a later command.
func (f Flow) ApplyQueueCommand(ctx context.Context, c *model.Command, claimed store.Claimed, now time.Time) (model.Outcome, error) {
	if c.ID != "" { // it may have been handled within a day
		at, err := f.store.Clients.Read.ZScore(ctx, f.store.Keys.Commands, c.ID).Result()
		if !redis.Missing(err) && (err != nil || now.Add(-24*time.Hour).UnixMilli() < int64(at)) {
			return model.Duplicate, redis.Wrap(err, "look for the id of a command")
		}
	}
	by := store.Order{Part: "queue:" + strconv.Itoa(f.store.Place), Number: claimed.Number()}
	ctx = store.WithActor(ctx, store.ActorOf(ctx).For(by.Part+":"+by.Number, c.By))
	changed, failed := false, []error(nil)
	for _, part := range f.store.AllParts() {
		is, err := Of(part).applyQueueCommand(ctx, c, by, claimed.At(now))
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

// applyQueueCommand carries out a command about the queue in one part; false: there was nothing to change.
func (f Flow) applyQueueCommand(ctx context.Context, c *model.Command, by store.Order, now time.Time) (bool, error) {
	switch c.Type {
	case model.CommandHold:
		hold := c.HoldAt(now)
		return f.putHold(ctx, &hold, by)
	case model.CommandRelease:
		within := &c.Hold.Within
		if !c.Spread {
			within = nil
		}
		return f.releaseHold(ctx, c.Hold.ID, within, now, by)
	case model.CommandOpen:
		return f.OpenLimit(ctx, c.Key, now)
	case model.CommandRequeue:
		return f.requeueAbout(ctx, c.UID)
	default:
		return false, fmt.Errorf("expected a command about the queue, found %s", c.Type)
	}
}

// requeueAbout requeues the rejected messages about a model, or all if uid is empty, but for those that were cut.
func (f Flow) requeueAbout(ctx context.Context, uid string) (bool, error) {
	entries, err := outbox.Of(f.store).Rejected(ctx)
	if err != nil {
		return false, err
	}
	entries = slices.DeleteFunc(entries, func(r store.Rejected) bool {
		_, cut := r.Message()
		return cut != nil || uid != "" && r.UID != uid
	})
	moved, err := outbox.Of(f.store).RequeueRejected(ctx, entries)
	return moved > 0, err
}
