package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker/lease"
)

// The verbs of a PoolOrder.
const (
	PoolQuiet = lease.Quiet
	PoolStop  = lease.Stop
)

func readPoolOrder(stored string) PoolOrder {
	verb, by, _ := strings.Cut(stored, " ")
	return PoolOrder{Verb: verb, By: by}
}

// OrderPools gives worker pools an order, by their names, in every part. It may be given before a pool is there. The first part journals it.
func (q QueueFleet) OrderPools(ctx context.Context, pools []string, asked PoolOrder) error {
	var living []string
	err := q.queue.Each(func(part *Store) error {
		workers, err := part.Clients.Read.ZRange(ctx, part.Keys.Workers, 0, -1).Result()
		living = append(living, redis.Map(workers, PoolName)...)
		return err
	})
	if err == nil {
		_, err = q.Change(ctx, func(part *Store, now time.Time) (bool, error) {
			return part.Fleet().orderPools(ctx, pools, living, asked, now)
		})
	}
	return redis.Wrap(err, "ask worker pools")
}

// orderPools also forgets the orders of pools that live in no part.
func (s Fleet) orderPools(ctx context.Context, pools, living []string, asked PoolOrder, now time.Time) (bool, error) {
	var asking []string // pools that do not know it yet
	changed, err := s.Change(ctx, s.store.Keys.Orders, Order{}, func() (c Change, err error) {
		orders, err := s.store.Clients.Read.HGetAll(ctx, s.store.Keys.Orders).Result()
		asking = slices.DeleteFunc(slices.Clone(pools), func(pool string) bool { return orders[pool] == asked.String() })
		if err != nil || len(asking) == 0 {
			return c, err
		}
		for _, pool := range slices.Sorted(maps.Keys(orders)) {
			if !slices.Contains(living, pool) {
				c.Fields = append(c.Fields, pool, "")
			}
		}
		for _, pool := range asking {
			c.Fields = append(c.Fields, pool, asked.String())
		}
		c.Deed = model.Deed{Verb: "worker " + cmp.Or(asked.Verb, "resume"), What: strings.Join(asking, " "), By: asked.By}
		return c, err
	})
	if err != nil || !changed || s.store.Place > 0 || s.store.Config.JournalCap <= 0 {
		return changed, err
	}
	_, err = s.store.Clients.Write.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, pool := range asking {
			values := []any{"event", "worker_" + cmp.Or(asked.Verb, "resume"), "key", pool, "at", model.FormatTime(now), "by", asked.By}
			pipe.XAdd(ctx, &goredis.XAddArgs{Stream: s.store.Keys.Journal, MaxLen: int64(s.store.Config.JournalCap), Approx: true, Values: values})
		}
		return nil
	})
	return true, err
}

// PoolState has the attempts in hand of a worker pool, and its order.
type PoolState struct {
	Order   PoolOrder
	Taken   int64         // attempts that it has taken and not answered yet
	Entries []model.Entry // the first of them
}

// PoolStates reads the states of worker pools, in their order; of each at most so many entries, at least one.
func (s Report) PoolStates(ctx context.Context, owners []string, limit int) ([]PoolState, error) {
	pipe := s.store.Clients.Read.Pipeline()
	counts := redis.Map(owners, func(owner string) *goredis.IntCmd { return pipe.LLen(ctx, s.store.Keys.Taken(owner)) })
	lists := redis.Map(owners, func(owner string) *goredis.StringSliceCmd {
		return pipe.LRange(ctx, s.store.Keys.Taken(owner), 0, int64(limit)-1)
	})
	orders := redis.Map(owners, func(owner string) *goredis.StringCmd { return pipe.HGet(ctx, s.store.Keys.Orders, PoolName(owner)) })
	err := redis.ExecReads(ctx, pipe)
	states := make([]PoolState, len(owners))
	for i := range owners {
		states[i] = PoolState{Order: readPoolOrder(orders[i].Val()), Taken: counts[i].Val()}
		for _, raw := range lists[i].Val() {
			if entry, err := s.store.Wire().ParseEntry(raw); err == nil { // what cannot be read is nobody's attempt
				states[i].Entries = append(states[i].Entries, entry)
			}
		}
	}
	return states, redis.Wrap(err, "read worker pools")
}
