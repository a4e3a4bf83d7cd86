package faults

import (
	"fmt"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// poller starts a poller process by name.
func (f *fleet) poller(owner string) *testkit.Process {
	f.t.Helper()
	return testkit.Refreshd(f.t, "poller", "--redis", f.Server.URL, "--owner", owner, "--lease", "1s", "--tick", "100ms")
}

func (f *fleet) dispatcher() *testkit.Process {
	f.t.Helper()
	return testkit.Refreshd(f.t, "dispatcher", "--redis", f.Server.URL)
}

// freezeHolding freezes a poller at a moment when it has claimed messages, and returns how many.
func (f *fleet) freezeHolding(p *testkit.Process, owner string) int64 {
	f.t.Helper()
	for f.ctx.Err() == nil {
		p.Freeze()
		held, err := f.Redis.LLen(f.ctx, f.Store.Keys.Claimed(owner)).Result()
		if err != nil {
			f.t.Fatal(err)
		}
		if held > 0 {
			return held
		}
		p.Thaw()
	}
	f.t.Fatalf("%s never held a message", owner)
	return 0
}

func TestKillingPollersThatHoldABatchAndDispatchersLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.put(models)
	f.dispatcher()
	f.poller("survivor")
	doomed := f.dispatcher()
	f.run(f.work)
	held := int64(0)
	victims := long.Or(2, 4)
	for i := range victims {
		owner := fmt.Sprint("victim-", i)
		victim := f.poller(owner)
		f.AwaitEvent(model.EventSuccess, (i+1)*models/10)
		held += f.freezeHolding(victim, owner)
		victim.Kill()
		doomed.Kill()
		doomed = f.dispatcher()
	}
	events := f.AwaitEvent(model.EventSuccess, models)
	f.stop()
	f.daemon.Wait()
	f.check(events)
	t.Logf("%d messages were held by %d pollers when they were killed", held, victims)
}
