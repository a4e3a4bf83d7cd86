package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// jumps back, each from the same instant.
var jumps = []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour}

func TestWhileTheClockIsBehindNothingIsStartedBeforeItsTime(t *testing.T) {
	for _, back := range jumps {
		t.Run(back.String(), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				b.saveOne(`{"timeout":"1m"}`, "FREQ=HOURLY")
				b.expect(dispatcher.Round{}, b.round(d), "refresh_at 2026-11-21T08:00:00.000Z")
				for _, clock := range []time.Time{at(t, "08:00:00").Add(-back), at(t, "07:59:59.999")} {
					b.Clock.Set(clock)
					b.expect(dispatcher.Round{}, b.round(d), "attempt_uid ", "refresh_at 2026-11-21T08:00:00.000Z")
				}
				b.Clock.Set(at(t, "08:00:00"))
				b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 1")
			})
		})
	}
}

func TestWhileTheClockIsBehindADeadlineIsFurtherAwayAndAResultCounts(t *testing.T) {
	for _, back := range jumps {
		t.Run(back.String(), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				b.saveOne(`{"timeout":"1m","retries":["5m"]}`, "FREQ=HOURLY")
				b.Clock.Set(at(t, "08:00:00"))
				b.expect(dispatcher.Round{Started: 1}, b.round(d), "deadline_at 2026-11-21T08:01:00.000Z")
				b.Take()
				b.Clock.Turn(-back)
				b.expect(dispatcher.Round{}, b.round(d), "attempt_uid attempt-1", "deadline_at 2026-11-21T08:01:00.000Z")
				b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Succeed(now, nil) }, "tbl_1")
				// The occurrence that was just refreshed lies ahead again, and is refreshed once more.
				b.expect(dispatcher.Round{}, b.round(d), "attempt_uid ", "refresh_at 2026-11-21T08:00:00.000Z")
				b.Clock.Set(at(t, "08:00:00"))
				b.expect(dispatcher.Round{Started: 1}, b.round(d), "attempt_no 1")
				b.Clock.Set(at(t, "08:01:00"))
				b.Take()
				b.expect(dispatcher.Round{TimedOut: 1}, b.round(d))
			})
		})
	}
}

// slow is a store on which something happens after the input list was looked through.
type slow struct {
	*store.Store
	after func()
}

func (s slow) Queued(ctx context.Context) (map[string]string, error) {
	queued, err := s.Store.Queued(ctx)
	s.after()
	return queued, err
}

func TestAnAttemptThatWasStartedAfterTheListWasLookedThroughIsNotLostThoughTheClockWasSetBack(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.saveOne(`{"timeout":"1m","retries":["0s"]}`, "FREQ=HOURLY")
		b.Clock.Set(at(t, "08:00:00"))
		other := b.dispatcher(b.Store, dispatcher.Config{})
		b.expect(dispatcher.Round{Started: 1}, b.round(other))
		b.Take()
		b.Clock.Set(at(t, "09:30:00"))
		d := b.dispatcher(slow{b.Store, func() {
			b.Clock.Set(at(t, "08:00:30"))
			b.failWith(policy.Failure{Reason: "HTTP 500"}, "tbl_1")
			b.expect(dispatcher.Round{Started: 1}, b.round(other), "attempt_uid attempt-2", "deadline_at 2026-11-21T08:01:30.000Z")
		}}, dispatcher.Config{})
		round := b.round(d)
		failIf(t, round.TimedOut != 0, "want no attempt timed out, got %+v", round)
		b.expect(dispatcher.Round{Queued: 1, Sleep: 250 * time.Millisecond}, b.round(d), "attempt_uid attempt-2")
	})
}
