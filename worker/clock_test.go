package worker

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// patient is a queue that a pool waits for, however busy the machine is.
type patient struct{ *observed }

func (p patient) Heartbeat(ctx context.Context, owner string) (time.Time, bool, error) {
	return p.observed.Heartbeat(context.WithoutCancel(ctx), owner)
}

func (p patient) ExpiredWorkers(ctx context.Context, now time.Time, lease time.Duration) ([]store.ExpiredWorker, error) {
	return p.observed.ExpiredWorkers(context.WithoutCancel(ctx), now, lease)
}

func TestWhatADeadWorkerHadTakenIsDoneByAnotherWithinTheLeaseHoweverTheClockJumps(t *testing.T) {
	config := brief()
	lease := config.Lease
	for name, test := range map[string]struct {
		jump time.Duration
		most time.Duration // on the clock, after the jump
		long bool          // run with the long tests
	}{
		"it runs on":           {0, lease, false},
		"half a lease back":    {-lease / 2, lease + lease/2, false},
		"a lease and a half":   {-lease * 3 / 2, lease, true},
		"two leases back":      {-2 * lease, lease, true},
		"an hour back":         {-time.Hour, lease, false},
		"half a lease forward": {lease / 2, lease, true},
		"an hour forward":      {time.Hour, lease, true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.long {
				long.Only(t)
			}
			testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
				r, clock := standstill(t, server)
				r.offerUntil("m", 24*time.Hour)
				r.takeAs("dead", 1)
				queue, b := observe(unhurried{r}), newBench()
				p := run(t, patient{queue}, config, b.handle)
				testkit.Await(t, queue.beats, "a heartbeat before the jump")
				clock.Turn(test.jump)
				for passed := time.Duration(0); ; passed += config.Heartbeat {
					for range 2 { // the first may have read the clock before it was turned
						testkit.Await(t, queue.beats, "a heartbeat")
					}
					if len(b.began) > 0 || p.Stats().Requeued > 0 {
						t.Logf("handed back %s after the jump", passed)
						break
					}
					if passed > test.most+2*config.Heartbeat {
						t.Fatalf("not handed back %s after the jump: %v", passed, r.workers())
					}
					clock.Turn(config.Heartbeat)
				}
				b.result <- nil
				testkit.Await(t, b.began, "the attempt of the dead worker")
				r.must(p.stop())
			})
		})
	}
}
