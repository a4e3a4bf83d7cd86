package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// BlockerState is a blocker, as it was at one instant.
type BlockerState struct {
	Parked int64     // models that wait for it
	Listed bool      // a dispatcher rechecks it, at Look
	Look   time.Time // zero: it is not listed
	// Opens is when it opens at the earliest, so a dispatcher has to check it then. An open or missing blocker opens now.
	Opens time.Time
}

// BlockerState reads a blocker at now.
func (s Part) BlockerState(ctx context.Context, blocker model.Blocker, now time.Time) (BlockerState, error) {
	kind, name := blocker.Split()
	pipe := s.store.Clients.Read.TxPipeline()
	parked, score := pipe.ZCard(ctx, s.store.Keys.ParkedBy(string(blocker))), pipe.ZScore(ctx, s.store.Keys.Blockers, string(blocker))
	var text, slots *goredis.StringCmd
	var circuit *goredis.SliceCmd
	switch kind {
	case model.BlockerHold:
		text = pipe.HGet(ctx, s.store.Keys.Holds, name)
	case model.BlockerCalendar:
		text = pipe.HGet(ctx, s.store.Keys.Calendars, name)
	case model.BlockerLimit:
		slots = pipe.Get(ctx, s.store.Keys.Rate(name))
	case model.BlockerCircuit:
		circuit = pipe.HMGet(ctx, s.store.Keys.Circuit(name), store.CircuitFields...)
	}
	err := redis.ExecReads(ctx, pipe)
	state := BlockerState{Parked: parked.Val(), Listed: score.Err() == nil, Opens: now}
	if state.Listed {
		state.Look = time.UnixMilli(int64(score.Val())).UTC()
	}
	var opens time.Time
	switch kind {
	case model.BlockerHold:
		if text.Err() == nil {
			hold, _ := store.ReadHold(name, text.Val()) // it holds what can be read of it
			if opens = hold.Until; opens.IsZero() {
				opens = model.Never
			}
		}
	case model.BlockerCalendar:
		if calendar, err := store.ReadCalendar(text.Val()); err == nil {
			opens, _, _ = calendar.ClosedUntil(now)
		}
	case model.BlockerSuspect:
		opens = model.Never
	case model.BlockerLimit:
		opens = model.ParseSlots(slots.Val()).Closed
	case model.BlockerCircuit:
		if c := store.ReadCircuit(store.NamedValues(store.CircuitFields, circuit.Val())); c.Open() {
			opens = c.ProbeAt
		}
	}
	if opens.After(now) {
		state.Opens = opens
	}
	return state, redis.Wrap(err, "read a gate")
}

// RecheckBlocker lets a dispatcher recheck a blocker at now.
func (s Part) RecheckBlocker(ctx context.Context, blocker model.Blocker, now time.Time) error {
	err := s.store.Clients.Write.ZAdd(ctx, s.store.Keys.Blockers, goredis.Z{Score: float64(now.UnixMilli()), Member: string(blocker)}).Err()
	return redis.Wrap(err, "let a dispatcher look at a gate")
}

// OldestRecheck is the blocker whose recheck is the most due; false: there is none.
func (s Part) OldestRecheck(ctx context.Context) (blocker model.Blocker, at time.Time, found bool, err error) {
	first, err := s.store.Clients.Read.ZRangeWithScores(ctx, s.store.Keys.Blockers, 0, 0).Result()
	if err != nil || len(first) == 0 {
		return "", at, false, redis.Wrap(err, "read when blockers are looked at")
	}
	name, _ := first[0].Member.(string)
	return model.Blocker(name), time.UnixMilli(int64(first[0].Score)).UTC(), true, nil
}

// LacksCalendar reports whether a policy names a calendar that is not stored, at one instant.
func (s Part) LacksCalendar(ctx context.Context, policyName, calendar string) (bool, error) {
	pipe := s.store.Clients.Read.TxPipeline()
	text, stored := pipe.HGet(ctx, s.store.Keys.Policies, policyName), pipe.HExists(ctx, s.store.Keys.Calendars, calendar)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return false, fmt.Errorf("read the calendars of a policy: %w", err)
	}
	p, err := s.store.Report().ParsePolicy(text.Val())
	return err == nil && !stored.Val() && slices.Contains(p.Closed, calendar), nil
}
