package model

import (
	"fmt"
	"testing"

	"github.com/refreshd/refreshd/model/schedule"
)

const officeHours = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16"

func TestAWindowMovesARetryBeforeItIsJoinedWithTheSchedule(t *testing.T) {
	at := func(hour int, more string) string {
		return fmt.Sprintf(`"rrule":"FREQ=DAILY;BYHOUR=%d","dtstart":"2026-01-01","policy":{"timeout":"1h","retries":["10m"],"retry_window":%q%s}`, hour, officeHours, more)
	}
	runStories(t, []storyTest{
		{at(6, ""), "06:00 wake | 06:10 failure", "#1, next 09:00: retry 1/1 +10m in window, before planned"},
		{at(6, ""), "10:00 run | 10:00 wake | 10:10 failure", "#1, next 10:20: retry 1/1 +10m, before planned"},
		{at(6, ""), "17:00 run | 17:00 wake | 17:10 failure", "#1, next 06:00+1: retry 1/1 +10m in window, planned first: after"},
		{at(6, `,"alignment":"until_success"`), "17:00+4 run | 17:00+4 wake | 17:10+4 failure", "#1, next 09:00+7: retry 1/1 +10m in window, retry first: after"},

		// The planned refresh itself, and a wait for it, need no window
		{at(6, ""), "06:00 wake | 06:10 success", "#0, next 06:00+1: planned"},
		{`"rrule":"FREQ=DAILY;BYHOUR=6","dtstart":"2026-01-01","policy":{"retries":["next"],"retry_window":"` + officeHours + `"}`, "06:00 wake | 06:01 failure", "#1, next 06:00+1: retry 1/1 when planned"},

		// A wish of the worker is moved too
		{at(6, ""), `10:00 run | 10:00 wake | 10:10 failure "retry_after":"8h"`, "#1, next 06:00+1: retry 1/1 +8h as asked in window, planned first: after"},

		// In the zone of the model
		{`"timezone":"America/New_York",` + at(6, ""), "11:00 wake | 11:10 failure", "#1, next 14:00: retry 1/1 +10m in window, before planned"},
		// … or of the policy, for a one-shot
		{`"policy":{"retries":["10m"],"timezone":"America/New_York","retry_window":"` + officeHours + `"}`, "00:00 wake | 00:05 failure", "#1, next 14:00: retry 1/1 +10m in window, none planned"},
	})
}

func TestAWindowInAZoneThatDoesNotExistIsRefused(t *testing.T) {
	p := policyOf(t, `{"retry_window":"FREQ=DAILY;BYHOUR=9"}`)
	if err := (&Model{UID: "t", Timezone: "Mars/Base"}).Resolve(p, schedule.Parse); refusedField(err) != "timezone" {
		t.Errorf("found %v", err)
	}
}

// A retry starts inside its window, whoever held it up: a dispatcher that was away, workers, or the circuit of the queue.
func TestARetryThatWasHeldUpWaitsForItsWindowAgain(t *testing.T) {
	const inOffice = `"rrule":"FREQ=DAILY;BYHOUR=6","dtstart":"2026-01-01","policy":{"timeout":"30m","retries":["10m","10m"],"on_exhausted":"next_planned","retry_window":"` + officeHours + `"`
	const failed = "06:00 wake | 06:10 failure | "
	runStories(t, []storyTest{
		{inOffice + `}`, failed + "16:59:59.999 wake", "#2 a2 until 17:29:59.999, next 06:00+1: if lost: retry 2/2 +10m in window, planned first: after"},
		{inOffice + `}`, failed + "17:00 wake", "#1, next 09:00+1: the retry window has closed: waits for it again"},
		{inOffice + `}`, failed + "17:00+4 wake", "#1, next 09:00+7: the retry window has closed: waits for it again"}, // on Friday
		{inOffice + `}`, failed + "17:00 wake | 09:00+1 wake", "#2 a2 until 09:30+1, next 09:40+1: if lost: retry 2/2 +10m, before planned"},
		{inOffice + `}`, failed + "16:50 wake | 17:20 withdraw | 17:20 wake", "#1, next 09:00+1: the retry window has closed: waits for it again"},

		// For so long nobody could try, so that it does not count towards giving up
		{inOffice + `,"give_up_after":"20h"}`, failed + "17:00 wake | 09:00+1 wake", "#2 a2 until 09:30+1, next 09:40+1: if lost: retry 2/2 +10m, before planned"},

		// What is planned or wanted by a hand, and what a worker has put off, needs no window
		{inOffice + `}`, "17:00 wake", "#1 a1 until 17:30, next 06:00+1: if lost: retry 1/2 +10m in window, planned first: after"},
		{inOffice + `}`, failed + "17:00 run | 17:00 wake", "#2 a2 until 17:30, next 06:00+1: if lost: retry 2/2 +10m in window, planned first: after"},
		{inOffice + `}`, failed + `09:00 wake | 09:01 postponed "retry_after":"9h" | 18:01 wake`, "#2 a3 until 18:31 deferred 1, next 06:00+1: if lost: retry 2/2 +10m in window, planned first: after"},
	})
	s := tell(t, inOffice+`}`, failed+"17:00 wake")
	if s.decision.Event != EventSkipped || s.m.Trigger != TriggerRetry {
		t.Errorf("found %s as %q: want it skipped, and a retry still", s.decision.Event, s.m.Trigger)
	}
}
