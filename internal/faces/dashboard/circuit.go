package dashboard

import (
	"context"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// circuit is a circuit as a page shows it.
type circuit struct {
	store.KeyCircuit

	State string
}

// Attempts are the last ones, oldest first: failed or answered.
func (c *circuit) Attempts() (words []string) {
	for _, failed := range c.Recent[max(0, len(c.Recent)-maxAttempts):] {
		words = append(words, map[bool]string{true: "failed", false: "answered"}[failed == '1'])
	}
	return words
}

// maxAttempts is how many of the last attempts are drawn.
const maxAttempts = 20

func readCircuits(ctx context.Context, req *request, keys []string) ([]circuit, error) {
	found, err := req.queue.Fleet().Circuits(ctx, keys...)
	if err != nil {
		return nil, err
	}
	circuits := make([]circuit, len(found))
	for i, one := range found {
		c := circuit{KeyCircuit: one, State: "closed"}
		if one.Key == model.QueueCircuitKey && !one.Open() {
			status, err := req.queue.Fleet().QueueCircuit(ctx)
			if err != nil {
				return nil, err
			}
			if !status.On {
				c.State = "off"
			}
		}
		if one.Open() {
			c.State = "open"
		}
		circuits[i] = c
	}
	return circuits, nil
}

func openCircuit(ctx context.Context, req *request) (outcome, error) {
	key, after := req.get("key"), policy.DefaultProbe
	switch {
	case key == model.QueueCircuitKey:
		status, err := req.queue.Parts[0].QueueCircuit(ctx)
		if err != nil {
			return outcome{}, err
		}
		after = status.Window
	case !isKey(key):
		return outcome{}, document.Refuse("key", "a key such as host=example.com, or "+model.QueueCircuitKey, document.Found(key))
	}
	if text := req.get("probe"); text != "" {
		var err error
		if after, err = document.ParseDuration(text); err != nil || after <= 0 {
			return outcome{}, document.Refuse("probe", "a length of time such as 5m", document.Found(text))
		}
	}
	_, err := req.queue.Fleet().OpenCircuit(ctx, key, req.by, req.get("reason"), after)
	return outcome{text: "The circuit " + key + " is open, for " + document.FormatDuration(after) + " at least.", next: req.Link("steering", "key", key)}, err
}

func closeCircuit(ctx context.Context, req *request) (outcome, error) {
	key := req.get("key")
	if key != model.QueueCircuitKey && !isKey(key) {
		return outcome{}, document.Refuse("key", "that of an open circuit", document.Found(key))
	}
	closed, err := req.queue.Fleet().CloseCircuit(ctx, key, req.by)
	if err == nil && !closed {
		err = document.Refuse("key", "that of an open circuit", document.Found(key))
	}
	return outcome{text: "The circuit " + key + " is closed: its models start again.", next: req.Link("steering", "key", key)}, err
}
