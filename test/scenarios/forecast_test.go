package scenarios

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/preview/forecast"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// forecastOf forecasts a queue for some time, where each attempt succeeds in the same minute.
func (q *policyQueue) forecastOf(uids []string, ahead time.Duration) *forecast.Counts {
	q.t.Helper()
	now := q.Clock.Now()
	records := check.Got(q.Store.Load(q.t.Context(), uids))(q.t)
	blockers := check.Got(q.Store.Fleet().Blockers(q.t.Context()))(q.t)
	counts, walker := forecast.NewCounts(now, now.Add(ahead)), forecast.NewWalker(now, now.Add(ahead), blockers)
	for _, uid := range uids {
		walker.Starts(&records[uid].Model, 0, counts.Add)
	}
	return counts
}

// answer lets workers end all attempts in the input list, and counts them.
func (q *policyQueue) answer() (ended int) {
	for {
		entry, found := q.Take()
		if !found {
			return ended
		}
		q.Say(fixture.Result("success", entry.UID, entry.AttemptUID))
		ended++
	}
}

// fleetOf saves models of all sorts: spread and levelled ones, ones that fail, run, are due, were stopped, or have ended.
func (q *policyQueue) fleetOf() (uids []string) {
	rules := []string{
		`"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["7m"]}`,
		`"rrule":"FREQ=MINUTELY;INTERVAL=9","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["3m"],"spread":"4m"}`,
		`"rrule":"FREQ=DAILY;BYHOUR=8,9","timezone":"Europe/Berlin","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["11m"],"spread":"2h"}`,
		`"rrule":"FREQ=HOURLY;UNTIL=20261121T090000Z","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["1m"],"misfire":"skip"}`,
		`"policy":{"timeout":"5m","retries":["90m"]}`,
	}
	for i := range 60 {
		uid := fmt.Sprintf("m%02d", i)
		uids = append(uids, uid)
		q.Command(fmt.Sprintf(`{"type":"put","uid":%q,%s}`, uid, rules[i%len(rules)]))
		switch i % 11 {
		case 3:
			q.Command(fmt.Sprintf(`{"type":"disable","uid":%q}`, uid))
		case 5, 6:
			q.Command(fmt.Sprintf(`{"type":"run","uid":%q}`, uid))
		}
	}
	q.work()
	q.Clock.Turn(20 * time.Second)
	for i := range 10 { // some of those that run fail
		if entry, found := q.Take(); found && i%2 == 0 {
			q.Say(fixture.Result("failure", entry.UID, entry.AttemptUID))
		} else if found {
			q.Say(fixture.Result("success", entry.UID, entry.AttemptUID))
		}
	}
	q.work()
	q.answer()
	q.work()
	return uids
}

func (q *policyQueue) level(uids []string) {
	now := q.Clock.Now()
	records := check.Got(q.Store.Load(q.t.Context(), uids))(q.t)
	for i, uid := range uids {
		if decision, outcome := records[uid].Level(time.Duration(i%2*i)*13*time.Second, now); outcome == model.Applied {
			q.Commit(now, records[uid].Decide(decision, now))
		}
	}
}

// hold stops some models from now on, and lets them start within a while then.
func (q *policyQueue) hold(selector string, length, within time.Duration) {
	q.t.Helper()
	now := q.Clock.Now()
	picks, err := model.ParseSelector(selector)
	if err == nil {
		err = flow.Of(q.Store).PutHold(q.t.Context(), &model.Hold{ID: "h1", Selector: picks, Since: now, Until: now.Add(length), Within: within})
	}
	must(q.t, err)
}

func TestAForecastAgreesWithWhatTheDispatcherStartsMinuteByMinute(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		uids := q.fleetOf()
		q.level(uids)
		q.hold("uid=m1*", 100*time.Minute, 20*time.Minute)
		const ahead = 5 * time.Hour
		told := q.forecastOf(uids, ahead)
		stopIf(t, told.Total() < 200, "expected many starts, found %d", told.Total())

		end := q.Clock.Now().Add(ahead)
		started := make([]int, len(told.PerMinute))
		for at := q.nextDue(); at.Before(end); at = q.nextDue() {
			q.Clock.Set(at)
			q.dispatch()
			started[int(at.Sub(told.From)/time.Minute)] += q.answer()
			q.poll()
		}
		for minute, starts := range started {
			if told.PerMinute[minute] != starts {
				t.Errorf("in the minute %s: %d were forecast, %d have started", told.At(minute).Format("15:04"), told.PerMinute[minute], starts)
			}
		}
	})
}

// nextDue is when something is due next, now at the earliest.
func (q *policyQueue) nextDue() time.Time {
	q.t.Helper()
	next := q.Clock.Now().AddDate(1, 0, 0)
	for _, key := range []string{q.Store.Keys.Due, q.Store.Keys.Urgent, q.Store.Keys.Blockers} {
		for _, score := range q.Scores(key) {
			if at := time.UnixMilli(score).UTC(); at.Before(next) {
				next = at
			}
		}
	}
	if now := q.Clock.Now(); next.Before(now) {
		return now
	}
	return next
}
