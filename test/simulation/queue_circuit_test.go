package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
)

// queueCircuitOf reads the circuit of the queue.
func queueCircuitOf(hash map[string]string) model.QueueCircuit {
	on := hash["on"] == "1"
	share, _ := strconv.ParseFloat(hash["share"], 64)
	window := time.Duration(count(hash["window_ms"])) * time.Millisecond
	return model.QueueCircuit{On: on, Open: hash["opened_at"] != "", Share: share, Window: window, Min: count(hash["min"])}
}

// end is one attempt that the circuit of the queue counts: when the tenth of its window began, and how it ended.
type end struct {
	tenth  int64 // Unix ms
	failed bool
}

// count notes an end that the circuit of the queue has to count.
func (p *replay) count(event model.Event, at time.Time) {
	counts := event == model.EventSuccess || event == model.EventFailure || event == model.EventTimeout
	if p.queueCircuit.On && counts {
		now := at.UnixMilli()
		p.ends = append(p.ends, end{now - now%(p.queueCircuit.Window.Milliseconds()/10), event != model.EventSuccess})
	}
}

// turn is what somebody does with the circuit of the queue by hand.
type turn struct{ to, at, probeAt string }

// turn does what `refreshd circuit open queue` and `close queue` do.
func (o *operatorRole) turn(ctx context.Context) error {
	store := o.server.store
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	if o.rng.IntN(3) == 0 {
		_, err = store.Fleet().CloseCircuit(ctx, model.QueueCircuitKey, "ann", now)
	} else {
		_, err = store.Fleet().OpenCircuit(ctx, model.QueueCircuitKey, "ann", "", now.Add(time.Duration(o.rng.IntN(4))*20*time.Second), now)
	}
	return err
}

// checkQueueCircuit checks what a measurement of the circuit of the queue has led to, or somebody who has opened or closed it.
func (p *replay) checkQueueCircuit() {
	told := slices.DeleteFunc(slices.Clone(p.after.journal), func(entry map[string]string) bool { return !aboutQueueCircuit(entry) })
	want, entry := p.afterMeasuring()
	if p.turned != nil {
		want, entry = p.afterTurning()
	}
	is := [2]string{p.after.queueCircuit["opened_at"], p.after.queueCircuit["probe_at"]}
	failIf(is != want || len(told) > 1 || entry == nil && len(told) > 0 || entry != nil && fmt.Sprint(told) != fmt.Sprint([]map[string]string{entry}),
		"the circuit of the queue is open since, and may be tried from, %q, want %q by %v, told was %v", is, want, entry, told)
}

// afterTurning is what somebody makes of the circuit of the queue, and what is told of it. What it has counted is forgotten.
func (p *replay) afterTurning() (is [2]string, entry map[string]string) {
	since, to := p.before.queueCircuit["opened_at"], p.turned.to
	if p.outdated() {
		return [2]string{since, p.before.queueCircuit["probe_at"]}, nil
	}
	p.ends = nil
	if (since == "") == (to == "opened") {
		entry = map[string]string{"event": "circuit_" + to, "key": "queue", "at": p.turned.at, "by": "ann"}
	}
	if to == "closed" {
		return [2]string{}, entry
	}
	return [2]string{cmp.Or(since, p.turned.at), p.turned.probeAt}, entry
}

// afterMeasuring is what a measurement makes of the circuit of the queue, and what is told of it. Without one it stays.
func (p *replay) afterMeasuring() (is [2]string, entry map[string]string) {
	is = [2]string{p.before.queueCircuit["opened_at"], p.before.queueCircuit["probe_at"]}
	if p.measured.IsZero() || p.before.queueCircuit["on"] != "1" {
		return is, nil
	}
	circuit := queueCircuitOf(p.before.queueCircuit)
	p.ends = slices.DeleteFunc(p.ends, func(e end) bool { // one from far ahead is from before the clock was set back
		return time.UnixMilli(e.tenth).Sub(p.measured).Abs() >= circuit.Window
	})
	total, failed := len(p.ends), 0
	for _, e := range p.ends {
		if e.failed {
			failed++
		}
	}
	at := model.FormatTime(p.measured)
	entry = map[string]string{"key": "queue", "at": at, "successes": strconv.Itoa(total - failed), "failures": strconv.Itoa(failed)}
	switch share := float64(failed); {
	case !circuit.Open && total >= circuit.Min && share >= circuit.Share*float64(total):
		entry["event"], is[0] = "circuit_opened", at
	case circuit.Open && !instant(is[1]).After(p.measured) && total > 0 && share < circuit.Share*float64(total)/2:
		entry["event"], is = "circuit_closed", [2]string{}
	default:
		return is, nil
	}
	return is, entry
}

func aboutQueueCircuit(entry map[string]string) bool {
	return aboutCircuit(entry) && entry["key"] == model.QueueCircuitKey
}
