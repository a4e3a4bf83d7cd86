package flow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Waiting has the models that may start as soon as keys of limits have places for them.
type Waiting struct {
	Heads    map[string][]string // by key, longest due first
	Window   int                 // the most entries of the input list, as a dispatcher has noted
	Blockers model.Blockers
	Limiters model.Limiters // of these keys
}

// spareHeads is how many models of a key are read beyond its places: another blocker may stop some.
const spareHeads = 2

// Waiting reads which models wait for places of keys, so many of each. There is none while dispatchers must decide: when none is known to live, the input
// list is full, somebody wants models to start at once, or a model was due before and was not yet looked at.
func (f Flow) Waiting(ctx context.Context, places map[string]int, now time.Time) (w Waiting, err error) {
	k, pipe, names := &f.store.Keys, f.store.Clients.Read.Pipeline(), slices.Sorted(maps.Keys(places))
	waiting := redis.Map(names, func(name string) *goredis.ZSliceCmd {
		return pipe.ZRangeWithScores(ctx, k.ParkedBy(string(model.NewBlocker(model.BlockerLimit, name))), 0, int64(places[name]+spareHeads)-1)
	})
	running := redis.Map(names, func(name string) *goredis.IntCmd { return pipe.ZCard(ctx, k.Limit(name)) })
	slots := redis.Map(names, func(name string) *goredis.StringCmd { return pipe.Get(ctx, k.Rate(name)) })
	noted, queued := pipe.HGet(ctx, k.Heard, store.HeardWindow), pipe.LLen(ctx, k.Input)
	urgent := pipe.ZCount(ctx, k.Urgent, "-inf", redis.Millis(now))
	due, blockers := pipe.ZRangeWithScores(ctx, k.Due, 0, 0), f.store.Fleet().AskBlockers(ctx, pipe)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return w, fmt.Errorf("read which models wait for places: %w", err)
	}
	first := float64(now.UnixMilli()) // the instant that a model has to be due since
	for _, model := range due.Val() {
		first = min(first, model.Score)
	}
	w.Window = readWindow(noted.Val(), now)
	if int64(w.Window) <= queued.Val() || urgent.Val() > 0 || urgent.Err() != nil || due.Err() != nil {
		return w, nil
	}
	w.Heads, w.Limiters.Keys = map[string][]string{}, map[string]*model.LimiterState{}
	for i, name := range names {
		if running[i].Err() == nil {
			w.Limiters.Keys[name] = &model.LimiterState{Running: int(running[i].Val()), Slots: model.ParseSlots(slots[i].Val())}
		}
		for _, model := range waiting[i].Val() {
			if uid, is := model.Member.(string); is && model.Score <= first {
				w.Heads[name] = append(w.Heads[name], uid)
			}
		}
	}
	w.Blockers, err = blockers()
	return w, err
}

// readWindow reads "SIZE UNTIL", until when the dispatcher counts as alive, in Unix ms. Nothing may start when it does not.
func readWindow(noted string, now time.Time) int {
	size, until, _ := strings.Cut(noted, " ")
	n, err := strconv.Atoi(size)
	if err != nil || redis.ParseInt(until) < now.UnixMilli() {
		return 0
	}
	return n
}
