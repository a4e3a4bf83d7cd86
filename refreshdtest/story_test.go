package refreshdtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/refreshdtest"
	"github.com/refreshd/refreshd/worker"
)

// feed is a feed of the application: its handler fails while the feed is down.
type feed struct{ down bool }

func (f *feed) refresh(context.Context, *worker.Attempt) error {
	if f.down {
		return worker.ErrorType(errors.New("HTTP 503"), "FeedDown")
	}
	return nil
}

const hourly = `{uid: tbl_1, payload: {input_url: "https://example.com/feed.csv"}, rrule: "FREQ=HOURLY", timezone: UTC,
  policy: {timeout: 10m, retries: [1m, 5m, 20m], on_exhausted: next_planned}}`

// outcomes are how the attempts of a model ended, and when they began.
func outcomes(attempts []model.Attempt) (all []string) {
	for _, a := range attempts {
		all = append(all, a.StartedAt.Format("15:04")+" "+string(a.Outcome))
	}
	return all
}

func TestAFeedThatIsDownForAnAfternoonIsTriedAgainAndRecoversByItself(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		var f feed
		q.Handle(f.refresh)
		q.AdvanceTo(time.Date(2026, 11, 23, 11, 30, 0, 0, time.UTC))
		q.Put(hourly)
		q.Advance(time.Hour)
		f.down = true
		q.Advance(4 * time.Hour)
		if m := q.Model("tbl_1"); m.FailingSince.IsZero() || m.Disabled {
			t.Errorf("expected a model that fails and is still enabled, found failing since %s, disabled %t", m.FailingSince, m.Disabled)
		}
		f.down = false
		q.Advance(time.Hour)

		all := outcomes(q.Attempts("tbl_1"))
		equal(t, []string{"12:00 success", "13:00 failure", "13:01 failure", "13:06 failure", "13:26 failure", "14:00 failure"}, all[:6])
		equal(t, []string{"16:26 failure", "17:00 success"}, all[len(all)-2:])
		if m := q.Model("tbl_1"); !m.FailingSince.IsZero() || m.AttemptNo != 0 {
			t.Errorf("expected a model that is well again, found failing since %s, attempt %d", m.FailingSince, m.AttemptNo)
		}
	})
}

func TestAPolicyThatGivesUpTellsTheOwnerOnceAndWaitsForAnUpdate(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		q.PutPolicy(`
- This policy is called patient-for-a-day
- Refresh every 6 hours
- Allow 10 minutes for a response
- On the first failure, retry after 5 minutes
- On the second failure:
  - Reset attempt_no
  - Wait until the next scheduled refresh
- Give up after 1 day of unsuccessful attempts:
  - Disable auto-refresh
`)
		f := feed{down: true}
		q.Handle(f.refresh)
		q.Put(`{uid: tbl_1, payload: {input_url: "https://example.com/gone.csv"}, policy: patient-for-a-day}`)
		q.Advance(3 * 24 * time.Hour)

		m := q.Model("tbl_1")
		failIf(t, !m.Disabled || m.DisabledReason == "", "expected a disabled model with a reason, found %t %q", m.Disabled, m.DisabledReason)
		notices := q.Notices()
		stopIf(t, len(notices) != 1 || notices[0].Notice != policy.NoticeDisabled || notices[0].UID != "tbl_1",
			"expected one notice, that tbl_1 is disabled, found %+v", notices)

		f.down = false
		q.Put(`{uid: tbl_1, payload: {input_url: "https://example.com/new.csv"}, policy: patient-for-a-day}`)
		status := q.Status("tbl_1")
		failIf(t, status != model.StatusScheduled, "expected the update to be refreshed at once, and then to be scheduled, found %s", status)
		if notices := q.Notices(); len(notices) != 2 || notices[1].Notice != policy.NoticeRecovered {
			t.Errorf("expected the owner to hear that it has recovered, found %+v", notices)
		}
	})
}

func TestAHandlerThatAsksToBeCalledLaterIsCalledThen(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		asked := false
		q.Handle(func(context.Context, *worker.Attempt) error {
			if !asked {
				asked = true
				return worker.RetryAfter(errors.New("HTTP 429"), 25*time.Minute)
			}
			return nil
		})
		q.Put(hourly)
		q.Advance(time.Hour + 40*time.Minute)
		equal(t, []string{"01:00 failure", "01:25 success"}, outcomes(q.Attempts("tbl_1")))
	})
}

func TestAModelRunsByHandStandsStillWhileItIsDisabledAndIsForgottenWhenItIsRemoved(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		var f feed
		q.Handle(f.refresh)
		q.Put(hourly)
		q.Advance(20 * time.Minute)
		q.Run("tbl_1")
		q.Advance(time.Hour)
		equal(t, []string{"00:20 success", "01:00 success"}, outcomes(q.Attempts("tbl_1")))
		q.Disable("tbl_1", "The feed is being moved")
		q.Advance(5 * time.Hour)
		reply := q.Command(`{"type":"run","uid":"tbl_1"}`)
		failIf(t, reply.Outcome != client.Refused, "expected a run to be refused, found %+v", reply)
		q.Enable("tbl_1")
		q.Advance(time.Hour)
		equal(t, []string{"00:20 success", "01:00 success", "07:00 success"}, outcomes(q.Attempts("tbl_1")))
		q.Remove("tbl_1")
		q.Advance(2 * time.Hour)
		n := q.Counters()["success"]
		failIf(t, n != 3, "expected the three attempts before it was removed, found %d", n)
	})
}

func TestAHoldKeepsATenantFromStartingAndLetsItStartOnceWhenItEnds(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		var f feed
		q.Handle(f.refresh)
		q.Put(`
uid: tbl_1
labels: {tenant: t1}
rrule: FREQ=HOURLY
---
uid: tbl_2
labels: {tenant: t2}
rrule: FREQ=HOURLY
`)
		q.Hold("maintenance", "tenant=t1", 0)
		q.Advance(3 * time.Hour)
		status := q.Status("tbl_1")
		failIf(t, status != model.StatusParked, "expected tbl_1 to be parked, found %s", status)
		q.Advance(30 * time.Minute)
		q.Release("maintenance")
		equal(t, []string{"03:30 success"}, outcomes(q.Attempts("tbl_1")))
		equal(t, []string{"01:00 success", "02:00 success", "03:00 success"}, outcomes(q.Attempts("tbl_2")))
	})
}

func TestAHandlerThatNeverReturnsEndsAtItsVirtualDeadline(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		var cause error
		var took time.Duration
		q.Handle(func(ctx context.Context, a *worker.Attempt) error {
			if a.AttemptNo > 1 {
				return nil
			}
			began := time.Now()
			<-ctx.Done() // as an HTTP request with this context would
			cause, took = context.Cause(ctx), time.Since(began)
			return ctx.Err()
		})
		q.Put(hourly)
		q.Advance(time.Hour + 5*time.Minute)
		status := q.Status("tbl_1")
		failIf(t, status != model.StatusProcessing, "expected an attempt that is being processed, found %s", status)
		q.Advance(10 * time.Minute)
		failIf(t, !errors.Is(cause, worker.ErrDeadline) || took != 10*time.Minute, "expected the deadline of ten minutes, found %v after %s", cause, took)
		equal(t, []string{"01:00 timeout", "01:11 success"}, outcomes(q.Attempts("tbl_1")))
	})
}
