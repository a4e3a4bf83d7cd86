package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// lead is how long before the first of the paced models is due all of them are saved, at least.
const lead = time.Second

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
	ahead := lead + time.Duration(plan.Paced)*time.Millisecond/4
	var begin time.Time
	err = b.Fill(ctx, first, plan.Paced, func(i int, now time.Time) time.Time {
		begin = now.Add(ahead)
		return begin.Add(time.Duration(i-first) * plan.Spacing)
	})
	if err != nil {
		return late, err
	}
	offset, err := b.offset(ctx)
	if err != nil {
		return late, err
	}
	pushed := make(map[string]time.Time, plan.Paced)
	said := make(chan map[string]time.Time, plan.Paced)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(said)
		var held []string
		for len(late.Starts) < plan.Paced {
			entries, err := b.popBlocking(ctx)
			if err != nil {
				return err
			}
			now := b.Now()
			for _, text := range entries {
				uid, _ := uidsOf(text)
				due := begin.Add(time.Duration(numberOf(uid)-first) * plan.Spacing)
				late.Starts = append(late.Starts, now.Add(offset).Sub(due))
			}
			if held = append(held, entries...); plan.Spacing == 0 && len(held) < plan.Paced {
				continue
			}
			entries, held = held, nil
			times := make(map[string]time.Time, len(entries))
			for _, text := range entries {
				uid, _ := uidsOf(text)
				times[uid] = b.Now()
			}
			said <- times
			if err := b.Redis.RPush(ctx, b.Store.Keys.Output(), successes(entries)...).Err(); err != nil {
				return fmt.Errorf("push results: %w", err)
			}
		}
		return nil
	})
	group.Go(func() error {
		for len(late.Applied) < plan.Paced {
			entries, next, err := b.Store.Tail(context.WithoutCancel(ctx), position)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			now := b.Now()
			for waiting := true; waiting; {
				select {
				case times, more := <-said:
					for uid, at := range times {
						pushed[uid] = at
					}
					waiting = more
				default:
					waiting = false
				}
			}
			position = next
			for _, e := range entries {
				if at, known := pushed[e.UID]; known && e.Event == model.EventSuccess {
					late.Applied = append(late.Applied, now.Sub(at))
				}
			}
		}
		return nil
	})
	return late, group.Wait()
}

// newest is the position of the newest entry of the journal.
func (b *Bench) newest(ctx context.Context) (string, error) {
	entries, err := b.Redis.XRevRangeN(ctx, b.Store.Keys.Journal(), "+", "-", 1).Result()
	if err != nil || len(entries) == 0 {
		return scripts.TailStart, err
	}
	return entries[0].ID, nil
}

// awaitDaemons waits until a dispatcher and a poller have given a heartbeat.
func (b *Bench) awaitDaemons(ctx context.Context) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		both := true
		for _, set := range []string{b.Store.Keys.Dispatchers(), b.Store.Keys.Pollers()} {
			known, err := b.Redis.ZCard(ctx, set).Result()
			if err != nil {
				return fmt.Errorf("await daemons: %w", err)
			}
			both = both && known > 0
		}
		if both {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// offset is how far the clock of Redis is ahead of ours, as the quickest of some replies tells.
func (b *Bench) offset(ctx context.Context) (offset time.Duration, err error) {
	quickest := time.Hour
	for range 20 {
		sent := b.Now()
		at, err := b.Store.RedisTime(ctx)
		if err != nil {
			return 0, err
		}
		if took := b.Now().Sub(sent); took < quickest {
			quickest, offset = took, at.Sub(sent.Add(took/2))
		}
	}
	return offset, nil
}

// popBlocking pops all that waits, up to the most at once, or waits for one.
func (b *Bench) popBlocking(ctx context.Context) ([]string, error) {
	input := b.Store.Keys.Input()
	entries, err := b.Redis.LPopCount(ctx, input, popped).Result()
	for errors.Is(err, redis.Nil) {
		var popped []string
		if popped, err = b.Redis.BLPop(ctx, time.Second, input).Result(); err == nil {
			entries = popped[1:]
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("pop attempts: %w", err)
	}
	return entries, nil
}
