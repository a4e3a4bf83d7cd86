package flow

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Holds reads the holds, oldest first. problem names unreadable ones; nil: all can be read.
func (f Flow) Holds(ctx context.Context) (holds []model.Hold, problem error, err error) {
	texts, err := f.store.Clients.Read.HGetAll(ctx, f.store.Keys.Holds).Result()
	delete(texts, store.HoldChanges)
	for id, text := range texts {
		hold, unreadable := store.ReadHold(id, text)
		holds, problem = append(holds, hold), cmp.Or(problem, unreadable)
	}
	slices.SortFunc(holds, store.CompareHolds)
	return holds, problem, redis.Wrap(err, "read holds")
}

// PutHold begins a hold, or changes end and reason of the one of that name: from when it returns on, no model starts that it picks. A dispatcher
// rechecks it when it ends. Another selector is refused, as it would not pick the models that wait.
func (f Flow) PutHold(ctx context.Context, hold *model.Hold) error {
	_, err := f.putHold(ctx, hold, store.Order{})
	return err
}

func (f Flow) putHold(ctx context.Context, hold *model.Hold, by store.Order) (bool, error) {
	if err := hold.Validate(); err != nil {
		return false, err
	}
	return f.store.Fleet().Change(ctx, f.store.Keys.Holds, by, func() (store.Change, error) {
		before, found, err := f.hold(ctx, hold.ID)
		if err == nil && found && before.Selector.String() != hold.Selector.String() {
			err = document.Refuse("selector", "that of the hold "+hold.ID+" as it is, "+document.Found(before.Selector.String())+"; release it first", document.Found(hold.Selector.String()))
		}
		if err != nil {
			return store.Change{}, err
		}
		return changeHold(hold, model.Deed{Verb: "hold", What: heldWhat(hold), By: hold.By, Reason: hold.Reason}), nil
	})
}

// hold reads one hold, or the readable rest of it.
func (f Flow) hold(ctx context.Context, id string) (hold model.Hold, found bool, err error) {
	text, err := f.store.Clients.Read.HGet(ctx, f.store.Keys.Holds, id).Result()
	if err != nil {
		return hold, false, redis.Wrap(redis.IgnoreMissing(err), "read a hold")
	}
	hold, _ = store.ReadHold(id, text)
	return hold, true, nil
}

// heldWhat names a hold and its models for a deed.
func heldWhat(hold *model.Hold) string {
	return hold.ID + " " + cmp.Or(hold.Selector.String(), "all models")
}

// changeHold stores a hold, and lets a dispatcher recheck it when it ends.
func changeHold(hold *model.Hold, deed model.Deed) store.Change {
	recheck := hold.Until
	if recheck.IsZero() {
		recheck = model.Never
	}
	return store.Change{Fields: []string{hold.ID, store.WriteHold(hold)}, Blocker: hold.Blocker(), Recheck: recheck, Hold: true, Deed: deed}
}

// ReleaseHold ends a hold at now, and lets its models start within a time; false: there is none of that name, or it has ended.
func (f Flow) ReleaseHold(ctx context.Context, id string, within time.Duration, now time.Time) (bool, error) {
	return f.releaseHold(ctx, id, &within, now, store.Order{})
}

// releaseHold is ReleaseHold; without within it takes the time of the hold.
func (f Flow) releaseHold(ctx context.Context, id string, within *time.Duration, now time.Time, by store.Order) (bool, error) {
	return f.store.Fleet().Change(ctx, f.store.Keys.Holds, by, func() (store.Change, error) {
		hold, found, err := f.hold(ctx, id)
		if err != nil || !found || hold.Ended(now) {
			return store.Change{}, err
		}
		if hold.Until = now; within != nil {
			hold.Within = *within
		}
		if !hold.Since.Before(now) {
			hold.Since = now.Add(-time.Millisecond)
		}
		deed := model.Deed{Verb: "release", What: heldWhat(&hold), Before: "held by " + cmp.Or(hold.By, "somebody") + ": " + hold.Reason, After: "released"}
		return changeHold(&hold, deed), nil
	})
}

// HoldStatus is a hold in all parts of a queue.
type HoldStatus struct {
	model.Hold
	Released bool  `json:"ended"`  // its models are being let go
	Parked   int64 `json:"parked"` // models that wait for it
}

// Holds reads the holds of all parts, oldest first.
func (q Queue) Holds(ctx context.Context) ([]HoldStatus, error) {
	read := func(part *store.Store) (sums []HoldStatus, err error) {
		now, err := part.Now(ctx)
		if err != nil {
			return nil, err
		}
		holds, problem, err := Of(part).Holds(ctx)
		if err := cmp.Or(err, problem); err != nil {
			return nil, err
		}
		for _, hold := range holds {
			parked, err := Inspect(part).CountParked(ctx, hold.Blocker())
			if err != nil {
				return nil, err
			}
			sums = append(sums, HoldStatus{hold, hold.Ended(now), parked})
		}
		return sums, nil
	}
	add := func(sum, more *HoldStatus) {
		if sum.ID == "" {
			sum.Hold = more.Hold
		}
		sum.Parked, sum.Released = sum.Parked+more.Parked, more.Released
	}
	return store.SumOf(q.queue, read, func(h *HoldStatus) string { return h.ID }, add, func(a, b HoldStatus) int { return store.CompareHolds(a.Hold, b.Hold) })
}

// NewHoldID is a name for a hold to which nobody has given one.
func NewHoldID() string { return "h" + store.Letters()[:6] }

// PutHold begins a hold in every part.
func (q Queue) PutHold(ctx context.Context, hold *model.Hold) error {
	return q.queue.ChangeEach(func(part *store.Store) error { return Of(part).PutHold(ctx, hold) })
}

// ReleaseHold ends a hold in every part; false: there is none of that name that has not ended.
func (q Queue) ReleaseHold(ctx context.Context, id string, within time.Duration) (bool, error) {
	return q.queue.Fleet().Change(ctx, func(part *store.Store, now time.Time) (bool, error) {
		return Of(part).ReleaseHold(ctx, id, within, now)
	})
}

// CancelHeld begins a bulk that takes back what runs of the models which a hold picks.
func (q Queue) CancelHeld(ctx context.Context, hold *model.Hold) (id string, err error) {
	runs := model.SelectStatus + "=" + string(model.StatusRunning)
	selector, err := model.ParseSelector(strings.Trim(hold.Selector.String()+","+runs, ","))
	if err != nil {
		return "", err
	}
	id = "cancel-" + hold.ID
	return id, q.BeginBulk(ctx, id, model.Bulk{Action: model.BulkCancel, Selector: selector, By: hold.By, Reason: hold.Reason, Since: hold.Since})
}
