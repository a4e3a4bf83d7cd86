package dashboard

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// circuit is a circuit as a page shows it.
type circuit struct {
	store.KeyCircuit

	State        string
	Since, Probe moment
	Attempts     []string // what the last ones have come to, oldest first: failed or answered
	Queue        bool     // it is that of the whole queue
}

// mostAttempts is how many of the last attempts are drawn.
const mostAttempts = 20

func readCircuits(ctx context.Context, v *visit, keys []string, now time.Time) ([]circuit, error) {
	slices.Sort(keys)
	sums, err := v.queue.Fleet().Circuits(ctx, slices.Compact(keys)...)
	if err != nil {
		return nil, err
	}
	circuits := make([]circuit, len(sums))
	for i, sum := range sums {
		c := circuit{KeyCircuit: sum, State: "closed", Since: newMoment(sum.OpenedAt, now), Probe: newMoment(sum.ProbeAt, now), Queue: sum.Key == model.QueueCircuitKey}
		for _, failed := range sum.Recent[max(0, len(sum.Recent)-mostAttempts):] {
			c.Attempts = append(c.Attempts, map[bool]string{true: "failed", false: "answered"}[failed == '1'])
		}
		if c.Queue && !sum.Open() {
			status, err := v.queue.Fleet().QueueCircuit(ctx)
			if err != nil {
				return nil, err
			}
			if !status.On {
				c.State = "off"
			}
		}
		if sum.Open() {
			c.State = "open"
		}
		circuits[i] = c
	}
	return circuits, nil
}

func openCircuit(ctx context.Context, v *visit) (outcome, error) {
	key, after := v.get("key"), policy.DefaultProbe
	switch {
	case key == model.QueueCircuitKey:
		status, err := v.queue.Parts[0].QueueCircuit(ctx)
		if err != nil {
			return outcome{}, err
		}
		after = status.Window
	case !isKey(key):
		return outcome{}, document.Refuse("key", "a key such as host=example.com, or "+model.QueueCircuitKey, document.Found(key))
	}
	if text := v.get("probe"); text != "" {
		var err error
		if after, err = document.ParseDuration(text); err != nil || after <= 0 {
			return outcome{}, document.Refuse("probe", "a length of time such as 5m", document.Found(text))
		}
	}
	_, err := v.queue.Fleet().OpenCircuit(ctx, key, v.by, v.get("reason"), after)
	return outcome{told: "The circuit " + key + " is open, for " + document.FormatDuration(after) + " at least.", next: v.link("steering", "key", key)}, err
}

func closeCircuit(ctx context.Context, v *visit) (outcome, error) {
	key := v.get("key")
	if key != model.QueueCircuitKey && !isKey(key) {
		return outcome{}, document.Refuse("key", "that of an open circuit", document.Found(key))
	}
	closed, err := v.queue.Fleet().CloseCircuit(ctx, key, v.by)
	if err == nil && !closed {
		err = document.Refuse("key", "that of an open circuit", document.Found(key))
	}
	return outcome{told: "The circuit " + key + " is closed: its models start again.", next: v.link("steering", "key", key)}, err
}
