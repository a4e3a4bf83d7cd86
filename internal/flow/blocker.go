package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// changeBlocker stores the text of a blocker; an empty one removes it. Its models are rechecked immediately. false: it was so before.
func (f Flow) changeBlocker(ctx context.Context, deed model.Deed, key string, blocker model.Blocker, text string, now time.Time) (bool, error) {
	_, name := blocker.Split()
	deed.What = name
	return f.store.Fleet().Change(ctx, key, store.Order{}, func() (store.Change, error) {
		was, err := f.store.Clients.Read.HGet(ctx, key, name).Result()
		if err = redis.IgnoreMissing(err); err != nil || was == text {
			return store.Change{}, redis.Wrap(err, "read "+string(blocker))
		}
		return store.Change{Fields: []string{name, text}, Blocker: blocker, Recheck: now, Deed: deed}, nil
	})
}

var noteChecks = redis.LoadScript("move-blockers.lua")

// ParkedBy reads the uids of models that wait for blockers, of each the first so many as limit says, longest due first.
func (f Flow) ParkedBy(ctx context.Context, blockers []model.Blocker, limit func(model.Blocker) int) ([][]string, error) {
	return redis.ReadEach(ctx, f.store.Clients.Read, "read the models that wait for blockers", blockers, func(pipe goredis.Pipeliner, blocker model.Blocker) *goredis.StringSliceCmd {
		return pipe.ZRange(ctx, f.store.Keys.ParkedBy(string(blocker)), 0, int64(limit(blocker))-1)
	})
}

// BlockerCheck is the result of a check of a blocker by a dispatcher.
type BlockerCheck struct {
	Blocker model.Blocker
	// Again is when it is rechecked.
	Again time.Time
	// Closed says that it still blocks. An open one is forgotten when no model waits for it.
	Closed bool
}

// NoteBlockerChecks notes when blockers are rechecked that this dispatcher alone has checked until an instant.
func (f Flow) NoteBlockerChecks(ctx context.Context, checks []BlockerCheck, alone time.Time) error {
	if len(checks) == 0 {
		return nil
	}
	keys, args := []string{f.store.Keys.Blockers, f.store.Keys.Holds}, []any{redis.Millis(alone)}
	for _, check := range checks {
		keys = append(keys, f.store.Keys.ParkedBy(string(check.Blocker)))
		stays, hold := "", ""
		if check.Closed {
			stays = "stays"
		}
		if kind, name := check.Blocker.Split(); kind == model.BlockerHold {
			hold = name
		}
		args = append(args, string(check.Blocker), redis.Millis(check.Again), stays, hold)
	}
	return redis.Wrap(redis.RunScript(ctx, f.store.Clients.Write, noteChecks, keys, args...).Err(), "note when blockers are looked at again")
}

// Limiters is ReadLimiters, and frees lost slots first.
func (f Flow) Limiters(ctx context.Context, limits, circuits []string, now time.Time) (model.Limiters, error) {
	limiters, err := f.ReadLimiters(ctx, limits, circuits, now)
	for _, name := range limits {
		if state := limiters.Keys[name]; err == nil && len(state.Lapsed) > 0 {
			err = f.freeLost(ctx, name, state, now)
		}
	}
	return limiters, err
}

// ReadLimiters reads what keys of limits have left at now, and the circuits of keys, without a probe whose model does not run.
func (f Flow) ReadLimiters(ctx context.Context, limits, circuits []string, now time.Time) (model.Limiters, error) {
	rooms := model.Limiters{Keys: map[string]*model.LimiterState{}, Circuits: map[string]*model.CircuitState{}}
	pipe := f.store.Clients.Read.Pipeline()
	running := redis.Map(limits, func(name string) *goredis.IntCmd { return pipe.ZCard(ctx, f.store.Keys.Limit(name)) })
	lapsed := redis.Map(limits, func(name string) *goredis.StringSliceCmd {
		return pipe.ZRangeByScore(ctx, f.store.Keys.Limit(name), &goredis.ZRangeBy{Min: "-inf", Max: "(" + redis.Millis(now), Count: maxLapsed})
	})
	slots := redis.Map(limits, func(name string) *goredis.StringCmd { return pipe.Get(ctx, f.store.Keys.Rate(name)) })
	states := redis.Map(circuits, func(name string) *goredis.SliceCmd {
		return pipe.HMGet(ctx, f.store.Keys.Circuit(name), store.CircuitFields...)
	})
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return rooms, fmt.Errorf("read limits and circuits: %w", err)
	}
	for i, name := range limits {
		rooms.Keys[name] = &model.LimiterState{Running: int(running[i].Val()), Lapsed: lapsed[i].Val(), Slots: model.ParseSlots(slots[i].Val())}
	}
	for i, name := range circuits {
		rooms.Circuits[name] = store.ReadCircuit(store.NamedValues(store.CircuitFields, states[i].Val()))
	}
	for _, c := range rooms.Circuits {
		if c.Probe == "" {
			continue
		}
		switch err := f.store.Clients.Read.ZScore(ctx, f.store.Keys.Running, c.Probe).Err(); {
		case redis.Missing(err): // nobody would ever settle it
			c.Probe = ""
		case err != nil:
			return rooms, fmt.Errorf("look for a probe: %w", err)
		}
	}
	return rooms, nil
}

// maxLapsed is how many slots of a key past their deadlines are checked in a round: mostly there is none.
const maxLapsed = 10

// freeLost frees those slots past their deadlines that no running attempt holds: nobody else would, as when the hash of a model was deleted by
// hand. An attempt that runs keeps its slots until it has ended.
func (f Flow) freeLost(ctx context.Context, name string, room *model.LimiterState, now time.Time) error {
	records, err := f.store.Load(ctx, room.Lapsed)
	if err != nil {
		return err
	}
	index, batch := store.Index{Kind: store.KeyLimit, Name: name}, store.Batch{Now: now}
	for _, uid := range room.Lapsed {
		if r := records[uid]; !slices.Contains(model.CountedBy(r.Counted, model.BlockerLimit), name) {
			batch.Items = append(batch.Items, store.Item{Transition: r.Leave(index)})
		}
	}
	codes, err := f.store.Commit(ctx, batch)
	for i, code := range codes {
		if code == store.CodeBroken { // its key holds something else, and no transition can be made of it
			err = cmp.Or(err, store.TakeOut(ctx, f.store, batch.Items[i].Transition.UID(), f.store.Keys.Limit(name)))
		}
		if code == store.CodeApplied || code == store.CodeBroken {
			room.Running--
		}
	}
	return err
}
