package scenarios

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/long"
)

const goesOn = at6And16 + `"timezone":"Europe/Berlin","policy":{` + sixRetries + `,"on_exhausted":"next_planned"}`

// morning is a cycle of explicit failures, each ten minutes after the start. TODAY stands for the date.
var morning = []step{
	{at: "TODAY T06:00:00+01:00", do: "start", no: 1, deadline: "TODAY T07:00:00+01:00", refresh: "TODAY T07:00:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
	{at: "TODAY T06:10:00+01:00", do: "fail", no: 1, refresh: "TODAY T06:10:00+01:00", why: "retry 1/6 at once, before planned"},
	{at: "TODAY T06:10:00+01:00", do: "start", no: 2, deadline: "TODAY T07:10:00+01:00", refresh: "TODAY T07:11:00+01:00", why: "if lost: retry 2/6 +1m, before planned"},
	{at: "TODAY T06:20:00+01:00", do: "fail", no: 2, refresh: "TODAY T06:21:00+01:00", why: "retry 2/6 +1m, before planned"},
	{at: "TODAY T06:21:00+01:00", do: "start", no: 3, deadline: "TODAY T07:21:00+01:00", refresh: "TODAY T07:26:00+01:00", why: "if lost: retry 3/6 +5m, before planned"},
	{at: "TODAY T06:31:00+01:00", do: "fail", no: 3, refresh: "TODAY T06:36:00+01:00", why: "retry 3/6 +5m, before planned"},
	{at: "TODAY T06:36:00+01:00", do: "start", no: 4, deadline: "TODAY T07:36:00+01:00", refresh: "TODAY T07:51:00+01:00", why: "if lost: retry 4/6 +15m, before planned"},
	{at: "TODAY T06:46:00+01:00", do: "fail", no: 4, refresh: "TODAY T07:01:00+01:00", why: "retry 4/6 +15m, before planned"},
	{at: "TODAY T07:01:00+01:00", do: "start", no: 5, deadline: "TODAY T08:01:00+01:00", refresh: "TODAY T08:31:00+01:00", why: "if lost: retry 5/6 +30m, before planned"},
	{at: "TODAY T07:11:00+01:00", do: "fail", no: 5, refresh: "TODAY T07:41:00+01:00", why: "retry 5/6 +30m, before planned"},
	{at: "TODAY T07:41:00+01:00", do: "start", no: 6, deadline: "TODAY T08:41:00+01:00", refresh: "TODAY T09:41:00+01:00", why: "if lost: retry 6/6 +1h, before planned"},
	{at: "TODAY T07:51:00+01:00", do: "fail", no: 6, refresh: "TODAY T08:51:00+01:00", why: "retry 6/6 +1h, before planned"},
	{at: "TODAY T08:51:00+01:00", do: "start", no: 7, deadline: "TODAY T09:51:00+01:00", refresh: "TODAY T16:00:00+01:00", why: "if lost: exhausted after 7, planned"},
	{at: "TODAY T09:01:00+01:00", do: "fail", no: 0, refresh: "TODAY T16:00:00+01:00", why: "exhausted after 7, planned"},
}

// afternoon is a cycle in which every answer is lost: it ends after midnight. NEXT stands for the date of the next day.
var afternoon = []step{
	{at: "TODAY T16:00:00+01:00", do: "start", no: 1, deadline: "TODAY T17:00:00+01:00", refresh: "TODAY T17:00:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
	{at: "TODAY T17:00:00+01:00", do: "lost", no: 1, refresh: "TODAY T17:00:00+01:00", why: "retry 1/6 at once, before planned"},
	{at: "TODAY T17:00:00+01:00", do: "start", no: 2, deadline: "TODAY T18:00:00+01:00", refresh: "TODAY T18:01:00+01:00", why: "if lost: retry 2/6 +1m, before planned"},
	{at: "TODAY T18:00:00+01:00", do: "lost", no: 2, refresh: "TODAY T18:01:00+01:00", why: "retry 2/6 +1m, before planned"},
	{at: "TODAY T18:01:00+01:00", do: "start", no: 3, deadline: "TODAY T19:01:00+01:00", refresh: "TODAY T19:06:00+01:00", why: "if lost: retry 3/6 +5m, before planned"},
	{at: "TODAY T19:01:00+01:00", do: "lost", no: 3, refresh: "TODAY T19:06:00+01:00", why: "retry 3/6 +5m, before planned"},
	{at: "TODAY T19:06:00+01:00", do: "start", no: 4, deadline: "TODAY T20:06:00+01:00", refresh: "TODAY T20:21:00+01:00", why: "if lost: retry 4/6 +15m, before planned"},
	{at: "TODAY T20:06:00+01:00", do: "lost", no: 4, refresh: "TODAY T20:21:00+01:00", why: "retry 4/6 +15m, before planned"},
	{at: "TODAY T20:21:00+01:00", do: "start", no: 5, deadline: "TODAY T21:21:00+01:00", refresh: "TODAY T21:51:00+01:00", why: "if lost: retry 5/6 +30m, before planned"},
	{at: "TODAY T21:21:00+01:00", do: "lost", no: 5, refresh: "TODAY T21:51:00+01:00", why: "retry 5/6 +30m, before planned"},
	{at: "TODAY T21:51:00+01:00", do: "start", no: 6, deadline: "TODAY T22:51:00+01:00", refresh: "TODAY T23:51:00+01:00", why: "if lost: retry 6/6 +1h, before planned"},
	{at: "TODAY T22:51:00+01:00", do: "lost", no: 6, refresh: "TODAY T23:51:00+01:00", why: "retry 6/6 +1h, before planned"},
	{at: "TODAY T23:51:00+01:00", do: "start", no: 7, deadline: "NEXT T00:51:00+01:00", refresh: "NEXT T06:00:00+01:00", why: "if lost: exhausted after 7, planned"},
	{at: "NEXT T00:51:00+01:00", do: "lost", no: 0, refresh: "NEXT T06:00:00+01:00", why: "exhausted after 7, planned"},
}

// This policy has no give_up_after: a window after which such a model would give up all the same.
func TestABigTableThatGoesOnIsNeverDisabledInAWeekOfFailures(t *testing.T) {
	long.Only(t)
	steps := []step{{at: "2026-01-04T20:00:00+01:00", do: "save " + feed, no: 0, refresh: "2026-01-05T06:00:00+01:00", why: "planned"}}
	week := []string{"2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08", "2026-01-09", "2026-01-10", "2026-01-11", "2026-01-12"}
	for day := range 7 {
		steps = append(steps, on(week[day], week[day+1], morning)...)
		steps = append(steps, on(week[day], week[day+1], afternoon)...)
	}
	steps = append(steps,
		step{at: "2026-01-12T06:00:00+01:00", do: "start", no: 1, deadline: "2026-01-12T07:00:00+01:00", refresh: "2026-01-12T07:00:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
		step{at: "2026-01-12T06:20:00+01:00", do: "succeed", no: 0, refresh: "2026-01-12T16:00:00+01:00", why: "planned"},
	)
	// 14 cycles of 7 attempts and one that succeeds; nobody was told that the model failed, so nobody is told that it works.
	tell(t, goesOn, steps, remains{counters: map[string]string{"create": "1", "start": "99", "retry": "84", "failure": "49", "timeout": "49", "exhausted": "14", "success": "1",
		"total_retries": "84", "retried_cycles": "14"}})
}

// The same in a policy that gives up after a week: the model goes on until then, and no longer, though the list of retries was used up
// 14 times and the next refresh is planned for that very moment.
func TestABigTableIsGivenUpOnlyAfterAWeekWithoutASuccess(t *testing.T) {
	definition := strings.Replace(goesOn, `"on_exhausted"`, `"give_up_after":"7d","on_exhausted"`, 1)
	steps := []step{{at: "2026-01-04T20:00:00+01:00", do: "save " + feed, no: 0, refresh: "2026-01-05T06:00:00+01:00", why: "planned"}}
	week := []string{"2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08", "2026-01-09", "2026-01-10", "2026-01-11", "2026-01-12"}
	for day := range 7 {
		steps = append(steps, on(week[day], week[day+1], morning)...)
		steps = append(steps, on(week[day], week[day+1], afternoon)...)
	}
	last := len(steps) - 1
	steps[last-1].why, steps[last].why = "if lost: gives up then: no success for 1w", "gives up then: no success for 1w"
	steps = append(steps,
		step{at: "2026-01-12T06:00:00+01:00", do: "give_up", no: 0, refresh: "", why: "final: no success for 1w", reason: "Cannot refresh: no success for 1w"},
		step{at: "2026-01-12T16:00:00+01:00", do: "stay"},
	)
	tell(t, definition, steps, remains{counters: map[string]string{"create": "1", "start": "98", "retry": "84", "failure": "49", "timeout": "49", "exhausted": "14",
		"total_retries": "84", "retried_cycles": "14", "give_up": "1", "final_failure": "1"},
		outbox: []string{"disabled 2026-01-12T05:00:00.000Z #0: Cannot refresh: no success for 1w"}})
}

// on dates a cycle.
func on(today, next string, cycle []step) []step {
	dates := strings.NewReplacer("TODAY ", today, "NEXT ", next)
	dated := make([]step, len(cycle))
	for i, s := range cycle {
		s.at, s.deadline, s.refresh = dates.Replace(s.at), dates.Replace(s.deadline), dates.Replace(s.refresh)
		dated[i] = s
	}
	return dated
}
