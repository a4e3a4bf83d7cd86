package store

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// The verbs of a PoolOrder.
const (
	PoolQuiet = "quiet" // take no new attempts, and finish those in hand
	PoolStop  = "stop"  // end, as on SIGTERM
)

// PoolOrder is what an operator asks of a worker pool; the zero order: to work as usual.
type PoolOrder struct {
	Verb string // also one that only a later release knows
	By   string // who asks; empty: nobody says
}

// String is how it is stored.
func (o PoolOrder) String() string { return strings.TrimSpace(o.Verb + " " + o.By) }

func readPoolOrder(stored any) PoolOrder {
	verb, by, _ := strings.Cut(Text(stored), " ")
	return PoolOrder{verb, by}
}

var orderWorker = Load("order-worker.lua")

// OrderPool asks a worker pool for something, and tells the journal of it. false: there is no pool of that name.
func (s Fleet) OrderPool(ctx context.Context, owner string, order PoolOrder, now time.Time) (known bool, err error) {
	text, event := order.String(), "worker_"+order.Verb
	if order.Verb == "" {
		text, event = "", "worker_resume"
	}
	keys := []string{s.Keys.Workers, s.Keys.Orders, s.Keys.Journal}
	code, err := Run(ctx, s.Clients.Write, orderWorker, keys, owner, text, event, order.By, model.FormatTime(now), s.config.JournalCap).Int()
	return code > 0, Wrap(err, "ask a worker pool")
}

// PoolState is what a worker pool has in hand, and what it is asked for.
type PoolState struct {
	Order   PoolOrder
	Taken   int64         // attempts that it has taken and not answered yet
	Entries []model.Entry // the first of them
}

// PoolStates reads the states of worker pools, in their order; of each at most so many entries, at least one.
func (s Report) PoolStates(ctx context.Context, owners []string, limit int) ([]PoolState, error) {
	if len(owners) == 0 {
		return nil, nil
	}
	pipe := s.Clients.Read.Pipeline()
	counts := SendEach(owners, func(owner string) *redis.IntCmd { return pipe.LLen(ctx, s.Keys.Taken(owner)) })
	lists := SendEach(owners, func(owner string) *redis.StringSliceCmd {
		return pipe.LRange(ctx, s.Keys.Taken(owner), 0, int64(limit)-1)
	})
	orders := SendEach(owners, func(owner string) *redis.StringCmd { return pipe.HGet(ctx, s.Keys.Orders, owner) })
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, Wrap(err, "read worker pools")
	}
	states := make([]PoolState, len(owners))
	for i := range owners {
		states[i] = PoolState{Order: readPoolOrder(orders[i].Val()), Taken: counts[i].Val()}
		for _, raw := range lists[i].Val() {
			if entry, err := s.Wire().ParseEntry(raw); err == nil { // what cannot be read is nobody's attempt
				states[i].Entries = append(states[i].Entries, entry)
			}
		}
	}
	return states, nil
}
