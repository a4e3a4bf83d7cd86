package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// CircuitFields are the fields of the hash <queue>:circuit:<key> that a decision depends on.
var CircuitFields = []string{"opened_at", "probe_at", "probe"}

// Rooms reads what keys of limits have left at now, and the circuits of keys.
func (s *Store) Rooms(ctx context.Context, limits, circuits []string, now time.Time) (model.Rooms, error) {
	rooms := model.Rooms{Keys: map[string]*model.Room{}, Circuits: map[string]*model.CircuitState{}}
	pipe := s.Clients.Read.Pipeline()
	running := SendEach(limits, func(name string) *redis.IntCmd { return pipe.ZCard(ctx, s.Keys.Limit(name)) })
	lapsed := SendEach(limits, func(name string) *redis.StringSliceCmd {
		return pipe.ZRangeByScore(ctx, s.Keys.Limit(name), &redis.ZRangeBy{Min: "-inf", Max: "(" + Millis(now), Count: maxLapsed})
	})
	slots := SendEach(limits, func(name string) *redis.StringCmd { return pipe.Get(ctx, s.Keys.Rate(name)) })
	states := SendEach(circuits, func(name string) *redis.SliceCmd { return pipe.HMGet(ctx, s.Keys.Circuit(name), CircuitFields...) })
	if err := ExecReads(ctx, pipe); err != nil {
		return rooms, fmt.Errorf("read limits and circuits: %w", err)
	}
	for i, name := range limits {
		rooms.Keys[name] = &model.Room{Running: int(running[i].Val()), Lapsed: lapsed[i].Val(), Slots: model.ParseSlots(slots[i].Val())}
	}
	for i, name := range circuits {
		rooms.Circuits[name] = ReadCircuit(NamedValues(CircuitFields, states[i].Val()))
	}
	return rooms, s.dropLostProbes(ctx, rooms.Circuits)
}

// maxLapsed is how many slots of a key that are past their deadlines are looked at in a round: mostly there is none.
const maxLapsed = 10

// FreeLost frees those slots past their deadlines that no running attempt holds: nobody else would, as when the hash of a model was deleted by
// hand. An attempt that runs keeps its slots until it has ended.
func (s *Store) FreeLost(ctx context.Context, name string, room *model.Room, now time.Time) error {
	records, err := s.Load(ctx, room.Lapsed)
	if err != nil {
		return err
	}
	index, batch := Index{KeyLimit, name}, Batch{Now: now}
	for _, uid := range room.Lapsed {
		if r := records[uid]; !slices.Contains(model.CountedBy(r.Counted, model.GateLimit), name) {
			batch.Items = append(batch.Items, Item{Transition: r.Leave(index)})
		}
	}
	codes, err := s.Commit(ctx, batch)
	for i, code := range codes {
		if code == CodeBroken { // its key holds something else, and no transition can be made of it
			err = cmp.Or(err, s.forget(ctx, batch.Items[i].Transition.UID(), s.Keys.Limit(name)))
		}
		if code == CodeApplied || code == CodeBroken {
			room.Running--
		}
	}
	return err
}

// dropLostProbes takes a probe out of a circuit whose model does not run: nobody would ever settle it.
func (s *Store) dropLostProbes(ctx context.Context, circuits map[string]*model.CircuitState) error {
	for _, c := range circuits {
		if c.Probe == "" {
			continue
		}
		switch err := s.Clients.Read.ZScore(ctx, s.Keys.Running(), c.Probe).Err(); {
		case Missing(err):
			c.Probe = ""
		case err != nil:
			return fmt.Errorf("look for a probe: %w", err)
		}
	}
	return nil
}

// ReadCircuit reads the CircuitFields of a circuit.
func ReadCircuit(fields map[string]string) *model.CircuitState {
	c := &model.CircuitState{Probe: fields["probe"]}
	c.OpenedAt, _ = readStoredTime(fields["opened_at"])
	c.ProbeAt, _ = readStoredTime(fields["probe_at"])
	return c
}
