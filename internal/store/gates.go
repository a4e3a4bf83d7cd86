package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

var moveGates = Load("move-gates.lua")

// gateCache keeps what the texts of holds, limits and calendars say: dispatchers read them once a round.
type gateCache struct {
	mu    sync.Mutex
	texts [3][]string
	gates model.Gates
}

// read reads fields and values of <queue>:holds, <queue>:limits and <queue>:calendars. What cannot be read stops nothing; doctor tells of it.
func (c *gateCache) read(s *Store, texts [3][]string) model.Gates {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.EqualFunc(texts[:], c.texts[:], slices.Equal) {
		return c.gates
	}
	c.texts, c.gates = texts, model.Gates{Calendars: map[string]schedule.Calendar{}, Limits: map[string]model.Limit{}, Part: s.place}
	if s.queue != nil {
		c.gates.Parts = len(s.queue.Parts)
	}
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

// Gates reads what may keep models of the queue from starting.
func (s *Store) Gates(ctx context.Context) (model.Gates, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := SendEach([]string{s.Keys.Holds(), s.Keys.Limits(), s.Keys.Calendars()}, func(key string) *redis.MapStringStringCmd {
		return pipe.HGetAll(ctx, key)
	})
	if err := ExecReads(ctx, pipe); err != nil {
		return model.Gates{}, fmt.Errorf("read holds, limits and calendars: %w", err)
	}
	var texts [3][]string
	for i, reply := range replies {
		for _, name := range slices.Sorted(maps.Keys(reply.Val())) {
			texts[i] = append(texts[i], name, reply.Val()[name])
		}
	}
	return new(gateCache).read(s, texts), nil
}

// ParkedBy reads the uids of models that wait for gates, of each the first so many, longest due first.
func (s *Store) ParkedBy(ctx context.Context, gates []model.Gate, limit int) ([][]string, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := SendEach(gates, func(gate model.Gate) *redis.StringSliceCmd {
		return pipe.ZRange(ctx, s.Keys.ParkedBy(string(gate)), 0, int64(limit)-1)
	})
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read what waits for gates: %w", err)
	}
	uids := make([][]string, len(gates))
	for i, reply := range replies {
		uids[i] = reply.Val()
	}
	return uids, nil
}

// GateLook is what a dispatcher has found out about a gate.
type GateLook struct {
	Gate model.Gate
	// Again is when it is to be looked at again.
	Again time.Time
	// Closed says that it lets nobody through. One that is open is forgotten when no model waits for it.
	Closed bool
}

// MoveGates notes when gates are to be looked at again that this dispatcher alone looked at until an instant.
func (s *Store) MoveGates(ctx context.Context, looks []GateLook, alone time.Time) error {
	if len(looks) == 0 {
		return nil
	}
	keys, args := []string{s.Keys.Gates(), s.Keys.Holds()}, []any{Millis(alone)}
	for _, look := range looks {
		keys = append(keys, s.Keys.ParkedBy(string(look.Gate)))
		stays, hold := "", ""
		if look.Closed {
			stays = "stays"
		}
		if kind, name := look.Gate.Split(); kind == model.GateHold {
			hold = name
		}
		args = append(args, string(look.Gate), Millis(look.Again), stays, hold)
	}
	_, err := Run(ctx, s.Clients.Write, moveGates, keys, args...).Int()
	return Wrap(err, "note when gates are looked at again")
}

// mostGates bounds how many gates are looked at.
const mostGates = 1000
