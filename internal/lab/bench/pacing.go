package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
)

// pacing is one measurement of lateness, by two goroutines: a worker and a follower of the journal.
type pacing struct {
	bench  *Bench
	plan   Plan
	first  int           // number of the first model
	begin  time.Time     // when that one is due, by the clock of Redis
	offset time.Duration // how far that clock is ahead of ours

	said chan map[string]time.Time // uid to the time of its push, before each push; the worker closes it at its end
	late Lateness                  // the worker writes Starts, the follower Applied

	// Of the follower only.
	pushed   map[string]time.Time
	position string // in the journal
}

// prepare saves the models, each due in its turn, and compares the clocks.
func (p *pacing) prepare(ctx context.Context) (err error) {
	ahead := time.Second + time.Duration(p.plan.Paced)*time.Millisecond/4
	err = p.bench.Fill(ctx, p.first, p.plan.Paced, func(i int, now time.Time) time.Time {
		p.begin = now.Add(ahead)
		return p.due(i)
	})
	quickest := time.Hour // of some replies
	for range 20 {
		if err != nil {
			return err
		}
		var at time.Time
		sent := p.bench.Now()
		at, err = p.bench.Store.Report().RedisTime(ctx)
		if took := p.bench.Now().Sub(sent); took < quickest {
			quickest, p.offset = took, at.Sub(sent.Add(took/2))
		}
	}
	return err
}

func (p *pacing) due(number int) time.Time {
	return p.begin.Add(time.Duration(number-p.first) * time.Millisecond)
}

// work pops attempts and pushes a success for each, until it had all.
func (p *pacing) work(ctx context.Context) error {
	defer close(p.said)
	for len(p.late.Starts) < p.plan.Paced {
		entries, err := p.bench.popBlocking(ctx)
		if err != nil {
			return err
		}
		now, times := p.bench.Now(), make(map[string]time.Time, len(entries))
		for _, text := range entries {
			uid, _ := uidsOf(text)
			number, _ := strconv.Atoi(strings.TrimPrefix(uid, uidPrefix)) // written by Fill
			p.late.Starts = append(p.late.Starts, now.Add(p.offset).Sub(p.due(number)))
			times[uid] = now
		}
		p.said <- times // before they are pushed
		if err := p.bench.Redis.RPush(ctx, p.bench.Store.Keys.Output, results(entries)...).Err(); err != nil {
			return fmt.Errorf("push results: %w", err)
		}
	}
	return nil
}

func (p *pacing) follow(ctx context.Context) error {
	for len(p.late.Applied) < p.plan.Paced {
		entries, next, err := report.Of(p.bench.Store).Tail(context.WithoutCancel(ctx), p.position)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		now := p.bench.Now()
		for said := true; said; { // by the worker so far
			var times map[string]time.Time
			select {
			case times, said = <-p.said:
				maps.Copy(p.pushed, times)
			default:
				said = false
			}
		}
		for _, e := range entries {
			if at, known := p.pushed[e.UID]; known && e.Event == model.EventSuccess {
				p.late.Applied = append(p.late.Applied, now.Sub(at))
			}
		}
		p.position = next
	}
	return nil
}

// popBlocking pops all waiting attempts, up to a limit, or waits for one.
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

// Lateness is how late models were started and results applied, one of each for each model.
type Lateness struct {
	Starts  []time.Duration // from refresh_at until a waiting worker has the attempt
	Applied []time.Duration // from the push of the result until it is in the journal
}

// Paced makes models due one after the other, as planned, and measures how late they are started and their results applied. first is the
// number of the first model; the ones before it are left alone.
func (b *Bench) Paced(ctx context.Context, plan Plan, first int) (late Lateness, err error) {
	entries, err := b.Redis.XRevRangeN(ctx, b.Store.Keys.Journal, "+", "-", 1).Result()
	if err != nil {
		return late, err
	}
	position := report.TailStart
	if len(entries) > 0 {
		position = entries[0].ID
	}
	stop, err := plan.Start()
	if err != nil {
		return late, err
	}
	defer func() {
		_, stopErr := stop()
		err = errors.Join(err, stopErr)
	}()
	if err := await(ctx, nil, func() (bool, error) { // until a dispatcher and a poller have given a heartbeat
		stats, err := report.Of(b.Store).Stats(ctx)
		return stats.Living[model.RoleDispatcher] > 0 && stats.Living[model.RolePoller] > 0, err
	}); err != nil {
		return late, err
	}
	p := pacing{
		bench: b, plan: plan, first: first, position: position,
		said: make(chan map[string]time.Time, plan.Paced), pushed: make(map[string]time.Time, plan.Paced),
	}
	if err := p.prepare(ctx); err != nil {
		return late, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.work(ctx) })
	group.Go(func() error { return p.follow(ctx) })
	err = group.Wait()
	return p.late, err
}
