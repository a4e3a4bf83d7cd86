package model

import "testing"

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
		{yearly, "09:00 policy " + hourly, "#0, next 10:00: planned"}, // after now, as ever
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
		// A rule of its own, a run by hand, an attempt, a stop, what is due
		{daily, "05:00 policy " + hourly, "#0, next 06:00: planned"},
		{yearly, "09:30 run | 09:30 policy " + hourly, "#0, next 09:30: run by hand"},
		{yearly, "09:30 run | 09:30 start | 09:31 policy " + hourly, "#1 a1 until 09:40, next 09:45: if lost: retry 1/2 +5m, before planned"},
		{yearly, "09:30 disable | 09:31 policy " + hourly, "#0 disabled (): disabled by hand"},
		{`"policy":{` + hourly + `}`, "01:00 policy " + alsoYearly, "#0, next 01:00: planned"},

		{`"policy":{` + hourly + `}`, "01:00 start | 01:01 policy " + alsoYearly, "#1 a1 until 01:10, next 01:15: if lost: retry 1/2 +5m, before planned"},

		// A retry, a wish of the worker
		{yearly, failed + ` | 09:32 policy "rrule":"FREQ=MINUTELY"`, "#1, next 09:36: retry 1/2 +5m, before planned"},
		{yearly, failed + " | 09:32 policy " + hourly, "#1, next 09:36: retry 1/2 +5m, before planned"},
		{yearly, `09:30 run | 09:30 start | 09:31 postponed "retry_after":7200 | 09:32 policy ` + hourly, "#0 deferred 1, next 11:31: postponed by the worker +2h"},
		{yearly, "09:30 run | 09:30 start | 09:31 interrupted | 09:32 policy " + hourly, "#0 deferred 1, next 09:31: interrupted: again at once"},

		// One whose own rule is over waits for the last thing that will ever start it
		{lastDay, `05:00 put "rrule":"FREQ=DAILY;UNTIL=20260101T000000Z" | 05:01 policy ` + hourly, "#0, next 06:00: saved while waiting: none planned"},
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
		{everyHour, failed + "09:32 policy " + alsoYearly, "#1, next 10:00: retry 1/2 when planned"},
		{everyHour, failed + "09:32 policy " + noRule, "#1, next 10:00: retry 1/2 when planned"},
		{yearlyToo, failed + "09:32 policy " + hourly, "#1, next 10:00: planned"},

		// The floor that a worker has set holds for the new plan too, and a refresh that was moved there stays there
		{yearlyToo, `09:30 run | 09:30 start | 09:31 failure "retry_after":7200 | 09:32 policy ` + hourly, "#1, next 11:31: planned, moved as asked"},
		{once, `09:30 run | 09:30 start | 09:31 failure "retry_after":3600 | 10:10 policy ` + hourly, "#0, next 10:31: exhausted after 1, planned, moved as asked"},

		{once, `09:30 run | 09:30 start | 09:31 failure "retry_after":60 | 09:32 policy ` + noRule, "#0, next never: finished: one-shot"},

		// The end of a give-up window stands where the planned refresh would have come too late
		{bounded, failed + "09:32 policy " + hourly + `,"give_up_after":"5h"`, "#1, next 10:00: planned"},
		{bounded, failed + "09:32 policy " + alsoYearly + `,"give_up_after":"5h"`, "#1, next 14:30: gives up then: no success for 5h"},
		{once, failed + "09:32 policy " + alsoYearly + `,"give_up_after":"5h"`, "#0, next 14:30: gives up then: no success for 5h"},
	})
}

func TestToPlanAnewTwiceChangesNothing(t *testing.T) {
	for _, definition := range []string{yearly, daily, thumbnail, lastDay} {
		s := tell(t, definition, "00:20 policy "+hourly+" | 00:40 policy "+hourly)
		if s.outcome != Unchanged {
			t.Errorf("%s: expected nothing changed, found %s: %s", definition, s.decision.Event, s)
		}
	}
}
