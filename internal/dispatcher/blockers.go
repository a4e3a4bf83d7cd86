package dispatcher

import (
	"cmp"
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// checkBlockers finds models whose blocker may have ended. What keys have left is read before their models, so that no more of these are read
// than may start. Open circuits stay among the blockers, so that people still see them when no model waits.
func (d *Dispatcher) checkBlockers(ctx context.Context, w *work) (err error) {
	w.blockers, w.places = map[string]model.Blocker{}, map[model.Blocker]int{}
	var open []model.Blocker
	names := map[string][]string{} // by kind
	for i, blocker := range w.due.Rechecks {
		opens, again := w.due.Blockers.Opens(blocker, w.due.Now)
		if opens {
			kind, name := blocker.Split()
			open, names[kind], again = append(open, blocker), append(names[kind], name), w.due.Now
		} else {
			w.soon(again)
		}
		w.places[blocker] = i
		w.checks = append(w.checks, flow.BlockerCheck{Blocker: blocker, Again: again, Closed: !opens})
	}
	if len(open) == 0 {
		return nil
	}
	if w.known, err = d.flow.Limiters(ctx, names[model.BlockerLimit], names[model.BlockerCircuit], w.due.Now); err != nil {
		return err
	}
	w.limiters.Learn(w.known)
	waiting, err := d.flow.ParkedBy(ctx, open, func(blocker model.Blocker) int { return min(max(1, d.config.Batch/len(open)), d.room(blocker, w)) })
	for i, uids := range waiting {
		check := &w.checks[w.places[open[i]]]
		if kind, name := open[i].Split(); kind == model.BlockerCircuit && w.known.Circuits[name] != nil && w.known.Circuits[name].Open() {
			if check.Closed = true; len(uids) == 0 {
				check.Again = w.due.Now.Add(time.Minute)
			}
		}
		for _, uid := range uids {
			w.blockers[uid] = open[i]
		}
	}
	w.waiting = interleave(waiting...) // so that each key has its turn
	return err
}

// room is how many models of a blocker to read: of a key as many as may start, by the limit of the last one that started.
func (d *Dispatcher) room(blocker model.Blocker, w *work) int {
	kind, name := blocker.Split()
	switch limit := d.limits[name]; {
	case kind != model.BlockerLimit:
		return d.config.Batch
	case limit == 0:
		return 2
	default:
		return max(1, limit-w.known.Keys[name].Running)
	}
}

// passBlocker decides about a model whose blocker may have ended; nil: it waits on.
func (d *Dispatcher) passBlocker(record *store.Record, w *work) *store.Transition {
	blocker, now := w.blockers[record.UID], w.due.Now
	if !record.Exists || !record.Parked() || record.ParkedBy != blocker {
		return record.Leave(store.Index{Kind: store.KeyBlocker, Name: string(blocker)})
	}
	if kind, _ := blocker.Split(); w.left == 0 && kind != model.BlockerHold && kind != model.BlockerCalendar {
		return nil
	}
	decision, goes := w.due.Blockers.Pass(&record.Model, &w.limiters, d.config.NewUID(), now)
	if !goes || decision.Event == model.EventStart {
		w.checks[w.places[blocker]].Again = cmp.Or(decision.Recheck, now) // a change notifies the dispatcher earlier
	}
	if !goes {
		return nil
	}
	return d.starts(record, w, decision)
}
