package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store"
)

// Lateness is how late models were started and results applied, one of each for each model.
type Lateness struct {
	Starts  []time.Duration // from refresh_at until a waiting worker has the attempt
	Applied []time.Duration // from the push of the result until it is in the journal
}

// Paced makes models due one after the other, as planned, and measures how late they are started and their results applied. first is the
// number of the first model; the ones before it are left alone.
func (b *Bench) Paced(ctx context.Context, plan Plan, first int) (late Lateness, err error) {
	position, err := b.newest(ctx)
	if err != nil {
		return late, err
	}
	stop, err := plan.Start()
	if err != nil {
		return late, err
	}
	defer func() {
		_, stopErr := stop()
		err = errors.Join(err, stopErr)
	}()
	if err := b.awaitDaemons(ctx); err != nil {
		return late, err
	}
	p := pacing{
		bench: b, plan: plan, first: first, position: position,
		said: make(chan map[string]time.Time, plan.Paced), pushed: make(map[string]time.Time, plan.Paced),
	}
	if err := p.prepare(ctx); err != nil {
		return late, err
	}
	return p.measure(ctx)
}

// newest is the position of the newest entry of the journal.
func (b *Bench) newest(ctx context.Context) (string, error) {
	entries, err := b.Redis.XRevRangeN(ctx, b.Store.Keys.Journal, "+", "-", 1).Result()
	if err != nil || len(entries) == 0 {
		return store.TailStart, err
	}
	return entries[0].ID, nil
}

// awaitDaemons waits until a dispatcher and a poller have given a heartbeat.
func (b *Bench) awaitDaemons(ctx context.Context) error {
	return await(ctx, nil, func() (bool, error) {
		dispatchers, err := b.Redis.ZCard(ctx, b.Store.Keys.Dispatchers).Result()
		if err != nil {
			return false, fmt.Errorf("await daemons: %w", err)
		}
		pollers, err := b.Redis.ZCard(ctx, b.Store.Keys.Pollers).Result()
		if err != nil {
			return false, fmt.Errorf("await daemons: %w", err)
		}
		return dispatchers > 0 && pollers > 0, nil
	})
}

// offset is how far the clock of Redis is ahead of ours, as the quickest of some replies tells.
func (b *Bench) offset(ctx context.Context) (offset time.Duration, err error) {
	quickest := time.Hour
	for range 20 {
		sent := b.Now()
		at, err := b.Store.Report().RedisTime(ctx)
		if err != nil {
			return 0, err
		}
		if took := b.Now().Sub(sent); took < quickest {
			quickest, offset = took, at.Sub(sent.Add(took/2))
		}
	}
	return offset, nil
}
