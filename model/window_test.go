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
