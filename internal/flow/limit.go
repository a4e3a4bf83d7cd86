package flow

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// ForgetLimits forgets limits that have ended, unless they were set anew since they were read.
func (f Flow) ForgetLimits(ctx context.Context, ended []store.EndedLimit) error {
	var over []string
	_, err := f.store.Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
		texts, err := tx.HGetAll(ctx, f.store.Keys.Limits).Result()
		over = nil
		for _, limit := range ended {
			if texts[limit.Name] == limit.Text {
				over = append(over, limit.Name)
			}
		}
		return len(over) > 0, err
	}, func(pipe goredis.Pipeliner) { pipe.HDel(ctx, f.store.Keys.Limits, over...) }, f.store.Keys.Limits)
	return redis.Wrap(err, "forget limits that have ended")
}

// PutLimit sets a limit for a key, or for all keys of a template. Its models are rechecked immediately.
func (f Flow) PutLimit(ctx context.Context, l *model.Limit, now time.Time) error {
	_, err := f.changeBlocker(ctx, model.Deed{Verb: "limit set", Reason: l.Reason}, f.store.Keys.Limits, model.NewBlocker(model.BlockerLimit, l.Name), store.WriteLimit(l), now)
	return err
}

// RemoveLimit forgets a limit that was set at run time; false: there was none.
func (f Flow) RemoveLimit(ctx context.Context, name string, now time.Time) (bool, error) {
	return f.changeBlocker(ctx, model.Deed{Verb: "limit rm"}, f.store.Keys.Limits, model.NewBlocker(model.BlockerLimit, name), "", now)
}

// OpenLimit opens a key that an answer has closed, and has it rechecked immediately. false: no answer has closed it.
func (f Flow) OpenLimit(ctx context.Context, name string, now time.Time) (bool, error) {
	key, slots := f.store.Keys.Rate(name), model.Slots{}
	deed, err := f.store.Fleet().WriteDeed(ctx, model.Deed{Verb: "limit open", What: name})
	if err != nil {
		return false, err
	}
	opened, err := f.store.Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
		text, err := tx.Get(ctx, key).Result()
		slots = model.ParseSlots(text)
		_, by := slots.ClosedAt(now)
		return by != "", redis.IgnoreMissing(err)
	}, func(pipe goredis.Pipeliner) {
		deed(pipe)
		open := slots.Open(now)
		pipe.Set(ctx, key, open.String(), max(time.Millisecond, open.Last().Sub(now)))
		pipe.ZAddXX(ctx, f.store.Keys.Blockers, goredis.Z{Score: float64(now.UnixMilli()), Member: string(model.NewBlocker(model.BlockerLimit, name))})
	}, key)
	return opened, redis.Wrap(err, "open a key")
}

// Limits reads the limits that were set at run time, by their names.
func (f Flow) Limits(ctx context.Context) ([]model.Limit, error) {
	return readNamed(ctx, f, f.store.Keys.Limits, "read limits", store.ReadLimit)
}

// LimitUse is a key that counts something, or for which a limit was set.
type LimitUse struct {
	Key     string      `json:"key"`
	Set     bool        `json:"set"`  // at run time
	Max     int         `json:"most"` // attempts at a time; 0: any number
	Rate    policy.Rate `json:"rate"`
	Until   time.Time   `json:"until"`
	By      string      `json:"by"`
	Reason  string      `json:"reason"`
	Running int64       `json:"running"`       // attempts that it counts
	Parked  int64       `json:"parked"`        // models that wait for it
	Next    time.Time   `json:"next_start_at"` // the first slot that nobody has reserved; zero: at any time

	ClosedUntil time.Time `json:"closed_until"` // by an answer with a retry_after; zero: it is open
	ClosedBy    string    `json:"closed_by"`    // whose answer, such as "tbl_1 (http_429)"
}

// LimitUses reads these keys of limits and those with a limit of their own, in order; without keys all that are in use, which walks over the keys of
// Redis.
func (f Flow) LimitUses(ctx context.Context, names ...string) ([]LimitUse, error) {
	now, err := f.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		parked := f.store.Keys.ParkedBy(string(model.NewBlocker(model.BlockerLimit, "")))
		if names, err = f.namesBehind(ctx, "list limits", f.store.Keys.Limit(""), f.store.Keys.Rate(""), parked); err != nil {
			return nil, err
		}
	}
	uses := map[string]*LimitUse{}
	for _, name := range names {
		uses[name] = &LimitUse{Key: name}
	}
	limits, err := f.Limits(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range limits {
		uses[l.Name] = &LimitUse{Key: l.Name, Set: true, Max: l.Running, Rate: l.Rate, Until: l.Until, By: l.By, Reason: l.Reason}
	}
	all := make([]LimitUse, 0, len(uses))
	for names := range slices.Chunk(slices.Sorted(maps.Keys(uses)), redis.ScanCount) {
		pipe := f.store.Clients.Read.Pipeline()
		running := redis.Map(names, func(name string) *goredis.IntCmd { return pipe.ZCard(ctx, f.store.Keys.Limit(name)) })
		slots := redis.Map(names, func(name string) *goredis.StringCmd { return pipe.Get(ctx, f.store.Keys.Rate(name)) })
		parked := redis.Map(names, func(name string) *goredis.IntCmd {
			return pipe.ZCard(ctx, f.store.Keys.ParkedBy(string(model.NewBlocker(model.BlockerLimit, name))))
		})
		if err := redis.ExecReads(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read limits: %w", err)
		}
		for i, name := range names {
			use := uses[name]
			use.Running, use.Parked = running[i].Val(), parked[i].Val()
			slots := model.ParseSlots(slots[i].Val())
			if slots.Free.After(now) {
				use.Next = slots.Free
			}
			use.ClosedUntil, use.ClosedBy = slots.ClosedAt(now)
			all = append(all, *use)
		}
	}
	return all, nil
}

// WaitedFor lists at most so many blockers that models wait for, the next recheck first.
func (in Inspection) WaitedFor(ctx context.Context, most int) ([]model.Blocker, error) {
	names, err := in.flow.store.Clients.Read.ZRange(ctx, in.flow.store.Keys.Blockers, 0, int64(most)-1).Result()
	return redis.Map(names, func(name string) model.Blocker { return model.Blocker(name) }), redis.Wrap(err, "list the blockers for which models wait")
}

// CountParked counts the models that wait for a blocker.
func (in Inspection) CountParked(ctx context.Context, blocker model.Blocker) (int64, error) {
	n, err := in.flow.store.Clients.Read.ZCard(ctx, in.flow.store.Keys.ParkedBy(string(blocker))).Result()
	return n, redis.Wrap(err, "count what waits for a gate")
}

// LimitUses reads the keys of limits of all parts, in their order; without keys, of all that count anything or were set: it walks over the keys of
// Redis then.
func (q Queue) LimitUses(ctx context.Context, keys ...string) ([]LimitUse, error) {
	read := func(part *store.Store) ([]LimitUse, error) { return Of(part).LimitUses(ctx, keys...) }
	return store.SumOf(q.queue, read, func(u *LimitUse) string { return u.Key }, (*LimitUse).add, func(a, b LimitUse) int { return cmp.Compare(a.Key, b.Key) })
}

func (u *LimitUse) add(other *LimitUse) {
	running, parked, next, closed := u.Running+other.Running, u.Parked+other.Parked, other.Next, *u
	if next.IsZero() {
		next = u.Next
	}
	if other.Set || u.Key == "" {
		*u = *other
	}
	if other.ClosedUntil.After(closed.ClosedUntil) {
		closed = *other
	}
	u.Running, u.Parked, u.Next, u.ClosedUntil, u.ClosedBy = running, parked, next, closed.ClosedUntil, closed.ClosedBy
}

// PutLimit sets a limit in every part, which has its share of it.
func (q Queue) PutLimit(ctx context.Context, limit *model.Limit) error {
	_, err := q.queue.Fleet().Change(ctx, func(part *store.Store, now time.Time) (bool, error) { return true, Of(part).PutLimit(ctx, limit, now) })
	return err
}

// RemoveLimit forgets a limit in every part; false: there was none.
func (q Queue) RemoveLimit(ctx context.Context, name string) (bool, error) {
	return q.queue.Fleet().Change(ctx, func(part *store.Store, now time.Time) (bool, error) { return Of(part).RemoveLimit(ctx, name, now) })
}

// OpenLimit opens a key in every part; false: it was open.
func (q Queue) OpenLimit(ctx context.Context, name string) (bool, error) {
	return q.queue.Fleet().Change(ctx, func(part *store.Store, now time.Time) (bool, error) { return Of(part).OpenLimit(ctx, name, now) })
}
