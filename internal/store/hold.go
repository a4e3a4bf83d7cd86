package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// HoldChanges is the field of <queue>:holds that counts how often they have changed. No hold has its name.
const HoldChanges = "changes"

type holdText struct {
	Selector string `json:"selector"`
	Since    string `json:"since"`
	Until    string `json:"until,omitempty"`
	Within   string `json:"within,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty"`
}

// ReadHold reads a stored hold. One of which a part cannot be read holds what can be read of it: to let models start is worse than to hold
// too many.
func ReadHold(id, raw string) (model.Hold, error) {
	h := model.Hold{ID: id}
	var text holdText
	if err := json.Unmarshal([]byte(raw), &text); err != nil {
		return h, document.Refuse("holds."+id, "a JSON object", document.Found(raw))
	}
	h.Reason, h.By = text.Reason, text.By
	var errs [4]error
	h.Selector, errs[0] = model.ParseSelector(text.Selector)
	h.Since, errs[1] = ReadStoredTime(text.Since)
	h.Until, errs[2] = ReadStoredTime(text.Until)
	if text.Within != "" {
		h.Within, errs[3] = document.ParseDuration(text.Within)
	}
	return h, document.Place(cmp.Or(errs[0], errs[1], errs[2], errs[3]), "holds."+id)
}

// ReadStoredTime reads an instant as keys have it; empty: none.
func ReadStoredTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC(), err
}

func compareHolds(a, b model.Hold) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
}

// Holds reads the holds, oldest first. problem says what of them cannot be read; nil: all can.
func (s Fleet) Holds(ctx context.Context) (holds []model.Hold, problem error, err error) {
	texts, err := s.store.Clients.Read.HGetAll(ctx, s.store.Keys.Holds).Result()
	delete(texts, HoldChanges)
	for id, text := range texts {
		hold, unreadable := ReadHold(id, text)
		holds, problem = append(holds, hold), cmp.Or(problem, unreadable)
	}
	slices.SortFunc(holds, compareHolds)
	return holds, problem, redis.Wrap(err, "read holds")
}

// PutHold begins a hold, or changes end and reason of the one of that name: from when it returns on, no model starts that it picks. A dispatcher
// looks at it when it ends. Another selector is refused, as models wait that it would not pick.
func (s Fleet) PutHold(ctx context.Context, hold *model.Hold) error {
	_, err := s.putHold(ctx, hold, Order{})
	return err
}

func (s Fleet) putHold(ctx context.Context, hold *model.Hold, by Order) (bool, error) {
	if err := hold.Validate(); err != nil {
		return false, err
	}
	return s.Change(ctx, s.store.Keys.Holds, by, func() (Change, error) {
		before, found, err := s.hold(ctx, hold.ID)
		if err == nil && found && before.Selector.String() != hold.Selector.String() {
			err = document.Refuse("selector", "that of the hold "+hold.ID+" as it is, "+document.Found(before.Selector.String())+"; release it first", document.Found(hold.Selector.String()))
		}
		if err != nil {
			return Change{}, err
		}
		return changeHold(hold), nil
	})
}

// hold reads one hold, or what can be read of it.
func (s Fleet) hold(ctx context.Context, id string) (hold model.Hold, found bool, err error) {
	text, err := s.store.Clients.Read.HGet(ctx, s.store.Keys.Holds, id).Result()
	if err != nil {
		return hold, false, redis.Wrap(redis.IgnoreMissing(err), "read a hold")
	}
	hold, _ = ReadHold(id, text)
	return hold, true, nil
}

// changeHold stores a hold, and lets a dispatcher look when it ends.
func changeHold(hold *model.Hold) Change {
	recheck := hold.Until
	if recheck.IsZero() {
		recheck = model.Never
	}
	text := holdText{
		Selector: hold.Selector.String(), Since: model.FormatTime(hold.Since), Until: model.FormatTime(hold.Until),
		Reason: document.Shorten(hold.Reason, document.MaxText), By: document.Shorten(hold.By, model.MaxBy),
	}
	if hold.Within > 0 {
		text.Within = document.FormatDuration(hold.Within)
	}
	raw, _ := json.Marshal(text) // texts only
	return Change{Fields: []string{hold.ID, string(raw)}, Gate: hold.Blocker(), Recheck: recheck, Hold: true}
}

// ReleaseHold ends a hold at now, and lets its models start within a time; false: there is none of that name, or it has ended.
func (s Fleet) ReleaseHold(ctx context.Context, id string, within time.Duration, now time.Time) (bool, error) {
	return s.releaseHold(ctx, id, &within, now, Order{})
}

// releaseHold is ReleaseHold; without a time it is that of the hold.
func (s Fleet) releaseHold(ctx context.Context, id string, within *time.Duration, now time.Time, by Order) (bool, error) {
	return s.Change(ctx, s.store.Keys.Holds, by, func() (Change, error) {
		hold, found, err := s.hold(ctx, id)
		if err != nil || !found || hold.Ended(now) {
			return Change{}, err
		}
		if hold.Until = now; within != nil {
			hold.Within = *within
		}
		if !hold.Since.Before(now) {
			hold.Since = now.Add(-time.Millisecond)
		}
		return changeHold(&hold), nil
	})
}

// HoldSum is a hold in all parts of a queue.
type HoldSum struct {
	model.Hold
	Released bool  `json:"ended"`  // its models are being let go
	Parked   int64 `json:"parked"` // models that wait for it
}

// Holds reads the holds of all parts, oldest first.
func (q QueueFleet) Holds(ctx context.Context) ([]HoldSum, error) {
	read := func(part *Store) (sums []HoldSum, err error) {
		now, err := part.Now(ctx)
		if err != nil {
			return nil, err
		}
		holds, problem, err := part.Fleet().Holds(ctx)
		if err := cmp.Or(err, problem); err != nil {
			return nil, err
		}
		for _, hold := range holds {
			parked, err := part.Fleet().CountParked(ctx, hold.Blocker())
			if err != nil {
				return nil, err
			}
			sums = append(sums, HoldSum{hold, hold.Ended(now), parked})
		}
		return sums, nil
	}
	add := func(sum, more *HoldSum) {
		if sum.ID == "" {
			sum.Hold = more.Hold
		}
		sum.Parked, sum.Released = sum.Parked+more.Parked, more.Released
	}
	return SumOf(q.queue, read, func(h *HoldSum) string { return h.ID }, add, func(a, b HoldSum) int { return compareHolds(a.Hold, b.Hold) })
}

// NewHoldID is a name for a hold to which nobody has given one.
func NewHoldID() string { return "h" + Letters()[:6] }
