package store

import (
	"cmp"
	"context"
	"strconv"

	"github.com/refreshd/refreshd/model"
)

// SetQueueCircuit sets the circuit of the queue and switches it on or off, with the name of who does it. Switched off, it is closed. Whether it is to
// be open is not set.
func (s Fleet) SetQueueCircuit(ctx context.Context, circuit model.QueueCircuit, by string) error {
	if err := circuit.Validate(); err != nil {
		return err
	}
	set := change{fields: []string{
		"on", cmp.Or(flag(circuit.On), "0"), "share", strconv.FormatFloat(circuit.Share, 'f', -1, 64),
		"window_ms", strconv.FormatInt(circuit.Window.Milliseconds(), 10), "min", strconv.Itoa(circuit.Min),
	}}
	var was QueueCircuitStatus
	_, err := s.change(ctx, s.Keys.QueueCircuit(), order{}, func() (_ change, err error) {
		was, err = s.QueueCircuit(ctx)
		return set, err
	})
	if err != nil || circuit.On || !was.On && !was.Open {
		return Wrap(err, "set the circuit of the queue")
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	_, err = s.CloseCircuit(ctx, model.QueueCircuitKey, by, now)
	return err
}

// QueueCircuit adds up what all parts have counted. The settings are those of the first.
func (q QueueFleet) QueueCircuit(ctx context.Context) (sum QueueCircuitStatus, err error) {
	err = q.Each(func(part *Store) error {
		status, err := part.QueueCircuit(ctx)
		if part == q.Parts[0] {
			sum = status
			return err
		}
		sum.Successes, sum.Failures = sum.Successes+status.Successes, sum.Failures+status.Failures
		return err
	})
	return sum, err
}

// SetQueueCircuit sets the circuit of the queue in every part. Each measures for itself.
func (q QueueFleet) SetQueueCircuit(ctx context.Context, circuit model.QueueCircuit, by string) error {
	return q.write(func(part *Store) error { return part.Fleet().SetQueueCircuit(ctx, circuit, by) })
}
