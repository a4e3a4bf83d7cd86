package dispatcher

import (
	"context"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// spareWhenSteered is how many due models are looked at beyond the room for them while some may turn out to be parked, so that these never
// hide the others.
const spareWhenSteered = 100

// spare is how many due models beyond the room for them are looked at.
func (d *Dispatcher) spare(due scripts.Due) int {
	if due.Gates.Empty() {
		return 0
	}
	return spareWhenSteered
}

// lookAtGates finds models that wait for gates which let them go on.
func (d *Dispatcher) lookAtGates(ctx context.Context, w *work) error {
	var open []model.Gate
	for _, gate := range w.due.Looks {
		opens, again := w.due.Gates.Opens(gate, w.due.Now)
		if opens {
			open, again = append(open, gate), w.due.Now
		}
		w.looks = append(w.looks, scripts.GateLook{Gate: gate, Again: again, Closed: !opens})
	}
	if len(open) == 0 {
		return nil
	}
	waiting, err := d.store.ParkedBy(ctx, open, max(1, d.config.Batch/len(open)))
	w.gates = map[string]model.Gate{}
	for i, uids := range waiting {
		for _, uid := range uids {
			w.gated, w.gates[uid] = append(w.gated, uid), open[i]
		}
	}
	return err
}

// pastGate decides about a model that stands among those that wait for a gate which has opened.
func (d *Dispatcher) pastGate(record *scripts.Record, w *work) *scripts.Transition {
	switch {
	case !record.Exists:
		return record.Leave(w.gates[record.UID])
	case !record.Parked() || record.ParkedBy != w.gates[record.UID]:
		return record.Leave(w.gates[record.UID])
	}
	return record.Decide(w.due.Gates.Pass(&record.Model, w.due.Now), w.due.Now)
}
