package scripts

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// The fields of the hash <queue>:circuit:<key> that a decision depends on.
var circuitFields = []string{"opened_at", "probe_at", "probe"}

// Rooms reads what keys of limits have left at now, and the circuits of keys.
func (s *Store) Rooms(ctx context.Context, limits, circuits []string, now time.Time) (model.Rooms, error) {
	rooms := model.Rooms{Keys: map[string]*model.Room{}, Circuits: map[string]*model.CircuitState{}}
	pipe := s.clients.Read.Pipeline()
	running := sendEach(limits, func(name string) *redis.IntCmd { return pipe.ZCount(ctx, s.Keys.Limit(name), millis(now), "+inf") })
	slots := sendEach(limits, func(name string) *redis.StringCmd { return pipe.Get(ctx, s.Keys.Rate(name)) })
	states := sendEach(circuits, func(name string) *redis.SliceCmd { return pipe.HMGet(ctx, s.Keys.Circuit(name), circuitFields...) })
	if err := execReads(ctx, pipe); err != nil {
		return rooms, fmt.Errorf("read limits and circuits: %w", err)
	}
	for i, name := range limits {
		rooms.Keys[name] = &model.Room{Running: int(running[i].Val()), Slots: model.ParseSlots(slots[i].Val())}
	}
	for i, name := range circuits {
		rooms.Circuits[name] = readCircuit(namedValues(circuitFields, states[i].Val()))
	}
	return rooms, s.dropLostProbes(ctx, rooms.Circuits)
}

// dropLostProbes takes a probe out of a circuit whose model does not run: nobody would ever settle it.
func (s *Store) dropLostProbes(ctx context.Context, circuits map[string]*model.CircuitState) error {
	for _, c := range circuits {
		if c.Probe == "" {
			continue
		}
		switch err := s.clients.Read.ZScore(ctx, s.Keys.Running(), c.Probe).Err(); {
		case missing(err):
			c.Probe = ""
		case err != nil:
			return fmt.Errorf("look for a probe: %w", err)
		}
	}
	return nil
}

func readCircuit(fields map[string]string) *model.CircuitState {
	c := &model.CircuitState{Probe: fields["probe"]}
	c.OpenedAt, _ = readStoredTime(fields["opened_at"])
	c.ProbeAt, _ = readStoredTime(fields["probe_at"])
	return c
}
