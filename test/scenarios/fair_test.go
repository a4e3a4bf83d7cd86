package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// idle expects that no attempt waits for a worker.
func (q *policyQueue) idle() {
	q.t.Helper()
	entry, found := q.Take()
	stopIf(q.t, found, "%s: expected no attempt, found %+v", q.Clock.Now(), entry)
}

func (q *policyQueue) outcome(uid string) model.Event {
	q.t.Helper()
	history := q.List(q.Store.Keys.History(uid))
	if len(history) == 0 {
		return ""
	}
	last, err := model.ParseAttempt(history[0])
	must(q.t, err)
	return last.Outcome
}

// invalid is a worker's message about an address that no retry helps.
const invalid = `"retryable":false,"reason":"Provided URL is invalid: /broken"`

func TestAnOwnerIsNotToldOffForTheAddressThatHeHasReplaced(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		put := func(uid, url string) {
			q.Command(fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"url":%q},"policy":{"timeout":"1m","retries":[],"on_exhausted":"give_up"}}`, uid, url))
			q.work()
		}
		for _, uid := range []string{"first", "queued", "processing"} {
			put(uid, "/broken")
		}

		// While it waits in line, the attempt itself gets the new address, in its place.
		attempt := q.Attempt("queued")
		put("queued", "/good")
		input := q.List(q.Store.Keys.Input)
		stopIf(t, len(input) != 3 || !strings.Contains(input[1], `"url":"/good"`) || !strings.Contains(input[1], attempt),
			"expected attempt %s second of three, with the new address, found %q", attempt, input)
		q.take("first")
		q.take("queued")
		q.say("success", "queued")
		got := q.outcome("queued")
		failIf(t, got != model.EventSuccess, "queued: expected a success, found %s", got)

		// Once a worker has it, another attempt follows, and this one is nobody's fault.
		q.take("processing")
		put("processing", "/good")
		q.say("failure", "processing", invalid)
		q.is("processing", map[string]string{"refresh_disabled_until_update": "", "failing_since": "", "attempt_no": "1"})
		if got, told := q.outcome("processing"), q.told(q.Store.Keys.Outbox); got != model.EventOutdated || len(told) != 0 {
			t.Errorf("processing: expected an outdated attempt of which nobody is told, found %s and %v", got, told)
		}
		q.take("processing")
		q.say("success", "processing")
		q.is("processing", map[string]string{"attempt_no": "", "last_success_at": model.FormatTime(q.Clock.Now())})
		stats := q.Stats()
		failIf(t, stats["outdated"] != 1 || stats["failure"] != 0 || stats["success"] != 2,
			"expected two successes, one outdated attempt and no failure, found %v", stats)
	})
}

func TestAFixMakesItSooner(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		const daily = `"rrule":"FREQ=DAILY;BYHOUR=6","dtstart":"2026-01-01","policy":{"timeout":"10m","retries":["2h"]}`
		put := func(uid, url, more string) {
			q.Command(fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"url":%q},%s%s}`, uid, url, daily, more))
			q.work()
		}
		fail := func(uid string) {
			put(uid, "/broken", `,"refresh":"now"`)
			q.take(uid)
			q.say("failure", uid, map[string]string{"fails": `"reason":"HTTP 503"`, "disabled": invalid}[uid])
		}
		fail("fails")
		fail("disabled")
		q.is("fails", map[string]string{"refresh_at": "2026-11-21T09:00:00.000Z"})
		q.is("disabled", map[string]string{"refresh_disabled_by": "policy"})

		// The same again is no fix.
		put("fails", "/broken", "")
		put("disabled", "/broken", "")
		q.idle()

		q.Clock.Turn(time.Minute)
		put("fails", "/good", "")
		q.take("fails")
		put("disabled", "/good", "")
		q.take("disabled")
		q.is("disabled", map[string]string{"refresh_disabled_until_update": "", "refresh_disabled_by": "", "attempt_no": "1"})
	})
}

func TestWhatAHandHasStoppedSurvivesTheNightlyImport(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		put := func(price int, more string) {
			q.Command(fmt.Sprintf(`{"type":"put","uid":"feed","payload":{"price":%d},"rrule":"FREQ=HOURLY","dtstart":"2026-01-01"%s}`, price, more))
			q.work()
		}
		put(1, "")
		q.Command(`{"type":"disable","uid":"feed","reason":"customer has not paid"}`)
		q.work()
		stopped := map[string]string{"refresh_disabled_until_update": "1", "refresh_disabled_by": "hand", "refresh_at": "",
			"refresh_disabled_user_friendly_reason": "customer has not paid"}
		for night, more := range []string{"", `,"refresh":"now"`, `,"refresh":"planned"`} {
			q.Clock.Turn(24 * time.Hour)
			put(2+night, more)
			q.is("feed", stopped)
		}
		q.Command(`{"type":"run","uid":"feed"}`)
		q.work()
		q.is("feed", stopped)
		q.idle()
		rejected := q.List(q.Store.Keys.Rejected)
		failIf(t, len(rejected) != 1 || !strings.Contains(rejected[0], "disabled by hand"), "expected the run refused, found %q", rejected)

		q.Command(`{"type":"enable","uid":"feed"}`)
		q.work()
		q.is("feed", map[string]string{"refresh_disabled_until_update": "", "refresh_disabled_by": "", "refresh_disabled_user_friendly_reason": "", "refresh_why": "planned"})
		q.Clock.Turn(time.Hour)
		q.work()
		input := q.List(q.Store.Keys.Input)
		failIf(t, len(input) != 1 || !strings.Contains(input[0], `"price":4`), "expected an attempt with what was imported last, found %q", input)
	})
}

func TestARunAtOnceIsStartedBeforeABacklogOfThousands(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		backlog := long.Or(200, 2000)
		if q.Server.Mini != nil {
			backlog = 200 // it takes seconds for a thousand
		}
		q.redispatch(dispatcher.Config{MaxQueued: 20})
		puts := make([]string, 0, backlog+30)
		for i := range backlog {
			puts = append(puts, fmt.Sprintf(`{"type":"put","uid":"due_%d"}`, i))
		}
		for i := range 30 {
			puts = append(puts, fmt.Sprintf(`{"type":"put","uid":"mine_%d","rrule":"FREQ=YEARLY","dtstart":"2026-01-01"}`, i))
		}
		q.Command(puts...)
		for q.Stats()["create"] < len(puts) {
			q.poll()
		}
		q.work() // the list is full

		// Two places become free: one is for the hand.
		q.Command(`{"type":"run","uid":"mine_0"}`)
		q.Clock.Turn(time.Second)
		q.Take()
		q.Take()
		q.work()
		input := q.List(q.Store.Keys.Input)
		stopIf(t, len(input) != 20 || !strings.Contains(input[18], `"mine_0"`) || !strings.Contains(input[19], `"due_`),
			"expected mine_0 and then one that was due behind the eighteen before, found %q", input[max(0, len(input)-2):])

		// All are free: hands get half of them, and the schedule the other half.
		for i := 1; i < 30; i++ {
			q.Command(fmt.Sprintf(`{"type":"run","uid":"mine_%d"}`, i))
		}
		q.poll()
		for _, found := q.Take(); found; _, found = q.Take() {
			continue
		}
		q.work()
		input = q.List(q.Store.Keys.Input)
		for i, entry := range input {
			mine := strings.Contains(entry, `"mine_`)
			stopIf(t, mine != (i < 10), "expected ten by hand and then ten that were due, found %q", input)
		}
	})
}

func TestWhoAskedForTwoHoursGetsTwoHours(t *testing.T) {
	for name, retries := range map[string]string{"with a retry": `["1m"]`, "with none left": `[]`} {
		t.Run(name, func(t *testing.T) {
			onQueue(t, func(t *testing.T, q *policyQueue) {
				put := func(timeout string) {
					q.Command(`{"type":"put","uid":"feed","rrule":"FREQ=MINUTELY;INTERVAL=30","dtstart":"2026-01-01",` +
						`"policy":{"timeout":"` + timeout + `","retries":` + retries + `,"on_exhausted":"next_planned"}}`)
					q.work()
				}
				put("10m")
				asked := func() (until time.Time) {
					q.Clock.Turn(30 * time.Minute)
					q.work()
					q.take("feed")
					q.Clock.Turn(5 * time.Minute)
					q.say("failure", "feed", `"retry_after":7200`)
					return q.Clock.Now().Add(2 * time.Hour)
				}
				until := asked()
				for at := q.Clock.Now(); at.Before(until.Add(-time.Minute)); at = at.Add(10 * time.Minute) {
					q.Clock.Set(at)
					q.work()
					q.idle()
				}
				put("11m") // a change that is no cure moves nothing forward
				q.is("feed", map[string]string{"not_before": model.FormatTime(until)})
				q.Clock.Set(until.Add(-time.Millisecond))
				q.work()
				q.idle()
				q.Clock.Set(until.Add(30 * time.Minute))
				q.work()
				q.take("feed")
				q.say("success", "feed")

				// Only a hand goes below.
				asked()
				q.Command(`{"type":"run","uid":"feed"}`)
				q.work()
				q.take("feed")
			})
		})
	}
}

// Workers that are away for days are offered the planned refresh of Monday as long as it is young enough, and then the next one.
func TestAMissedRefreshIsNotOfferedForDaysWhileWorkersAreAway(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		const daily = `"rrule":"FREQ=DAILY;BYHOUR=8;BYMINUTE=0;BYSECOND=0","dtstart":"2026-01-01"`
		for uid, misfire := range map[string]string{"skips": "run_if_younger_than 2h", "runs": "run_once"} {
			q.Command(fmt.Sprintf(`{"type":"put","uid":%q,%s,"policy":{"timeout":"30m","misfire":%q}}`, uid, daily, misfire))
		}
		q.work()
		const hours = 23 // from eight on Saturday to seven on Sunday
		for q.Clock.Turn(time.Hour); q.Clock.Now().Before(fixture.Start.Add((hours + 1) * time.Hour)); q.Clock.Turn(30 * time.Minute) {
			q.work()
		}
		q.is("skips", map[string]string{"refresh_at": "2026-11-22T08:00:00.000Z", "attempt_uid": "", "failing_since": ""})
		starts := map[string]int{}
		for _, told := range q.told(q.Store.Keys.Journal) {
			starts[told]++
		}
		failIf(t, starts["start skips"] != 5 || starts["start runs"] < 40, "expected 5 offers within two hours, and others all day long, found %v", starts)
	})
}
