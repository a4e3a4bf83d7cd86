package faults

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/worker"
)

// outwait waits until an attempt is over, whatever it ends by.
func (d *drill) outwait(e entry) {
	_ = d.await(func() (bool, error) {
		uid, err := d.clients.Read.HGet(d.ctx, d.store.Keys.Model(e.UID), "attempt_uid").Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return uid != e.AttemptUID, err
	})
}

func TestAWorkerThatIgnoresItsDeadlineChangesNothingWhenItAnswers(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.policy.Timeout = 500 * time.Millisecond
	var late atomic.Int64
	lateWorkers := newDaemonGroup(d.ctx, t)
	t.Cleanup(lateWorkers.stop)
	y := d.conclude(func() {
		for range 3 {
			lateWorkers.run(d.foreignWorker(func(e entry) { d.outwait(e); late.Add(1) }))
		}
		d.until("late answers", func() (bool, error) { return late.Load() >= 10*int64(*timesFlag), nil })
		lateWorkers.stop()
	})
	unheard := y.stats["stale"] + y.stats["duplicate"]
	failIf(t, unheard < late.Load(), "want %d late answers stale, got %d", late.Load(), unheard)
	timeouts := int64(y.events["timeout"])
	failIf(t, timeouts < late.Load(), "want %d attempts timed out, got %d", late.Load(), timeouts)
	t.Logf("%d answers came after the deadline", late.Load())
}

// die leaves what a poller and a worker pool leave that are killed now: claimed messages, and taken attempts if there are any.
func (d *drill) die(name string) {
	d.t.Helper()
	d.check("push a message", d.clients.Write.RPush(d.ctx, d.store.Keys.Output, "left by "+name).Err())
	d.record.pushed(nil, 1)
	_, err := d.store.Claim(d.ctx, name, 100, time.Second)
	d.check("claim as "+name, err)
	_, err = d.store.Pool().Take(d.ctx, store.TakeRequest{Owner: name, New: true, Most: 100})
	d.check("take as "+name, err)
}

// forgotten waits until others have all that was left under a name.
func (d *drill) forgotten(name string) {
	d.t.Helper()
	keys := d.store.Keys
	d.until("the end of "+name, func() (bool, error) {
		for _, heartbeats := range []string{keys.Pollers, keys.Workers} {
			owners, err := d.clients.Read.ZRange(d.ctx, heartbeats, 0, -1).Result()
			if err != nil || slices.Contains(owners, name) {
				return false, cmp.Or(err, fmt.Errorf("%s stands in %s", name, heartbeats))
			}
		}
		left, err := d.clients.Read.Exists(d.ctx, keys.Claimed(name), keys.Taken(name)).Result()
		return left == 0, err
	})
}

// TestAClockThatJumpsForthAndBackLosesNothing lets somebody die at each jump, beside daemons and workers of our own with short leases. The clock ends
// where it has been latest: the queue waits for the times that it was given.
func TestAClockThatJumpsForthAndBackLosesNothing(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	var offset atomic.Int64
	d.clock = func() time.Time { return time.Now().Add(time.Duration(offset.Load())).UTC().Truncate(time.Millisecond) }
	d.clients, d.store = d.connect(d.address)
	d.save()
	for range 2 {
		d.dispatch()
		d.poll(poller.Config{Lease: time.Second, Tick: 100 * time.Millisecond})
		d.pool(worker.Config{Lease: time.Second})
	}
	d.refreshAll()
	const m, h = time.Minute, time.Hour
	for i, by := range []time.Duration{-m, m, -h, h, m, -m, m, h, -h, h} {
		name := fmt.Sprint("dead-", i)
		d.die(name)
		before, _ := d.store.Now(d.ctx)
		offset.Add(int64(by))
		if after, err := d.store.Now(d.ctx); err != nil || after.Sub(before) > by/2 != (by > 0) {
			t.Errorf("the fault did not strike: want a jump by %s, got one from %s to %s (%v)", by, before, after, err)
		}
		d.forgotten(name)
		d.examine()
	}
	d.settle()
	d.audit()
}
