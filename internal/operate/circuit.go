package operate

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Circuit is the circuit of a key; in a queue of several parts, the one that opened first.
type Circuit struct {
	Key  string `json:"key"`
	Open bool   `json:"open"`
	flow.KeyCircuit
	*QueueCircuit
	*OpenParts
}

// QueueCircuit are the further fields of the circuit of a queue.
type QueueCircuit struct {
	On        bool          `json:"on"`
	Share     float64       `json:"share"`
	Window    time.Duration `json:"window"`
	Min       int           `json:"min"`
	Successes int64         `json:"successes"`
	Failures  int64         `json:"failures"`
}

// OpenParts counts the parts of a queue in which a circuit is open.
type OpenParts struct {
	Parts     int `json:"parts"`
	OpenParts int `json:"open_parts"`
}

// State is open, closed or off.
func (c *Circuit) State() string {
	switch {
	case c.Open:
		return "open"
	case c.QueueCircuit != nil && !c.On:
		return "off"
	default:
		return "closed"
	}
}

// Circuits reads the circuits of these keys; without keys, of all that have counted anything within a week, open ones first.
func (o Operator) Circuits(ctx context.Context, keys ...string) ([]Circuit, error) {
	found, err := flow.OfQueue(o.Queue).Circuits(ctx, keys...)
	if err != nil {
		return nil, err
	}
	circuits := make([]Circuit, len(found))
	for i, f := range found {
		c := Circuit{Key: f.Key, Open: f.Open(), KeyCircuit: f}
		if len(o.Queue.Parts) > 1 {
			c.OpenParts = &OpenParts{len(o.Queue.Parts), f.OpenParts}
		}
		if c.Key == model.QueueCircuitKey {
			s, err := flow.OfQueue(o.Queue).QueueCircuit(ctx)
			if err != nil {
				return nil, err
			}
			c.QueueCircuit = &QueueCircuit{s.On, s.Share, s.Window, s.Min, s.Successes, s.Failures}
		}
		circuits[i] = c
	}
	return circuits, nil
}

// OpenCircuit opens the circuit of a key until a probe is answered, for a time at least. Without one, that is the usual one, or the window of the
// circuit of the queue.
func (o Operator) OpenCircuit(ctx context.Context, key, probe, reason string) (after time.Duration, err error) {
	if key != model.QueueCircuitKey && (strings.HasPrefix(key, "{") || (&model.Limit{Name: key, Running: 1}).Validate() != nil) {
		return 0, refuse("key", "a key such as host=example.com, or "+model.QueueCircuitKey, document.Found(key))
	}
	if after = policy.DefaultProbe; key == model.QueueCircuitKey {
		status, err := flow.Of(o.Queue.Parts[0]).QueueCircuit(ctx)
		if err != nil {
			return 0, err
		}
		after = status.Window
	}
	if probe != "" {
		if after, err = document.ParseDuration(probe); err != nil || after <= 0 {
			return 0, refuse("probe", "a length of time such as 5m", document.Found(probe))
		}
	}
	_, err = flow.OfQueue(o.Queue).OpenCircuit(ctx, key, o.By, reason, after)
	return after, err
}

// CloseCircuit closes the circuit of a key. The one of the queue resets its counts, even if it is closed.
func (o Operator) CloseCircuit(ctx context.Context, key string) error {
	closed, err := flow.OfQueue(o.Queue).CloseCircuit(ctx, key, o.By)
	return requireNamed(closed || key == model.QueueCircuitKey, err, key, "the key of an open circuit")
}

// CircuitSettings change when the circuit of the queue opens. Empty fields stay as they are.
type CircuitSettings struct {
	On, Off       bool
	Share, Window string
	Min           int
}

// SetCircuit sets when the circuit of the queue opens, and switches it on or off.
func (o Operator) SetCircuit(ctx context.Context, key string, s CircuitSettings) error {
	if key != model.QueueCircuitKey {
		return refuse("key", model.QueueCircuitKey+", as the circuits of other keys are set in policies", document.Found(key))
	}
	status, err := flow.Of(o.Queue.Parts[0]).QueueCircuit(ctx)
	if err != nil {
		return err
	}
	circuit := status.QueueCircuit
	circuit.On = (circuit.On || s.On) && !s.Off
	if s.Share != "" {
		number, percent := strings.CutSuffix(strings.TrimSpace(s.Share), "%")
		if circuit.Share, err = strconv.ParseFloat(number, 64); err != nil {
			return refuse("share", "a share such as 50% or 0.5", document.Found(s.Share))
		}
		if percent {
			circuit.Share /= 100
		}
	}
	if s.Window != "" {
		if circuit.Window, err = document.ParseDuration(s.Window); err != nil {
			return refusedAt("window", err)
		}
	}
	circuit.Min = cmp.Or(s.Min, circuit.Min)
	if err := circuit.Validate(); err != nil {
		return refused(err)
	}
	return flow.OfQueue(o.Queue).SetQueueCircuit(ctx, circuit, o.By)
}

// LimitRequest asks for a limit.
type LimitRequest struct {
	Key     string // or a template of keys
	Running string // attempts at a time; empty: any number
	Rate    string // of starts; empty: any
	Reason  string
	Ending  Ending
}

// SetLimit limits a key, or all keys of a template.
func (o Operator) SetLimit(ctx context.Context, r LimitRequest) (err error) {
	limit := model.Limit{Name: r.Key, Reason: r.Reason, By: o.By}
	if r.Running != "" {
		if limit.Running, err = strconv.Atoi(r.Running); err != nil {
			return refuse("running", fmt.Sprint("1 to ", model.MaxRunning), document.Found(r.Running))
		}
	}
	if limit.Rate, err = policy.ReadRate(r.Rate); err != nil {
		return refused(err)
	}
	if limit.Since, err = o.Queue.Parts[0].Now(ctx); err != nil {
		return err
	}
	if limit.Until, err = r.Ending.at(limit.Since); err != nil {
		return err
	}
	if err := limit.Validate(); err != nil {
		return refused(err)
	}
	return flow.OfQueue(o.Queue).PutLimit(ctx, &limit)
}

// RemoveLimit forgets a limit that was set.
func (o Operator) RemoveLimit(ctx context.Context, key string) error {
	removed, err := flow.OfQueue(o.Queue).RemoveLimit(ctx, key)
	return requireNamed(removed, err, key, "a limit that was set")
}

// OpenLimit opens a key of limits that an answer with a retry_after has closed.
func (o Operator) OpenLimit(ctx context.Context, key string) error {
	opened, err := flow.OfQueue(o.Queue).OpenLimit(ctx, key)
	return requireNamed(opened, err, key, "a key that an answer has closed")
}

// Limits lists these keys and those with a limit of an operator; without keys, all that are in use.
func (o Operator) Limits(ctx context.Context, keys ...string) ([]flow.LimitUse, error) {
	return flow.OfQueue(o.Queue).LimitUses(ctx, keys...)
}
