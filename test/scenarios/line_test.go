package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// crowd is a story of many one-shots that wait in line for few workers: all are healthy, and none may fail or lose a retry.
type crowd struct {
	*fixture.Queue
	t       *testing.T
	timeout time.Duration // of an attempt
	work    time.Duration // that an attempt takes
	tick    time.Duration

	running sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context
}

func gather(t *testing.T, q *fixture.Queue, timeout, work, tick time.Duration) *crowd {
	c := &crowd{Queue: q, t: t, timeout: timeout, work: work, tick: tick}
	c.ctx, c.stop = context.WithCancel(t.Context())
	d := check.Got(dispatcher.New(dispatcher.RoomsOf(c.Store), dispatcher.Config{Tick: c.tick, FullTick: min(20*time.Millisecond, tick)}))(t)
	p := check.Got(poller.New(poller.RoomsOf(c.Store), poller.Config{Tick: c.tick}))(t)
	c.running.Go(func() { _ = p.Run(c.ctx) })
	c.running.Go(func() { _ = d.Run(c.ctx) })
	return c
}

func (c *crowd) end() {
	c.stop()
	c.running.Wait()
}

// save saves healthy one-shots, which are refreshed at once and have no retries.
func (c *crowd) save(models int) {
	c.t.Helper()
	commands := make([]any, models)
	for i := range commands {
		commands[i] = fmt.Sprintf(`{"type":"put","uid":"m%05d","policy":{"timeout":%q,"retries":[],"on_exhausted":"give_up"}}`, i, c.timeout)
	}
	must(c.t, c.Redis.RPush(c.ctx, c.Store.Keys.Control, commands...).Err())
}

// hire starts workers that know no more than two lists.
func (c *crowd) hire(workers int) {
	for range workers {
		c.running.Go(func() {
			for c.ctx.Err() == nil {
				entry, ok := c.pop()
				if !ok {
					c.rest(10 * time.Millisecond)
					continue
				}
				c.rest(c.work)
				attempt, _ := model.Wire{}.ParseEntry(entry)
				if c.ctx.Err() == nil {
					_ = c.Redis.RPush(c.ctx, c.Store.Keys.Output, fixture.Result("success", attempt.UID, attempt.AttemptUID)).Err()
				}
			}
		})
	}
}

func (c *crowd) pop() (entry string, ok bool) {
	raw, err := c.Redis.LPop(c.ctx, c.Store.Keys.Input).Result()
	if err != nil {
		failIf(c.t, !errors.Is(err, redis.Nil) && c.ctx.Err() == nil, "%v", err)
		return "", false
	}
	return raw, true
}

func (c *crowd) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
	}
}

// counters awaits so many successes and failures, together, and returns all counters.
func (c *crowd) counters(ends int) (stats map[string]int) {
	c.t.Helper()
	for range int(check.Limit / (10 * time.Millisecond)) {
		if stats = c.Stats(); stats["success"]+stats["failure"]+stats["timeout"] >= ends {
			return stats
		}
		c.rest(10 * time.Millisecond)
	}
	c.t.Fatalf("want %d attempts to end, got %v", ends, stats)
	return nil
}

const healthyModels, lineWorkers = 200, 8

// virtually runs the story of 200 one-shots and 8 workers on a clock that costs no time.
func virtually(t *testing.T, tell func(c *crowd)) {
	synctest.Test(t, func(t *testing.T) {
		q := fixture.Virtual(t)
		q.Count() // each command takes a while
		c := gather(t, q, 4*time.Second, 500*time.Millisecond, time.Second)
		defer c.end()
		tell(c)
	})
}

// everyClock runs the story also on a redis-server, a fifth as long.
func everyClock(t *testing.T, tell func(c *crowd)) {
	t.Run("virtual", func(t *testing.T) { virtually(t, tell) })
	t.Run("redis-server", func(t *testing.T) {
		long.Only(t)
		c := gather(t, fixture.Live(t, testkit.Redis(t)), 800*time.Millisecond, 100*time.Millisecond, 200*time.Millisecond)
		defer c.end()
		tell(c)
	})
}

func TestNoHealthyModelFailsByWaitingInLineForWorkersThatOnlyKnowTwoLists(t *testing.T) {
	everyClock(t, func(c *crowd) {
		c.hire(lineWorkers)
		c.save(healthyModels)
		stats := c.counters(healthyModels)
		failIf(c.t, stats["success"] != healthyModels || stats["failure"]+stats["timeout"]+stats["retry"]+stats["stale"] > 0,
			"want %d successes, each in the first attempt, and nothing else, got %v", healthyModels, stats)
	})
}

// Three workers die of what they took when the list was long: each attempt has its full timeout from then, and no more.
func TestAWorkerThatDiesAfterTakingFromALongLineIsFoundLostATickAfterItsFullTimeout(t *testing.T) {
	virtually(t, func(c *crowd) {
		const deaths = 3
		c.hire(lineWorkers)
		c.save(healthyModels)
		taken := map[string]time.Time{}
		for i := range deaths {
			c.counters(healthyModels / 5 * (i + 1))
			raw, ok := c.pop()
			entry, _ := model.Wire{}.ParseEntry(raw)
			now, err := c.Store.Now(c.ctx)
			stopIf(c.t, !ok || err != nil, "want an attempt that waits, got %v", err)
			taken[entry.UID] = now
		}
		stats := c.counters(healthyModels)
		failIf(c.t, stats["success"] != healthyModels-deaths || stats["timeout"] != deaths,
			"want %d successes and %d timeouts, got %v", healthyModels-deaths, deaths, stats)
		for uid, at := range taken {
			found, err := time.Parse(model.TimeLayout, c.Model(uid)["final_failure_at"])
			late := found.Sub(at)
			failIf(c.t, err != nil || late < c.timeout-2*time.Millisecond || late > c.timeout+c.tick,
				"%s: want it found lost %s to %s after it was taken, got %s, %v", uid, c.timeout, c.timeout+c.tick, late, err)
		}
	})
}
