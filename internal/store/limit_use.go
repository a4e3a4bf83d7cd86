package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// LimitUse is a key that counts something, or for which a limit was set.
type LimitUse struct {
	Limit   model.Limit
	Set     bool      // at run time
	Running int64     // attempts that it counts
	Parked  int64     // models that wait for it
	Free    time.Time // the first slot that nobody has reserved; zero: at any time
}

// LimitUses reads these keys of limits, and those for which a limit was set, in their order; without any, all of which something runs or waits: it
// walks over the keys of Redis then.
func (s Fleet) LimitUses(ctx context.Context, names ...string) ([]LimitUse, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		if names, err = s.limitNames(ctx); err != nil {
			return nil, err
		}
	}
	uses := map[string]*LimitUse{}
	for _, name := range names {
		uses[name] = &LimitUse{Limit: model.Limit{Name: name}}
	}
	limits, err := s.Limits(ctx)
	if err != nil {
		return nil, err
	}
	for _, limit := range limits {
		uses[limit.Name] = &LimitUse{Limit: limit, Set: true}
	}
	all := make([]LimitUse, 0, len(uses))
	for names := range slices.Chunk(slices.Sorted(maps.Keys(uses)), ScanCount) {
		pipe := s.Clients.Read.Pipeline()
		running := SendEach(names, func(name string) *redis.IntCmd { return pipe.ZCard(ctx, s.Keys.Limit(name)) })
		slots := SendEach(names, func(name string) *redis.StringCmd { return pipe.Get(ctx, s.Keys.Rate(name)) })
		parked := SendEach(names, func(name string) *redis.IntCmd {
			return pipe.ZCard(ctx, s.Keys.ParkedBy(string(model.NewGate(model.GateLimit, name))))
		})
		if err := ExecReads(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read limits: %w", err)
		}
		for i, name := range names {
			use := uses[name]
			use.Running, use.Parked = running[i].Val(), parked[i].Val()
			if slots := model.ParseSlots(slots[i].Val()); slots.Free.After(now) {
				use.Free = slots.Free
			}
			all = append(all, *use)
		}
	}
	return all, nil
}

// limitNames lists the keys of which something runs or waits.
func (s Fleet) limitNames(ctx context.Context) (names []string, err error) {
	for _, prefix := range []string{s.Keys.Limit(""), s.Keys.Rate(""), s.Keys.ParkedBy(string(model.NewGate(model.GateLimit, "")))} {
		err = cmp.Or(err, s.ScanKeys(ctx, "list limits", prefix, func(keys []string) error {
			for _, key := range keys {
				names = append(names, strings.TrimPrefix(key, prefix))
			}
			return nil
		}))
	}
	return names, err
}

// WaitedFor lists gates for which models wait, at most so many, those first at which a dispatcher looks next.
func (s Fleet) WaitedFor(ctx context.Context, most int) (gates []model.Gate, err error) {
	names, err := s.Clients.Read.ZRange(ctx, s.Keys.Gates(), 0, int64(most)-1).Result()
	for _, name := range names {
		gates = append(gates, model.Gate(name))
	}
	return gates, Wrap(err, "list the gates for which models wait")
}

// CountParked counts the models that wait for a gate.
func (s Fleet) CountParked(ctx context.Context, gate model.Gate) (int64, error) {
	n, err := s.Clients.Read.ZCard(ctx, s.Keys.ParkedBy(string(gate))).Result()
	return n, Wrap(err, "count what waits for a gate")
}

// LimitUses reads the keys of limits of all parts, in their order; without keys, of all that count anything or were set: it walks over the keys of
// Redis then.
func (q QueueFleet) LimitUses(ctx context.Context, keys ...string) ([]LimitUse, error) {
	read := func(part *Store) ([]LimitUse, error) { return part.Fleet().LimitUses(ctx, keys...) }
	return sumOf(q.Queue, read, func(u *LimitUse) string { return u.Limit.Name }, (*LimitUse).add, func(a, b LimitUse) int {
		return cmp.Compare(a.Limit.Name, b.Limit.Name)
	})
}

func (u *LimitUse) add(other *LimitUse) {
	u.Running, u.Parked = u.Running+other.Running, u.Parked+other.Parked
	if !other.Free.IsZero() {
		u.Free = other.Free
	}
	if other.Set || u.Limit.Name == "" {
		u.Set, u.Limit = other.Set, other.Limit
	}
}
