package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Shown is a model as it was at one instant.
type Shown struct {
	Record    *store.Record
	Status    model.Status
	Now       time.Time
	Liveness  *model.Liveness // of those that serve its queue; nil: not read
	Rejection *Rejection      // nil: none, or nobody has looked
	Reason    string          // why it is disabled, or failed last; only in lists
	Because   string          // why it waits as it does; likewise
}

// ReadLiveness reads who serves the queue.
func (s *Shown) ReadLiveness(ctx context.Context, store *store.Store) error {
	liveness, err := store.Report().Liveness(ctx)
	s.Liveness = &liveness
	return err
}

// ReadModel reads one model that must be stored.
func ReadModel(ctx context.Context, store *store.Store, uid string) (Shown, error) {
	found, err := ReadModels(ctx, store, []string{uid})
	if err != nil {
		return Shown{}, err
	}
	if len(found) == 0 {
		return Shown{}, fmt.Errorf("%s: %w", uid, ErrUnknownModel)
	}
	found[0].Rejection, err = readRejection(ctx, store, uid)
	return found[0], err
}

// ReadModels reads the models that are stored, in the order of uids.
func ReadModels(ctx context.Context, store *store.Store, uids []string) ([]Shown, error) {
	now, err := store.Now(ctx)
	if err != nil {
		return nil, err
	}
	records, err := store.Load(ctx, uids)
	if err != nil {
		return nil, err
	}
	if err := store.Report().TellBroken(ctx, records); err != nil {
		return nil, err
	}
	var queued map[string]string
	var found []Shown
	for _, uid := range uids {
		record := records[uid]
		if !record.Exists {
			continue
		}
		if queued == nil && record.Running() {
			if queued, err = store.Queued(ctx); err != nil {
				return nil, err
			}
		}
		_, waiting := queued[record.AttemptUID]
		found = append(found, Shown{Record: record, Status: record.Status(now, waiting), Now: now})
	}
	return found, nil
}

// ReadReasons reads why those models failed last that fail or are disabled, and what those wait for that are parked.
func ReadReasons(ctx context.Context, part *store.Store, found []Shown) error {
	var uids []string
	for _, one := range found {
		if r := one.Record; !r.FailingSince.IsZero() || r.Disabled {
			uids = append(uids, r.UID)
		}
	}
	reasons, err := part.Report().LastReasons(ctx, uids)
	var gates model.Blockers
	if err == nil && slices.ContainsFunc(found, func(one Shown) bool { return one.Record.Parked() }) {
		gates, err = part.Blockers(ctx)
	}
	for i, one := range found {
		found[i].Because = one.because(&gates, UTC)
		if r := one.Record; r.Disabled {
			found[i].Reason = cmp.Or(r.DisabledReason, reasons[r.UID])
		} else {
			found[i].Reason = reasons[r.UID]
		}
	}
	return err
}

// EachPicked hands over the models that a selector picks, in chunks and in no order.
func EachPicked(ctx context.Context, queue *store.Queue, selector model.Selector, visit func([]Shown) error) error {
	for _, part := range queue.Parts {
		err := part.Report().EachSelected(ctx, selector, func(uids []string) error {
			found, err := ReadModels(ctx, part, uids)
			if err != nil {
				return err
			}
			return visit(PickFrom(found, selector))
		})
		if err != nil {
			return queue.PartError(part, err)
		}
	}
	return nil
}

// PickFrom keeps the models that a selector picks.
func PickFrom(found []Shown, selector model.Selector) []Shown {
	return slices.DeleteFunc(found, func(s Shown) bool { return !selector.Matches(&s.Record.Model, s.Status, s.Now) })
}

// ReadPast reads one model that must be stored, and its attempts that ended last, newest first.
func ReadPast(ctx context.Context, store *store.Store, uid string) (Shown, []model.Attempt, error) {
	found, err := ReadModel(ctx, store, uid)
	if err != nil {
		return Shown{}, nil, err
	}
	attempts, err := store.Report().History(ctx, uid)
	return found, attempts, err
}

// ErrUnknownModel is the uid of a model that is not stored.
var ErrUnknownModel = errors.New("expected the uid of a stored model, found none of that name")
