package faults

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/worker"
)

// jumping is a clock that runs and can be set, forward and back, for all daemons of a drill at once.
type jumping struct{ offset atomic.Int64 }

func (j *jumping) now() time.Time {
	return time.Now().Add(time.Duration(j.offset.Load())).UTC().Truncate(time.Millisecond)
}

func (j *jumping) jump(by time.Duration) { j.offset.Add(int64(by)) }

// beginOn lets daemons and workers of our own with short leases refresh the models, until each has been refreshed.
func (d *drill) beginOn(clock *jumping) {
	d.t.Helper()
	d.clock = clock.now
	d.clients, d.store = d.connect(d.address)
	d.save()
	for range 2 {
		d.dispatch()
		_, store := d.connect(d.address)
		p, err := poller.New(store, poller.Config{Lease: time.Second, Tick: 100 * time.Millisecond})
		d.check("open a poller", err)
		d.workers.run(p.Run)
		_, store = d.connect(d.address)
		w, err := worker.New(counted{store.Pool(), d.record}, d.handle, worker.Config{Concurrency: 20, Lease: time.Second})
		d.check("open a worker pool", err)
		d.workers.run(w.Run)
	}
	d.refreshAll()
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
			for _, owner := range owners {
				if owner == name {
					return false, fmt.Errorf("%s stands in %s", name, heartbeats)
				}
			}
			if err != nil {
				return false, err
			}
		}
		left, err := d.clients.Read.Exists(d.ctx, keys.Claimed(name), keys.Taken(name)).Result()
		return left == 0, err
	})
}

// TestAClockThatJumpsForthAndBackLosesNothing lets somebody die at each jump. The clock ends where it has been latest: the queue
// waits for the times that it was given.
func TestAClockThatJumpsForthAndBackLosesNothing(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	clock := &jumping{}
	d.beginOn(clock)
	const m, h = time.Minute, time.Hour
	jumps := []time.Duration{-m, m, -h, h, m, -m, m, h, -h, h}
	for i, by := range jumps {
		name := fmt.Sprint("dead-", i)
		d.die(name)
		before, _ := d.store.Now(d.ctx)
		clock.jump(by)
		if after, err := d.store.Now(d.ctx); err != nil || after.Sub(before) > by/2 != (by > 0) {
			t.Errorf("the fault did not strike: want a jump by %s, got one from %s to %s (%v)", by, before, after, err)
		}
		d.forgotten(name)
		d.examine()
	}
	d.settle()
	d.conclude()
}
