package flow

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// Admission lists, as of one instant, whatever keeps a model from starting, or would, or counts its attempt.
type Admission struct {
	Blockers model.Blockers
	Limits   []model.Limit  // of the model, in the order of their keys
	Rooms    model.Limiters // of these
	Circuit  *KeyCircuit    // that it has, or waits for; nil: none
	// Place is its place among the models that wait for its blocker, from 1, of so many; 0: it waits for none.
	Place, Waiting int64
}

// Admission reads the admission of a model at now.
func (in Inspection) Admission(ctx context.Context, m *model.Model, now time.Time) (w Admission, err error) {
	if w.Blockers, err = in.flow.store.Fleet().Blockers(ctx); err != nil {
		return w, err
	}
	w.Limits = w.Blockers.LimitsOf(m, now)
	names := redis.Map(w.Limits, func(limit model.Limit) string { return limit.Name })
	if w.Rooms, err = in.flow.ReadLimiters(ctx, names, nil, now); err != nil {
		return w, err
	}
	kind, key := m.ParkedBy.Split()
	if kind != model.BlockerCircuit {
		key = ""
	}
	if key = cmp.Or(key, m.CircuitKey()); key != "" {
		circuits, err := in.flow.Circuits(ctx, key)
		if err != nil {
			return w, err
		}
		w.Circuit, w.Rooms.Circuits[key] = &circuits[0], &circuits[0].CircuitState
	}
	if !m.Parked() {
		return w, nil
	}
	pipe, set := in.flow.store.Clients.Read.Pipeline(), in.flow.store.Keys.ParkedBy(string(m.ParkedBy))
	place, waiting := pipe.ZRank(ctx, set, m.UID), pipe.ZCard(ctx, set)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return w, fmt.Errorf("read what waits for a blocker: %w", err)
	}
	if place.Err() == nil {
		w.Place, w.Waiting = place.Val()+1, waiting.Val()
	}
	return w, nil
}
