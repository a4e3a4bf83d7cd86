package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
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

// refusing does not let a dispatcher requeue.
type refusing struct {
	*store.Store
	err   error
	looks int
}

func (r *refusing) RequeueExpired(context.Context, time.Time, time.Time, time.Duration) ([]store.ExpiredWorker, error) {
	r.looks++
	return nil, r.err
}

func TestADispatcherThatMayNotRequeueSaysSoOnceAMinuteAndGoesOn(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	var text bytes.Buffer
	log := zerolog.New(&text)
	queue := &refusing{b.Store, redis.Error(refusal("NOPERM User dispatcher has no permissions")), 0}
	d := b.dispatcher(queue, dispatcher.Config{Log: &log})
	for range 30 {
		b.round(d)
		b.Clock.Turn(time.Second)
	}
	failIf(t, queue.looks != 1 || strings.Count(text.String(), "refreshd acl") != 1, "looked %d times, said:\n%s", queue.looks, text.String())
	queue.err = errors.New("connection refused")
	b.Clock.Turn(-time.Minute) // a lease of even rounds begins anew
	for failed := false; !failed; b.Clock.Turn(time.Second) {
		_, err := d.RunOnce(t.Context())
		failed = errors.Is(err, queue.err)
		stopIf(t, queue.looks > 1 && !failed, "want the error of Redis told, got %v", err)
	}
}

type refusal string

func (r refusal) Error() string { return string(r) }

func (refusal) RedisError() {}
