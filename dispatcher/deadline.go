package dispatcher

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// expire decides about a model that stands in the running set with a passed deadline: it has failed by timeout, unless nobody ever took the
// attempt, which is then withdrawn, or it was taken late. One that a worker has begun may stand in the input list again, requeued when its
// worker died: it was taken, and its entry goes with it. Without that, an attempt which kills its workers would never fail.
func (d *Dispatcher) expire(record *store.Record, list *inputList, now time.Time) *store.Transition {
	switch {
	case !record.Exists:
		return record.Remove()
	case !record.Running() || record.DeadlineAt.After(now) || list.precedes(record):
		return record.Mend()
	}
	decide := record.Withdraw
	entry, waits := list.entry(record.AttemptUID)
	switch {
	case !record.ProcessingAt.IsZero():
		decide = record.Expire
	case list != nil && !waits:
		decide = func(now time.Time) model.Decision { return record.ExpireOrExtend(list.samples, now) }
	}
	transition := record.Decide(decide(now), now)
	if waits {
		transition.TakeBack = entry
	}
	return transition
}

// passMissing decides about models whose attempt has expired and was not found in the input list by its entry.
func (d *Dispatcher) passMissing(ctx context.Context, missing []*store.Transition, now time.Time, round *Round) error {
	w, list := work{due: store.Due{Now: now}}, inputList{missing: map[string]string{}}
	for _, withdrawal := range missing {
		w.due.Expired = append(w.due.Expired, withdrawal.UID())
		list.missing[withdrawal.UID()] = withdrawal.AttemptUID()
	}
	var err error
	if list.queued, err = d.store.Queued(ctx); err != nil {
		return err
	}
	if list.samples, err = d.store.HeadSamples(ctx); err != nil {
		return err
	}
	_, err = d.pass(ctx, &w, &list, round)
	return err
}

// inputList is the input list as it was read.
type inputList struct {
	queued  map[string]string // its entries by attempt uid
	missing map[string]string // attempts by model, not found before; a newer one may stand there now
	samples model.HeadSamples
}

// precedes reports whether the attempt of a record was started after the list was read, so that the list says nothing about it. Times would mislead
// when the clock was set back.
func (l *inputList) precedes(record *store.Record) bool {
	return l != nil && l.missing[record.UID] != record.AttemptUID
}

// entry returns the entry of an attempt that still waits in the list.
func (l *inputList) entry(attemptUID string) (entry string, waits bool) {
	if l != nil {
		entry, waits = l.queued[attemptUID]
	}
	return entry, waits
}
