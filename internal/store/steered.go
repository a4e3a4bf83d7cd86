package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Steered is what keeps a model from starting, or would, or counts its attempt, as it was at one instant.
type Steered struct {
	Gates   model.Gates
	Limits  []model.Limit // of the model, in the order of their keys
	Rooms   model.Rooms   // of these
	Circuit *KeyCircuit   // that it has, or waits for; nil: none
	// Place is its place among the models that wait for its gate, from 1, of so many; 0: it waits for none.
	Place, Waiting int64
}

// Steered reads that of a model at now. Of a model and a queue that use none of it there is little to read.
func (s Report) Steered(ctx context.Context, m *model.Model, now time.Time) (w Steered, err error) {
	if w.Gates, err = s.Gates(ctx); err != nil {
		return w, err
	}
	w.Limits = w.Gates.LimitsOf(m, now)
	var names []string
	for _, limit := range w.Limits {
		names = append(names, limit.Name)
	}
	if w.Rooms, err = s.Rooms(ctx, names, nil, now); err != nil {
		return w, err
	}
	kind, key := m.ParkedBy.Split()
	if kind != model.GateCircuit {
		key = ""
	}
	if key = cmp.Or(key, m.CircuitKey()); key != "" {
		fields, err := s.Clients.Read.HGetAll(ctx, s.Keys.Circuit(key)).Result()
		if err != nil {
			return w, fmt.Errorf("read a circuit: %w", err)
		}
		circuit := newKeyCircuit(key, fields)
		w.Circuit = &circuit
	}
	if !m.Parked() {
		return w, nil
	}
	pipe, set := s.Clients.Read.Pipeline(), s.Keys.ParkedBy(string(m.ParkedBy))
	place, waiting := pipe.ZRank(ctx, set, m.UID), pipe.ZCard(ctx, set)
	if err := ExecReads(ctx, pipe); err != nil {
		return w, fmt.Errorf("read what waits for a gate: %w", err)
	}
	if place.Err() == nil {
		w.Place, w.Waiting = place.Val()+1, waiting.Val()
	}
	return w, nil
}
