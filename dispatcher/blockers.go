package dispatcher

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// checkBlockers finds models whose blocker may have ended. Open circuits stay among the blockers, so that people still see them when no model waits.
func (d *Dispatcher) checkBlockers(ctx context.Context, w *work) error {
	var open []model.Blocker
	for _, blocker := range w.due.Looks {
		opens, again := w.due.Gates.Opens(blocker, w.due.Now)
		if opens {
			open, again = append(open, blocker), w.due.Now
		}
		w.checks = append(w.checks, store.BlockerCheck{Blocker: blocker, Again: again, Closed: !opens})
	}
	if len(open) == 0 {
		return nil
	}
	parked, err := d.store.ParkedBy(ctx, open, max(1, d.config.Batch/len(open)))
	w.blockers = map[string]model.Blocker{}
	circuits := map[string]bool{} // whether any model waits
	for i, uids := range parked {
		switch kind, name := open[i].Split(); kind {
		case model.BlockerLimit:
			uids = uids[:min(len(uids), 2)] // so that each key has its turn
		case model.BlockerCircuit:
			circuits[name] = len(uids) > 0
		}
		for _, uid := range uids {
			w.waiting, w.blockers[uid] = append(w.waiting, uid), open[i]
		}
	}
	if err != nil || len(circuits) == 0 {
		return err
	}
	limiters, err := d.store.Limiters(ctx, nil, slices.Sorted(maps.Keys(circuits)), w.due.Now)
	for i := range w.checks {
		check := &w.checks[i]
		if kind, name := check.Blocker.Split(); kind == model.BlockerCircuit && limiters.Circuits[name] != nil && limiters.Circuits[name].Open() {
			if check.Closed = true; !circuits[name] {
				check.Again = w.due.Now.Add(time.Minute)
			}
		}
	}
	return err
}

// passBlocker decides about a model whose blocker may have ended; nil: it waits on.
func (d *Dispatcher) passBlocker(record *store.Record, w *work) *store.Transition {
	blocker, now := w.blockers[record.UID], w.due.Now
	if !record.Exists || !record.Parked() || record.ParkedBy != blocker {
		return record.Leave(store.Index{Kind: store.KeyGate, Name: string(blocker)})
	}
	if kind, _ := blocker.Split(); w.left == 0 && kind != model.BlockerHold && kind != model.BlockerCalendar {
		return nil
	}
	decision, goes := w.due.Gates.Pass(&record.Model, &w.limiters, d.config.NewUID(), now)
	if !goes {
		for i := range w.checks { // a change notifies the dispatcher earlier
			if w.checks[i].Blocker == blocker {
				w.checks[i].Again = decision.Recheck
			}
		}
		return nil
	}
	return w.starts(record, decision)
}
