package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// freezeHolding freezes a poller at a moment when it has claimed messages, and returns how many.
func (f *fleet) freezeHolding(p *testkit.Process, owner string) int64 {
	f.t.Helper()
	for f.ctx.Err() == nil {
		p.Freeze()
		held, err := f.Redis.LLen(f.ctx, f.Store.Keys.Claimed(owner)).Result()
		must(f.t, err)
		if held > 0 {
			return held
		}
		p.Thaw()
		rest(f.ctx, time.Millisecond) // in which it goes on
	}
	f.t.Fatalf("%s never held a message", owner)
	return 0
}

func TestKillingPollersThatHoldABatchAndDispatchersLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.put(models)
	f.start("dispatcher")
	survivor := f.poller("survivor")
	doomed := f.start("dispatcher")
	f.run(f.work)
	held := int64(0)
	victims := long.Or(2, 4)
	for i := range victims {
		owner := fmt.Sprint("victim-", i)
		victim := f.poller(owner)
		f.AwaitEvent(model.EventSuccess, (i+1)*models/10)
		survivor.Freeze() // or it may leave nothing to hold
		held += f.freezeHolding(victim, owner)
		victim.Kill()
		survivor.Thaw()
		doomed.Kill()
		doomed = f.start("dispatcher")
	}
	f.check()
	t.Logf("%d messages were held by %d pollers when they were killed", held, victims)
}

// timed stops a process and returns how long that took; its exit code must be 0.
func (f *fleet) timed(p *testkit.Process) time.Duration {
	f.t.Helper()
	p.AwaitOutput(f.t, `"message":"started"`)
	began := time.Now()
	code := p.Stop()
	failIf(f.t, code != 0, "want exit code 0, got %d", code)
	return time.Since(began)
}

func TestStoppingDispatchersAndPollersUnderLoadLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.put(models)
	f.run(f.work)
	longest := time.Duration(0)
	stops := long.Or(2, 8)
	for i := range stops {
		owner := fmt.Sprint("poller-", i)
		dispatcher, poller := f.start("dispatcher"), f.poller(owner)
		f.AwaitEvent(model.EventSuccess, (i+1)*models/(2*stops))
		longest = max(longest, f.timed(dispatcher), f.timed(poller))
		held := f.List(f.Store.Keys.Claimed(owner))
		failIf(t, len(held) > 0, "stop %d: want nothing left claimed, got %d messages", i, len(held))
		_, known := f.Scores(f.Store.Keys.Pollers)[owner]
		failIf(t, known, "stop %d: want the poller to have resigned", i)
	}
	f.start("dispatcher")
	f.poller("last")
	again := f.check()
	failIf(t, again != 0, "want no message handled twice, got %d", again)
	t.Logf("%d dispatchers and pollers stopped under load, the slowest within %s", 2*stops, longest)
}

// up starts all daemons in one process with a worker for a service.
func (f *fleet) up(s *service, args ...string) *testkit.Process {
	f.t.Helper()
	return f.start("up", append([]string{"--http", s.URL, "--concurrency", "50"}, args...)...)
}

func TestUpStoppedUnderLoadWaitsForTheGraceAndHandsBackTheRest(t *testing.T) {
	t.Parallel()
	const unanswered, all = 20, 800
	f := newFleet(t)
	f.put(all)
	s := newService(t, unanswered)
	s.asked = make(chan struct{}, 2*all) // nobody counts them here
	up := f.up(s, "--grace", "1s")
	f.AwaitEvent(model.EventSuccess, all/4)
	took := f.timed(up)
	t.Logf("stopped within %s with a grace of 1s and %d requests without an answer", took, unanswered)
	failIf(t, took < time.Second, "want it to wait for the grace of 1s, got %s", took)
	f.expectNothingInHand()
	if stats := f.Stats(); stats["interrupted"] < unanswered || stats["stale"]+stats["duplicate"] > 0 {
		t.Errorf("want the %d without an answer handed back, got %v", unanswered, stats)
	}
	f.up(s)
	f.AwaitEvent(model.EventSuccess, all)
	if stats := f.Stats(); stats["success"] != all || stats["stale"]+stats["duplicate"]+stats["timeout"]+stats["retry"] > 0 {
		t.Errorf("want each model refreshed once, got %v", stats)
	}
}

// expectNothingInHand checks that no process holds anything: what runs stands in the input list.
func (f *fleet) expectNothingInHand() {
	f.t.Helper()
	owners := f.owners() + len(f.Scores(f.Store.Keys.Pollers))
	failIf(f.t, owners > 0, "want no worker and no poller known, got %d", owners)
	output := f.List(f.Store.Keys.Output)
	failIf(f.t, len(output) > 0, "want every message applied, got %d left", len(output))
	queued := strings.Join(f.List(f.Store.Keys.Input), "\n")
	for uid := range f.Scores(f.Store.Keys.Running) {
		failIf(f.t, !strings.Contains(queued, f.Model(uid)["attempt_uid"]), "%s: want it queued or idle, got an attempt that nobody works on", uid)
	}
}

func TestASecondSignalEndsTheGraceAndHandsBackWhatIsInHand(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t)
	f.putLong("a", "b", "c")
	s := newService(t, 3)
	address := testkit.FreeAddress(t)
	up := f.up(s, "--grace", "1h", "--health", address)
	s.await(3)
	f.AwaitEvent(model.EventStarted, 3)
	up.Ask()
	began := time.Now()
	testkit.Eventually(t, "up is stopping", func() bool { // signals that come too close together are one
		_, report := askHealth(t, address, "/readyz")
		return report.Why == "stopping"
	})
	code := up.Stop()
	failIf(t, code != 0, "want exit code 0, got %d", code)
	t.Logf("ended %s after the first signal, with a grace of 1h", time.Since(began))
	f.expectNothingInHand()
	stats := f.Stats()
	failIf(t, stats["interrupted"] != 3, "want all three handed back, got %v", stats)
}
