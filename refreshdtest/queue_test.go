package refreshdtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/refreshdtest"
	"github.com/refreshd/refreshd/worker"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

func equal[T any](t *testing.T, want, got T) {
	t.Helper()
	diff := cmp.Diff(want, got)
	failIf(t, diff != "", "-want +got\n%s", diff)
}

func TestWorkTakesItsTimeOnTheVirtualClock(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		q.Handle(func(ctx context.Context, a *worker.Attempt) error {
			a.Status("half of it", 50)
			time.Sleep(7 * time.Minute)
			return nil
		})
		q.Put(hourly)
		q.Advance(time.Hour + 3*time.Minute)
		if m := q.Model("tbl_1"); m.UserFriendlyStatus != "half of it" || m.Progress != 50 {
			t.Errorf("expected the status of the handler, found %q %d", m.UserFriendlyStatus, m.Progress)
		}
		q.Advance(10 * time.Minute)
		attempts := q.Attempts("tbl_1")
		failIf(t, len(attempts) != 1 || attempts[0].Duration != 7*time.Minute, "expected one attempt of 7 minutes, found %+v", attempts)
	})
}

func TestWithoutAHandlerNothingIsTakenAndNobodyIsBlamed(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		q.Put(hourly)
		q.Advance(6 * time.Hour)
		status := q.Status("tbl_1")
		failIf(t, status != model.StatusQueued, "expected an attempt that nobody has taken, found %s", status)
		var f feed
		q.Handle(f.refresh)
		q.Advance(time.Minute)
		m := q.Model("tbl_1")
		failIf(t, m.LastSuccessAt.IsZero() || !m.FailingSince.IsZero() || m.TotalRetries != 0, "expected a success and no failure, found %+v", m.State)
	})
}

func TestWhatTheApplicationPushesItselfIsSeenByTheNextAdvance(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		err := q.Redis.RPush(t.Context(), "bigtables-control", `{"type":"put","uid":"tbl_9","refresh":"now"}`).Err()
		must(t, err)
		q.Advance(0)
		status := q.Status("tbl_9")
		failIf(t, status != model.StatusQueued, "expected a queued attempt, found %s", status)
	})
}

func TestTheSameTestDoesTheSameEachTime(t *testing.T) {
	run := func() (all []string) {
		refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
			runs := 0
			q.Handle(func(_ context.Context, a *worker.Attempt) error {
				if runs++; runs%3 == 0 {
					return worker.ErrorType(context.DeadlineExceeded, "Slow")
				}
				return nil
			})
			for _, uid := range []string{"a", "b", "c", "d"} {
				q.Put(`{uid: ` + uid + `, rrule: "FREQ=MINUTELY;INTERVAL=20", policy: {timeout: 1m, retries: [0, 1m]}}`)
			}
			q.Advance(3 * time.Hour)
			for _, uid := range []string{"a", "b", "c", "d"} {
				all = append(all, outcomes(q.Attempts(uid))...)
			}
		})
		return all
	}
	equal(t, run(), run())
}

// It measures: REFRESHD_LONG=1 go test -v -run ManyDays ./refreshdtest
func TestManyDaysOfAnHourlyModelAreDoneInAMoment(t *testing.T) {
	days := 3
	if long.Enabled() {
		days = 25
	}
	began := time.Now()
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		var f feed
		q.Handle(f.refresh)
		q.Put(hourly)
		q.Advance(time.Duration(days) * 24 * time.Hour)
		n := q.Counters()["success"]
		failIf(t, n != int64(24*days), "expected %d successes, found %d", 24*days, n)
	})
	t.Logf("%d virtual days of an hourly model in %s", days, time.Since(began))
}

func TestAHandlerThatIsAtWorkAtTheEndIsToldToStop(t *testing.T) {
	var cause error
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		q.Handle(func(ctx context.Context, _ *worker.Attempt) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
		q.Put(hourly)
		q.Run("tbl_1")
	})
	failIf(t, !errors.Is(cause, worker.ErrShutdown), "expected the end of the test to stop the handler, found %v", cause)
}
