package dispatcher_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

const workerLease = 5 * time.Second

// takeAs takes under a name, as a worker does that dies.
func (b *bundle) takeAs(owner string) {
	b.t.Helper()
	taken, err := b.Store.Pool().Take(b.t.Context(), store.TakeRequest{Owner: owner, New: true, Most: 1})
	stopIf(b.t, err != nil || len(taken.Entries) != 1, "%s took %q, %v, want one entry", owner, taken.Entries, err)
}

func TestWhatADeadWorkerHadTakenIsRequeuedWithinTheLeaseHoweverTheClockJumps(t *testing.T) {
	for name, test := range map[string]struct{ jump, most time.Duration }{
		"it runs on":           {0, workerLease},
		"half a lease back":    {-workerLease / 2, workerLease + workerLease/2},
		"a lease and a half":   {-workerLease * 3 / 2, workerLease},
		"an hour back":         {-time.Hour, workerLease},
		"half a lease forward": {workerLease / 2, workerLease},
		"an hour forward":      {time.Hour, workerLease},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.save(policy.Policy{Timeout: 24 * time.Hour, OnExhausted: policy.GiveUp}, model.Definition{Payload: `{}`}, "tbl_1")
				d := b.dispatcher(b.Store, dispatcher.Config{})
				b.round(d)
				b.takeAs("dead")
				b.round(d)
				b.Clock.Turn(test.jump)
				passed := time.Duration(0)
				for ; len(b.List(b.Store.Keys.Input)) == 0; passed += time.Second {
					stopIf(t, passed > test.most+2*time.Second, "not requeued %s after the jump", passed)
					b.Clock.Turn(time.Second)
					b.round(d)
				}
				failIf(t, passed < workerLease && test.jump >= 0, "requeued after %s, before the lease", passed)
				workers := b.Redis.ZCard(t.Context(), b.Store.Keys.Workers).Val()
				failIf(t, workers != 0, "want the dead worker forgotten, found %d", workers)
			})
		})
	}
}

func TestAWorkerThatGivesHeartbeatsKeepsWhatItHasHoweverTheClockJumps(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.round(d)
		b.takeAs("w1")
		for i, turn := range []time.Duration{1, 1, 1, 1, 1, 1, -20, 1, 1, 1, 1, 1, 1, 20, 1, 1, 1, 1, 1, 1} {
			b.Clock.Turn(turn * time.Second)
			b.round(d) // it comes before the heartbeat of this second
			beat, err := b.Store.Pool().Heartbeat(t.Context(), "w1")
			stopIf(t, err != nil || beat.Forgotten, "second %d: forgotten %t, %v", i, beat.Forgotten, err)
		}
	})
}
