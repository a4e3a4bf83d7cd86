package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/model"
)

// lead is how long before the first of the paced models is due all of them are saved, at least.
const lead = time.Second

// pacing is one measurement of lateness: a worker and a follower of the journal, each a goroutine.
type pacing struct {
	bench  *Bench
	plan   Plan
	first  int           // number of the first model
	begin  time.Time     // when that one is due, by the clock of Redis
	offset time.Duration // how far that clock is ahead of ours

	said chan map[string]time.Time // uid to the time of its push, before each push; the worker closes it at its end
	late Lateness                  // the worker writes Starts, the follower Applied

	// The follower only.
	pushed   map[string]time.Time // all that was said
	position string               // in the journal
}

// prepare saves the models, each due in its turn, and compares the clocks.
func (p *pacing) prepare(ctx context.Context) (err error) {
	ahead := lead + time.Duration(p.plan.Paced)*time.Millisecond/4
	err = p.bench.Fill(ctx, p.first, p.plan.Paced, func(i int, now time.Time) time.Time {
		p.begin = now.Add(ahead)
		return p.due(i)
	})
	if err == nil {
		p.offset, err = p.bench.offset(ctx)
	}
	return err
}

// due is when the model of a number is due.
func (p *pacing) due(number int) time.Time {
	return p.begin.Add(time.Duration(number-p.first) * p.plan.Spacing)
}

// measure lets the worker and the follower run until all models were started and all results applied.
func (p *pacing) measure(ctx context.Context) (Lateness, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.work(ctx) })
	group.Go(func() error { return p.follow(ctx) })
	err := group.Wait()
	return p.late, err
}

// work pops attempts and says of each that it has succeeded, until it had all. Without spacing it holds all back until it has the last.
func (p *pacing) work(ctx context.Context) error {
	defer close(p.said)
	var held []string
	for len(p.late.Starts) < p.plan.Paced {
		entries, err := p.bench.popBlocking(ctx)
		if err != nil {
			return err
		}
		p.noteStarts(entries)
		if held = append(held, entries...); p.plan.Spacing == 0 && len(held) < p.plan.Paced {
			continue
		}
		if err := p.push(ctx, held); err != nil {
			return err
		}
		held = nil
	}
	return nil
}

// noteStarts notes how late each of the attempts has come.
func (p *pacing) noteStarts(entries []string) {
	now := p.bench.Now().Add(p.offset)
	for _, text := range entries {
		uid, _ := uidsOf(text)
		p.late.Starts = append(p.late.Starts, now.Sub(p.due(numberOf(uid))))
	}
}

// push says when it pushes the results, and pushes them.
func (p *pacing) push(ctx context.Context, entries []string) error {
	times := make(map[string]time.Time, len(entries))
	for _, text := range entries {
		uid, _ := uidsOf(text)
		times[uid] = p.bench.Now()
	}
	p.said <- times
	if err := p.bench.Redis.RPush(ctx, p.bench.Store.Keys.Output, results(entries)...).Err(); err != nil {
		return fmt.Errorf("push results: %w", err)
	}
	return nil
}

// follow reads the journal until all results are applied.
func (p *pacing) follow(ctx context.Context) error {
	for len(p.late.Applied) < p.plan.Paced {
		entries, next, err := p.bench.Store.Report().Tail(context.WithoutCancel(ctx), p.position)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		p.noteApplied(entries)
		p.position = next
	}
	return nil
}

// noteApplied notes how late each of the results has been applied.
func (p *pacing) noteApplied(entries []model.JournalEntry) {
	now := p.bench.Now()
	p.listen()
	for _, e := range entries {
		if at, known := p.pushed[e.UID]; known && e.Event == model.EventSuccess {
			p.late.Applied = append(p.late.Applied, now.Sub(at))
		}
	}
}

// listen takes over what the worker has said so far.
func (p *pacing) listen() {
	for {
		select {
		case times, more := <-p.said:
			if !more {
				return
			}
			maps.Copy(p.pushed, times)
		default:
			return
		}
	}
}

// popBlocking pops all that waits, up to the most at once, or waits for one.
func (b *Bench) popBlocking(ctx context.Context) ([]string, error) {
	input := b.Store.Keys.Input
	entries, err := b.Redis.LPopCount(ctx, input, popped).Result()
	for errors.Is(err, redis.Nil) {
		var found []string
		if found, err = b.Redis.BLPop(ctx, time.Second, input).Result(); err == nil {
			entries = found[1:]
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
