package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

var moveGates = redis.LoadScript("move-gates.lua")

// blockerCache keeps what the texts of holds, limits and calendars say: dispatchers read them once a round.
type blockerCache struct {
	mu    sync.Mutex
	texts [3][]string
	gates model.Blockers
}

// read reads fields and values of <queue>:holds, <queue>:limits and <queue>:calendars. What cannot be read stops nothing; doctor tells of it.
func (c *blockerCache) read(s *Store, texts [3][]string) model.Blockers {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.EqualFunc(texts[:], c.texts[:], slices.Equal) {
		return c.gates
	}
	c.texts = texts
	c.gates = model.Blockers{Calendars: map[string]schedule.Calendar{}, Limits: map[string]model.Limit{}, Part: s.Place, Parts: len(s.AllParts())}
	for pair := range slices.Chunk(texts[0], 2) {
		if pair[0] == HoldChanges {
			c.gates.HoldChanges = pair[1]
			continue
		}
		hold, _ := ReadHold(pair[0], pair[1])
		c.gates.Holds = append(c.gates.Holds, hold)
	}
	slices.SortFunc(c.gates.Holds, compareHolds)
	for pair := range slices.Chunk(texts[1], 2) {
		limit, err := ReadLimit(pair[0], pair[1])
		if key, failed := policy.ParseKey(limit.Name); err == nil && failed == nil {
			c.gates.QueueLimits = append(c.gates.QueueLimits, model.QueueLimit{Key: key, Limit: limit})
		} else if err == nil {
			c.gates.Limits[limit.Name] = limit
		}
	}
	for pair := range slices.Chunk(texts[2], 2) {
		if calendar, err := ReadCalendar(pair[1]); err == nil {
			c.gates.Calendars[pair[0]] = calendar
		}
	}
	return c.gates
}

// Blockers reads what may keep models of the queue from starting.
func (s Fleet) Blockers(ctx context.Context) (model.Blockers, error) {
	keys := []string{s.store.Keys.Holds, s.store.Keys.Limits, s.store.Keys.Calendars}
	hashes, err := redis.ReadEach(ctx, s.store.Clients.Read, "read holds, limits and calendars", keys, func(pipe goredis.Pipeliner, key string) *goredis.MapStringStringCmd {
		return pipe.HGetAll(ctx, key)
	})
	if err != nil {
		return model.Blockers{}, err
	}
	var texts [3][]string
	for i, hash := range hashes {
		for _, name := range slices.Sorted(maps.Keys(hash)) {
			texts[i] = append(texts[i], name, hash[name])
		}
	}
	return new(blockerCache).read(s.store, texts), nil
}

// ParkedBy reads the uids of models that wait for gates, of each the first so many as limit says, longest due first.
func (s *Store) ParkedBy(ctx context.Context, gates []model.Blocker, limit func(model.Blocker) int) ([][]string, error) {
	return redis.ReadEach(ctx, s.Clients.Read, "read what waits for gates", gates, func(pipe goredis.Pipeliner, gate model.Blocker) *goredis.StringSliceCmd {
		return pipe.ZRange(ctx, s.Keys.ParkedBy(string(gate)), 0, int64(limit(gate))-1)
	})
}

// BlockerCheck is what a dispatcher has found out about a gate.
type BlockerCheck struct {
	Blocker model.Blocker
	// Again is when it is to be looked at again.
	Again time.Time
	// Closed says that it lets nobody through. One that is open is forgotten when no model waits for it.
	Closed bool
}

// NoteBlockerChecks notes when gates are to be looked at again that this dispatcher alone looked at until an instant.
func (s *Store) NoteBlockerChecks(ctx context.Context, looks []BlockerCheck, alone time.Time) error {
	if len(looks) == 0 {
		return nil
	}
	keys, args := []string{s.Keys.Gates, s.Keys.Holds}, []any{redis.Millis(alone)}
	for _, look := range looks {
		keys = append(keys, s.Keys.ParkedBy(string(look.Blocker)))
		stays, hold := "", ""
		if look.Closed {
			stays = "stays"
		}
		if kind, name := look.Blocker.Split(); kind == model.BlockerHold {
			hold = name
		}
		args = append(args, string(look.Blocker), redis.Millis(look.Again), stays, hold)
	}
	return redis.Wrap(redis.RunScript(ctx, s.Clients.Write, moveGates, keys, args...).Err(), "note when gates are looked at again")
}

// maxBlockers bounds how many gates are looked at.
const maxBlockers = 1000

// CircuitFields are the fields of the hash <queue>:circuit:<key> that a decision depends on.
var CircuitFields = []string{"opened_at", "probe_at", "probe"}

// Limiters reads what keys of limits have left at now, where it frees lost slots first, and the circuits of keys, without a probe whose model
// does not run.
func (s *Store) Limiters(ctx context.Context, limits, circuits []string, now time.Time) (model.Limiters, error) {
	limiters, err := s.limiters(ctx, limits, circuits, now)
	for _, name := range limits {
		if state := limiters.Keys[name]; err == nil && len(state.Lapsed) > 0 {
			err = s.freeLost(ctx, name, state, now)
		}
	}
	return limiters, err
}

func (s *Store) limiters(ctx context.Context, limits, circuits []string, now time.Time) (model.Limiters, error) {
	rooms := model.Limiters{Keys: map[string]*model.LimiterState{}, Circuits: map[string]*model.CircuitState{}}
	pipe := s.Clients.Read.Pipeline()
	running := redis.Map(limits, func(name string) *goredis.IntCmd { return pipe.ZCard(ctx, s.Keys.Limit(name)) })
	lapsed := redis.Map(limits, func(name string) *goredis.StringSliceCmd {
		return pipe.ZRangeByScore(ctx, s.Keys.Limit(name), &goredis.ZRangeBy{Min: "-inf", Max: "(" + redis.Millis(now), Count: maxLapsed})
	})
	slots := redis.Map(limits, func(name string) *goredis.StringCmd { return pipe.Get(ctx, s.Keys.Rate(name)) })
	states := redis.Map(circuits, func(name string) *goredis.SliceCmd { return pipe.HMGet(ctx, s.Keys.Circuit(name), CircuitFields...) })
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return rooms, fmt.Errorf("read limits and circuits: %w", err)
	}
	for i, name := range limits {
		rooms.Keys[name] = &model.LimiterState{Running: int(running[i].Val()), Lapsed: lapsed[i].Val(), Slots: model.ParseSlots(slots[i].Val())}
	}
	for i, name := range circuits {
		rooms.Circuits[name] = ReadCircuit(NamedValues(CircuitFields, states[i].Val()))
	}
	for _, c := range rooms.Circuits {
		if c.Probe == "" {
			continue
		}
		switch err := s.Clients.Read.ZScore(ctx, s.Keys.Running, c.Probe).Err(); {
		case redis.Missing(err): // nobody would ever settle it
			c.Probe = ""
		case err != nil:
			return rooms, fmt.Errorf("look for a probe: %w", err)
		}
	}
	return rooms, nil
}

// maxLapsed is how many slots of a key that are past their deadlines are looked at in a round: mostly there is none.
const maxLapsed = 10

// freeLost frees those slots past their deadlines that no running attempt holds: nobody else would, as when the hash of a model was deleted by
// hand. An attempt that runs keeps its slots until it has ended.
func (s *Store) freeLost(ctx context.Context, name string, room *model.LimiterState, now time.Time) error {
	records, err := s.Load(ctx, room.Lapsed)
	if err != nil {
		return err
	}
	index, batch := Index{KeyLimit, name}, Batch{Now: now}
	for _, uid := range room.Lapsed {
		if r := records[uid]; !slices.Contains(model.CountedBy(r.Counted, model.BlockerLimit), name) {
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

// ReadCircuit reads the CircuitFields of a circuit.
func ReadCircuit(fields map[string]string) *model.CircuitState {
	c := &model.CircuitState{Probe: fields["probe"]}
	c.OpenedAt, _ = ReadStoredTime(fields["opened_at"])
	c.ProbeAt, _ = ReadStoredTime(fields["probe_at"])
	return c
}

// Admission is what keeps a model from starting, or would, or counts its attempt, as it was at one instant.
type Admission struct {
	Gates   model.Blockers
	Limits  []model.Limit  // of the model, in the order of their keys
	Rooms   model.Limiters // of these
	Circuit *KeyCircuit    // that it has, or waits for; nil: none
	// Place is its place among the models that wait for its gate, from 1, of so many; 0: it waits for none.
	Place, Waiting int64
}

// Admission reads that of a model at now. Of a model and a queue that use none of it there is little to read.
func (s Report) Admission(ctx context.Context, m *model.Model, now time.Time) (w Admission, err error) {
	if w.Gates, err = s.store.Fleet().Blockers(ctx); err != nil {
		return w, err
	}
	w.Limits = w.Gates.LimitsOf(m, now)
	names := redis.Map(w.Limits, func(limit model.Limit) string { return limit.Name })
	if w.Rooms, err = s.store.limiters(ctx, names, nil, now); err != nil {
		return w, err
	}
	kind, key := m.ParkedBy.Split()
	if kind != model.BlockerCircuit {
		key = ""
	}
	if key = cmp.Or(key, m.CircuitKey()); key != "" {
		fields, err := s.store.Clients.Read.HGetAll(ctx, s.store.Keys.Circuit(key)).Result()
		if err != nil {
			return w, fmt.Errorf("read a circuit: %w", err)
		}
		circuit := newKeyCircuit(key, fields)
		w.Circuit, w.Rooms.Circuits[key] = &circuit, &circuit.CircuitState
	}
	if !m.Parked() {
		return w, nil
	}
	pipe, set := s.store.Clients.Read.Pipeline(), s.store.Keys.ParkedBy(string(m.ParkedBy))
	place, waiting := pipe.ZRank(ctx, set, m.UID), pipe.ZCard(ctx, set)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return w, fmt.Errorf("read what waits for a gate: %w", err)
	}
	if place.Err() == nil {
		w.Place, w.Waiting = place.Val()+1, waiting.Val()
	}
	return w, nil
}
