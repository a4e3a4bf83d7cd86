package dispatcher

import (
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// expire decides about a model in the running set whose attempt has expired: it failed by timeout, unless nobody ever took the attempt,
// which is then withdrawn, or it was taken late. A begun attempt may be in the input list again, requeued when its
// worker died: it was taken, and its entry goes with it. Without that, an attempt which kills its workers would never fail.
//
// An attempt that was started after the list was read is left alone, as the list says nothing about it. Times would mislead when the clock was set
// back.
func (d *Dispatcher) expire(record *store.Record, list *inputList, now time.Time) *store.Transition {
	switch {
	case !record.Exists:
		return record.Remove()
	case !record.Running() || record.ExpiresAt().After(now) || list != nil && list.missing[record.UID] != record.AttemptUID:
		return record.Mend()
	}
	decide := record.Withdraw
	entry, waits := "", false
	if list != nil {
		entry, waits = list.queued[record.AttemptUID]
	}
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

type inputList struct {
	queued  map[string]string // its entries by attempt uid
	missing map[string]string // attempts by model, not found before; a newer one may be there now
	samples model.HeadSamples
}
