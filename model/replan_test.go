package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// The policies of these tests: the rule of a stored one was yearly, and becomes hourly.
const (
	yearly     = `"policy":{"rrule":"FREQ=YEARLY","timeout":"10m","retries":["5m","5m"],"on_exhausted":"next_planned"}`
	hourly     = `"rrule":"FREQ=HOURLY","timeout":"10m","retries":["5m","5m"],"on_exhausted":"next_planned"`
	noRule     = `"timeout":"10m","retries":["5m","5m"],"on_exhausted":"next_planned"`
	alsoYearly = `"rrule":"FREQ=YEARLY","timeout":"10m","retries":["5m","5m"],"on_exhausted":"next_planned"`
)

func TestAModelThatWaitsForAPlannedRefreshIsPlannedAnewByAChangedRule(t *testing.T) {
	const everyHour = `"policy":{` + hourly + `}`
	runStories(t, []storyTest{
		{yearly, "09:30 policy " + hourly, "#0, next 10:00: planned"},
		{yearly, "09:30 run | 09:30 start | 09:31 success | 09:40 policy " + hourly, "#0, next 10:00: planned"},
		{everyHour, "00:30 policy " + alsoYearly, "#0, next 00:00+361: planned"},
		{everyHour, "00:30 policy " + noRule, "#0, next never: finished: one-shot"},
		{everyHour, `00:30 policy "rrule":"FREQ=HOURLY;UNTIL=20200101T000000Z","dtstart":"20190101T000000"`, "#0, next never: finished: no planned refresh left"},
		{everyHour, `00:20 policy "rrule":"FREQ=HOURLY","timezone":"Asia/Kolkata"`, "#0, next 00:30: planned"},

		// What was over under the old rule begins again under the new one
		{everyHour, "00:30 policy " + noRule + " | 09:30 policy " + hourly, "#0, next 10:00: planned"},
		{thumbnail, "00:00 start | 00:01 success | 09:30 policy " + hourly, "#0, next 10:00: planned"},

		// Its own timezone and dtstart hold for the rule of the policy
		{yearly + `,"timezone":"Asia/Kolkata"`, "09:10 policy " + hourly, "#0, next 09:30: planned"},
		{yearly + `,"dtstart":"20260101T001500"`, "09:10 policy " + hourly, "#0, next 09:15: planned"},
	})
}

func TestWhatWasPromisedForAnotherReasonStaysWhenARuleChanges(t *testing.T) {
	const failed = "09:30 run | 09:30 start | 09:31 failure"
	runStories(t, []storyTest{
		// A rule of its own, a run by hand, an attempt, a stop, a due model
		{daily, "05:00 policy " + hourly, "#0, next 06:00: planned"},
		{yearly, "09:30 run | 09:30 policy " + hourly, "#0, next 09:30: run by hand"},
		{yearly, "09:30 run | 09:30 start | 09:31 policy " + hourly, "#1 a1 until 09:40, next 09:45: on timeout: retry 1 of 2 after 5m, ends before planned"},
		{yearly, "09:30 disable | 09:31 policy " + hourly, "#0 disabled (): disabled by hand"},
		{`"policy":{` + hourly + `}`, "01:00 policy " + alsoYearly, "#0, next 01:00: planned"},

		{`"policy":{` + hourly + `}`, "01:00 start | 01:01 policy " + alsoYearly, "#1 a1 until 01:10, next 01:15: on timeout: retry 1 of 2 after 5m, ends before planned"},

		// A retry, a wish of the worker
		{yearly, failed + ` | 09:32 policy "rrule":"FREQ=MINUTELY"`, "#1, next 09:36: retry 1 of 2 after 5m, ends before planned"},
		{yearly, `09:30 run | 09:30 start | 09:31 postponed "retry_after":7200 | 09:32 policy ` + hourly, "#0 deferred 1, next 11:31: postponed by the worker: again after 2h"},

		// One whose own rule is over waits for the last thing that will ever start it
		{lastDay, `05:00 put "rrule":"FREQ=DAILY;UNTIL=20260101T000000Z" | 05:01 policy ` + hourly, "#0, next 06:00: saved while waiting: nothing planned"},
	})
}

// A planned refresh that takes the place of a retry, or that a worker has asked to come later, may come sooner, but never later.
func TestAPlannedRefreshThatStandsForMoreComesSoonerAndNeverLater(t *testing.T) {
	const (
		everyHour = `"policy":{"rrule":"FREQ=HOURLY","timeout":"10m","retries":["next","next"],"on_exhausted":"next_planned"}`
		yearlyToo = `"policy":{"rrule":"FREQ=YEARLY","timeout":"10m","retries":["next","next"],"on_exhausted":"next_planned"}`
		once      = `"policy":{"rrule":"FREQ=HOURLY","timeout":"10m","retries":[],"on_exhausted":"next_planned"}`
		bounded   = `"policy":{"rrule":"FREQ=YEARLY","timeout":"10m","retries":["next"],"give_up_after":"5h","on_exhausted":"next_planned"}`
		failed    = "09:30 run | 09:30 start | 09:31 failure | "
	)
	runStories(t, []storyTest{
		{everyHour, failed + "09:32 policy " + alsoYearly, "#1, next 10:00: retry 1 of 2 waits for planned"},
		{yearlyToo, failed + "09:32 policy " + hourly, "#1, next 10:00: planned"},

		// The floor that a worker has set holds for the new plan too, and a refresh that was moved there stays there
		{yearlyToo, `09:30 run | 09:30 start | 09:31 failure "retry_after":7200 | 09:32 policy ` + hourly, "#1, next 11:31: planned, delayed by the worker"},
		{once, `09:30 run | 09:30 start | 09:31 failure "retry_after":3600 | 10:10 policy ` + hourly, "#0, next 10:31: waits for planned after 1 failure, delayed by the worker"},

		{once, `09:30 run | 09:30 start | 09:31 failure "retry_after":60 | 09:32 policy ` + noRule, "#0, next never: finished: one-shot"},

		// The end of a give-up window is where the planned refresh would have come too late
		{bounded, failed + "09:32 policy " + hourly + `,"give_up_after":"5h"`, "#1, next 10:00: planned"},
		{bounded, failed + "09:32 policy " + alsoYearly + `,"give_up_after":"5h"`, "#1, next 14:30: gives up then: no success for 5h"},
		{once, failed + "09:32 policy " + alsoYearly + `,"give_up_after":"5h"`, "#0, next 14:30: gives up then: no success for 5h"},
	})
}

func TestAPhaseMovesThePlannedRefreshThatAModelWaitsForAndAllBehindIt(t *testing.T) {
	const everyHour = `"policy":{` + hourly + `}`
	runStories(t, []storyTest{
		{everyHour, "00:30 level 3m20s", "#0, next 01:03:20: planned"},
		{everyHour, "00:30 level 3m20s | 01:03:20 start | 01:05 success", "#0, next 02:03:20: planned"},
		{everyHour, "00:30 level 10m | 00:40 level 1m", "#0, next 01:01: planned"},

		// Its own time would be in the past: the next one is the first that moves
		{everyHour, "00:30 level 10m | 01:05 level 1m", "#0, next 01:10: planned"},
		{everyHour, "00:30 level 10m | 01:05 level 1m | 01:10 start | 01:11 success", "#0, next 02:01: planned"},

		// A save that changes the rule keeps it, and so does a failure, a stop and a changed policy
		{everyHour, `00:30 level 10m | 00:40 put "rrule":"FREQ=MINUTELY;INTERVAL=30"`, "#0, next 01:10: planned"},
		{everyHour, "00:30 level 10m | 01:10 start | 01:11 failure | 01:16 start | 01:17 success", "#0, next 02:10: planned"},
		{everyHour, "00:30 level 10m | 00:40 disable | 00:50 enable", "#0, next 01:10: planned"},
		{everyHour, "00:30 level 10m | 00:40 policy " + alsoYearly + " | 00:41 policy " + hourly, "#0, next 01:10: planned"},
	})
}

func TestAPhaseTakesThePlaceOfTheSpread(t *testing.T) {
	const spread = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05","policy":{"timeout":"5m","retries":["1m"],"spread":"10m"}`
	shift := tell(t, spread, "").m.RefreshAt.Sub(clock("00:00")) % time.Hour
	runStories(t, []storyTest{{spread, "00:05 start | 00:06 success | 00:20 level 15m", "#0, next 01:15: planned"}})
	s := tell(t, spread, "00:02 level 15m | 00:03 level 0s | 00:20 wake | 00:21 success")
	failIf(t, !s.m.RefreshAt.Equal(clock("01:00").Add(shift)), "without its phase: %s, want a shift of %v", s, shift)
}

func TestAModelThatDoesAnythingElseGetsNoPhase(t *testing.T) {
	const everyHour = `"policy":{` + hourly + `}`
	for steps, want := range map[string]Outcome{
		"01:00 level 10m":               Busy, // due
		"01:00 start | 01:01 level 10m": Busy, "00:30 level 0s": Unchanged, "00:30 level 10m": Applied,
		"00:30 run | 00:30 level 10m":     Busy,
		"00:30 disable | 00:31 level 10m": Applied, "01:00 start | 01:01 disable | 01:02 level 10m": Applied,
		"01:00 start | 01:01 success | 01:02 level 10m": Applied, "00:30 level 10m | 01:10 start | 01:11 level 0s": Busy,
		"00:30 level 10m | 00:31 disable | 00:32 level 0s": Applied,
	} {
		s := tell(t, everyHour, steps)
		failIf(t, s.outcome != want, "%s: %v, want %v: %s", steps, s.outcome, want, s)
	}

	// While an attempt runs whose timeout would be final the model waits for nothing either, but it is not done
	const lastTry = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05","policy":{"timeout":"5m","retries":[],"on_exhausted":"give_up"}`
	for steps, want := range map[string]Outcome{
		"01:00 start | 01:01 level 10m": Busy, "01:00 start | 01:01 disable | 01:02 level 10m": Applied,
		"01:00 start | 01:01 success | 01:02 level 10m": Applied, "01:00 start | 01:01 interrupted | 01:02 level 1s": Busy,
	} {
		s := tell(t, lastTry, steps)
		levelled := s.m.Phase > 0
		failIf(t, s.outcome != want || levelled != (want == Applied), "%s: %v, want %v: %s with a phase of %s", steps, s.outcome, want, s, s.m.Phase)
	}
	if s := tell(t, banner, "00:00 start | 00:00:01 success | 00:01 level 10m"); s.outcome != Applied || s.m.Phase != 10*time.Minute {
		t.Errorf("a finished model: %v: %s", s.outcome, s)
	}
}

// Whatever is levelled when, each occurrence of an hourly rule is run once, after it and before the next one.
func TestLevellingLeavesNoRefreshOutAndDoublesNone(t *testing.T) {
	phases := []string{"10m", "59m", "1s", "0s", "30m", "5m"}
	for minute := range 60 {
		s, starts := tell(t, `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05",`+sixRetries, ""), map[int]int{}
		for at, changed := monday.Add(time.Minute), 0; at.Before(monday.Add(9 * time.Hour)); at = at.Add(time.Minute) {
			if at.Minute() == minute {
				s.do(at, "level", phases[changed%len(phases)])
				changed++
			}
			for s.m.Due(at) {
				starts[s.m.RefreshAt.Hour()]++
				s.do(at, "start", "")
				s.do(at, "success", "")
			}
		}
		for hour := 1; hour < 8; hour++ {
			failIf(t, starts[hour] != 1, "levelled in minute %d: %d starts in hour %d", minute, starts[hour], hour)
		}
	}
}

// A policy may carry the schedule, for models that have none of their own.
const nightly = `"policy":{"rrule":"FREQ=DAILY;BYHOUR=6","timezone":"Europe/Berlin","timeout":"1h","retries":[]}`

func TestAModelRunsByTheScheduleOfItsPolicy(t *testing.T) {
	runStories(t, []storyTest{
		{nightly, "", "#0, next 05:00: planned"},
		{nightly, "05:00 wake | 05:10 success", "#0, next 05:00+1: planned"},
		{nightly, "05:00 wake", "#1 a1 until 06:00, next 05:00+1: on timeout: waits for planned after 1 failure"},
	})
}

func TestTheOwnRuleOfAModelWinsAsAWhole(t *testing.T) {
	runStories(t, []storyTest{
		// Not the zone of the policy either
		{`"rrule":"FREQ=DAILY;BYHOUR=7",` + nightly, "", "#0, next 07:00: planned"},
		{`"rrule":"FREQ=DAILY;BYHOUR=7","timezone":"America/New_York",` + nightly, "", "#0, next 12:00: planned"},
		// … nor its dtstart: the model's is midnight of the day on which it was created
		{`"rrule":"FREQ=HOURLY;INTERVAL=5",` + strings.Replace(nightly, `"rrule"`, `"dtstart":"2026-01-01T01:00:00","rrule"`, 1), "", "#0, next 05:00: planned"},

		// A rule of its own may go again: then the policy's holds
		{`"rrule":"FREQ=DAILY;BYHOUR=7",` + nightly, `01:00 put "rrule":null`, "#0, next 05:00: planned"},
	})
}

func TestAModelMayPutTheRuleOfItsPolicyInItsOwnZone(t *testing.T) {
	runStories(t, []storyTest{
		{`"timezone":"America/New_York",` + nightly, "", "#0, next 11:00: planned"},
		{`"timezone":"UTC",` + nightly, "", "#0, next 06:00: planned"},
		{`"dtstart":"2026-01-06T00:00:00",` + nightly, "", "#0, next 05:00+1: planned"},
	})
	everyTenDays := `"policy":{"rrule":"FREQ=DAILY;INTERVAL=10","timezone":"Europe/Berlin"}`
	m := tell(t, `"dtstart":"2026-01-02T08:00:00",`+everyTenDays, "").m
	failIf(t, !m.RefreshAt.Equal(clock("07:00+7")) || m.Dtstart != "2026-01-02T08:00:00", "from its own dtstart it runs at %s", clockText(m.RefreshAt))
}

// Every second day, every second week: on the same days for all models, whenever they were created.
func TestTheRuleOfAPolicyCountsFromOneInstantForAll(t *testing.T) {
	for _, test := range []struct{ policy, want string }{
		{`"rrule":"FREQ=DAILY;INTERVAL=2"`, "2026-01-06T00:00:00"},  // Monday, 5 January, is 9135 days after the anchor,
		{`"rrule":"FREQ=WEEKLY;INTERVAL=2"`, "2026-01-12T00:00:00"}, // which are 1305 weeks
		{`"rrule":"FREQ=HOURLY;INTERVAL=5"`, "2026-01-05T00:00:00"}, // and 43848 times five hours
		{`"rrule":"FREQ=YEARLY"`, "2027-01-01T00:00:00"},
		{`"rrule":"30 6 * * *","timezone":"Europe/Berlin"`, "2026-01-05T05:30:00"},

		// On the wall clock of a zone, and from an anchor of its own
		{`"rrule":"FREQ=DAILY;INTERVAL=2","timezone":"Europe/Berlin"`, "2026-01-05T23:00:00"},
		{`"rrule":"FREQ=DAILY;INTERVAL=2","dtstart":"2026-01-01"`, "2026-01-05T00:00:00"},
		{`"rrule":"FREQ=DAILY;INTERVAL=2","dtstart":"20260102T080000"`, "2026-01-06T08:00:00"},
	} {
		m := Model{UID: "tbl_1"}
		must(t, m.Resolve(policyOf(t, "{"+test.policy+"}"), schedule.Parse))
		got := FormatTime(m.Planned(monday.Add(-time.Millisecond)))
		failIf(t, got != test.want+".000Z", "%s: %s, want %s", test.policy, got, test.want)
	}
}

// dearModel is refreshed by a rule that was admitted and has become too dear: its next occurrence is two centuries away.
func dearModel(t *testing.T, policyText string) *Model {
	t.Helper()
	m := &Model{UID: "tbl_1", Rule: "FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0", Dtstart: "2020-01-01T00:00:00"}
	must(t, m.Resolve(policyOf(t, policyText), schedule.Parse))
	m.RefreshAt = monday
	return m
}

const tooManySteps = "rrule: expected rules that find their next occurrence in at most 4000 steps, found more steps after "

func TestARuleThatTakesTooManyStepsIsAFaultAndItsModelLooksAgainAnHourLater(t *testing.T) {
	for name, text := range map[string]string{"plain": `{"timeout":"1m"}`, "with a spread": `{"timeout":"1m","spread":"10m"}`} {
		t.Run(name, func(t *testing.T) {
			m := dearModel(t, text)
			m.State = m.Start(monday, "a1").Next
			m.RuleError = ""
			now := monday.Add(time.Second)
			next := m.Succeed(now, nil).Next
			failIf(t, !next.RefreshAt.Equal(now.Add(time.Hour)) || next.Why != "rule takes too many steps: checked again then" || next.Disabled,
				"next %s: %s", next.RefreshAt, next.Why)
			want := tooManySteps + "2026-01-05T00:00:01Z"
			failIf(t, m.RuleError != want, "found the fault %q, want %q", m.RuleError, want)
			f := m.Forecast(now)
			failIf(t, !strings.HasPrefix(f.RuleError, tooManySteps), "the forecast says %q", f.RuleError)
		})
	}
}

func TestARetryWindowThatTakesTooManyStepsIsOpenAndAFault(t *testing.T) {
	m := &Model{UID: "tbl_1", State: State{RefreshAt: monday}}
	window := "FREQ=SECONDLY;INTERVAL=86430;BYHOUR=0;BYMINUTE=0,1,2,3,4,5,6,7,8"
	must(t, m.Resolve(policyOf(t, `{"timeout":"1m","retries":["5m"],"retry_window":"`+window+`"}`), schedule.Parse))
	m.AttemptNo = 1
	next := m.Fail(policy.Failure{}, monday).Next
	want := "retry_window" + strings.TrimPrefix(tooManySteps, "rrule")
	failIf(t, !next.RefreshAt.Equal(monday.Add(5*time.Minute)) || !strings.HasPrefix(m.RuleError, want),
		"next %s, fault %q", next.RefreshAt, m.RuleError)
}

func TestToPlanAnewTwiceChangesNothing(t *testing.T) {
	for _, definition := range []string{yearly, daily, thumbnail, lastDay} {
		s := tell(t, definition, "00:20 policy "+hourly+" | 00:40 policy "+hourly)
		failIf(t, s.outcome != Unchanged, "%s: expected nothing changed, found %s: %s", definition, s.decision.Event, s)
	}
}

func TestWithoutAScheduleThereIsNothingToSpread(t *testing.T) {
	tell(t, `"policy":{"spread":"1h"}`, "00:00 wake | 00:01 success").expect("#0, next never: finished: one-shot")
	tell(t, `"rrule":"FREQ=DAILY;COUNT=1","dtstart":"2020-01-01","policy":{"spread":"1h"}`, "").expect("#0, next never: finished: no planned refresh left")
	policy := policyOf(t, `{"spread":null}`)
	failIf(t, policy.Spread != 0, "found %v", policy.Spread)
}

// A schedule that cannot be used delays its model and loses it not.
func TestAModelWhosePolicyHasABrokenRuleLooksAgainLater(t *testing.T) {
	m := Model{UID: "tbl_1"}
	err := m.Resolve(policy.Policy{Rule: "FREQ=NEVER", Timeout: time.Hour, OnExhausted: policy.NextPlanned}, schedule.Parse)
	at, found := m.planned(monday)
	failIf(t, err == nil || !found || !at.Equal(clock("01:00")), "planned at %s, %v, %v", at, found, err)
}

func TestAFailureUnderARuleThatTakesTooManyStepsIsRetried(t *testing.T) {
	m := dearModel(t, `{"timeout":"1m","retries":["5m"]}`)
	m.State = m.Start(monday, "a1").Next
	decision := m.Fail(policy.Failure{Reason: "HTTP 500"}, monday.Add(time.Second))
	want := monday.Add(5*time.Minute + time.Second)
	failIf(t, !decision.Next.RefreshAt.Equal(want) || decision.Final, "next %s: %s", decision.Next.RefreshAt, decision.Next.Why)
}
