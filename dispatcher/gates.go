package dispatcher

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// spare is how many due models beyond the room for them are looked at: a page, while some may turn out to be parked, so that these never hide the
// others.
func (d *Dispatcher) spare(due store.Due) int {
	if due.Gates.Empty() && !d.steered {
		return 0
	}
	return d.config.Batch
}

// fewOfAKey is how many models that wait for one limit are looked at in a round: each key has its turn.
const fewOfAKey = 2

// lookAtGates finds models that wait for gates which may let them go on.
func (d *Dispatcher) lookAtGates(ctx context.Context, w *work) error {
	var open []model.Blocker
	for _, gate := range w.due.Looks {
		opens, again := w.due.Gates.Opens(gate, w.due.Now)
		if opens {
			open, again = append(open, gate), w.due.Now
		}
		w.looks = append(w.looks, store.BlockerCheck{Blocker: gate, Again: again, Closed: !opens})
	}
	if len(open) == 0 {
		return nil
	}
	waiting, err := d.store.ParkedBy(ctx, open, max(1, d.config.Batch/len(open)))
	w.gates = map[string]model.Blocker{}
	circuits := map[string]bool{} // whether any model waits
	for i, uids := range waiting {
		switch kind, name := open[i].Split(); kind {
		case model.BlockerLimit:
			uids = uids[:min(len(uids), fewOfAKey)]
		case model.BlockerCircuit:
			circuits[name] = len(uids) > 0
		}
		for _, uid := range uids {
			w.gated, w.gates[uid] = append(w.gated, uid), open[i]
		}
	}
	if err != nil || len(circuits) == 0 {
		return err
	}
	return d.keepOpen(ctx, w, circuits)
}

// lookUnwaited is how often a circuit is looked at that is open and that no model waits for.
const lookUnwaited = time.Minute

// keepOpen keeps circuits that are open among the gates, so that people are told of them although no model waits, or the last is to try.
func (d *Dispatcher) keepOpen(ctx context.Context, w *work, circuits map[string]bool) error {
	rooms, err := d.store.Limiters(ctx, nil, slices.Sorted(maps.Keys(circuits)), w.due.Now)
	for i := range w.looks {
		look := &w.looks[i]
		if kind, name := look.Blocker.Split(); kind == model.BlockerCircuit && rooms.Circuits[name] != nil && rooms.Circuits[name].Open() {
			if look.Closed = true; !circuits[name] {
				look.Again = w.due.Now.Add(lookUnwaited)
			}
		}
	}
	return err
}

// lookAgain puts off the next look at a gate: somebody tells of it before that.
func (w *work) lookAgain(gate model.Blocker, at time.Time) {
	for i := range w.looks {
		if w.looks[i].Blocker == gate {
			w.looks[i].Again = at
		}
	}
}

// pastGate decides about a model that stands among those that wait for a gate which may let it go on; nil: it does not.
func (d *Dispatcher) pastGate(record *store.Record, w *work) *store.Transition {
	gate, now := w.gates[record.UID], w.due.Now
	if !record.Exists || !record.Parked() || record.ParkedBy != gate {
		return record.Leave(store.Index{Kind: store.KeyGate, Name: string(gate)})
	}
	if kind, _ := gate.Split(); w.left == 0 && kind != model.BlockerHold && kind != model.BlockerCalendar {
		return nil
	}
	decision, goes := w.due.Gates.Pass(&record.Model, &w.rooms, d.config.NewUID(), now)
	if !goes {
		w.lookAgain(gate, decision.Recheck)
		return nil
	}
	return w.starts(record, decision)
}

// starts notes the room that a start takes.
func (w *work) starts(record *store.Record, decision model.Decision) *store.Transition {
	if decision.Event == model.EventStart {
		w.left--
	}
	return record.Decide(decision, w.due.Now)
}

// learn reads what keys have left that the models of a part are counted by, if they are counted by any.
func (d *Dispatcher) learn(ctx context.Context, p *part, w *work) error {
	limits, circuits := map[string]bool{}, map[string]bool{}
	for _, record := range p.records {
		keys, circuit := w.due.Gates.Needs(&record.Model, w.due.Now)
		for _, key := range keys {
			limits[key] = true
		}
		if circuit != "" {
			circuits[circuit] = true
		}
	}
	if len(limits)+len(circuits) == 0 {
		return nil
	}
	var err error
	p.rooms, err = d.store.Limiters(ctx, slices.Sorted(maps.Keys(limits)), slices.Sorted(maps.Keys(circuits)), w.due.Now)
	for _, name := range slices.Sorted(maps.Keys(p.rooms.Keys)) { // the same each time, for the simulation
		if room := p.rooms.Keys[name]; err == nil && len(room.Lapsed) > 0 {
			err = d.store.FreeLost(ctx, name, room, w.due.Now)
		}
	}
	return err
}
