package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

// aligning is refreshed at 6 and 16 with a timeout of an hour and one retry each 30 minutes.
func aligning(expr string) string {
	return atSixAnd16 + `"policy":{"timeout":"1h","retries":["30m","30m","30m"],"alignment":{"expr":"` + expr + `"}}`
}

func TestAnExpressionJoinsARetryWithTheSchedule(t *testing.T) {
	const lenient = "retry_at + timeout > planned_at + 5m ? planned_at : retry_at"
	runStories(t, []storyTest{
		{aligning(lenient), "14:00 run | 14:00 wake | 14:35 failure", "#1, next 15:05: retry 1 of 3 after 30m, may overlap planned"},
		{aligning(lenient), "14:00 run | 14:00 wake | 14:36 failure", "#1, next 16:00: retry 1 of 3 waits for planned, would overlap"},
		{aligning(lenient), "06:00 wake | 06:10 failure", "#1, next 06:40: retry 1 of 3 after 30m, ends before planned"},
		{aligning(lenient), "15:00 run | 15:00 wake", "#1 a1 until 16:00, next 16:30: on timeout: retry 1 of 3 after 30m, ends before planned"},
		{aligning("retry_at"), "14:00 run | 14:00 wake | 15:30 failure", "#1, next 16:00: retry 1 of 3 waits for planned, at the same time"},
		{aligning("k > 1 ? planned_at : now"), "06:00 wake | 06:10 failure | 06:10 wake | 06:20 failure", "#2, next 16:00: retry 2 of 3 waits for planned, as the policy says"},

		// A time of its own, which is a start that the worker may put off
		{aligning("planned_at - 2h"), "06:00 wake | 06:10 failure", "#1, next 14:00: retry 1 of 3 when the policy says"},
		{aligning("now + 1m"), `06:00 wake | 06:10 failure "retry_after":7200`, "#1, next 08:10: retry 1 of 3 after 2h, as the worker asked"},

		// The error type is known; a time that has passed is an error of the policy, and planned goes first
		{aligning("error_type == 'Busy' ? planned_at : retry_at"), `06:00 wake | 06:10 failure "error_type":"Busy"`, "#1, next 16:00: retry 1 of 3 waits for planned, as the policy says"},
		{aligning("now - 1s"), "06:00 wake | 06:10 failure", "#1, next 06:40: retry 1 of 3 after 30m, policy_error, ends before planned"},
		{aligning("now - 1s"), "14:00 run | 14:00 wake | 14:36 failure", "#1, next 16:00: retry 1 of 3 waits for planned, policy_error, would overlap"},
		{`"policy":{"timeout":"1h","retries":["30m"],"alignment":{"expr":"now - 1s"}}`, "00:00 wake | 00:10 failure", "#1, next 00:40: retry 1 of 1 after 30m"},
	})
	s := tell(t, aligning("now - 1s"), "06:00 wake | 06:10 failure")
	want := "expected a time from now to ten years on, found 2026-01-05T06:09:59Z"
	failIf(t, s.decision.PolicyError != want, "policy error %q", s.decision.PolicyError)
}

// An attempt of an hour fails at 14:00; the planned refresh is at 16:00. The delay decides how the two overlap, and the alignment which of them starts:
// the retry, the planned refresh, or that one as the first of a new cycle.
func TestEachAlignmentJoinsARetryWithTheScheduleInItsOwnWay(t *testing.T) {
	delays := []struct{ delay, retryAt, planned, retry string }{
		{"30m", "14:30", "as the policy says", "ends before planned"}, {"1h30m", "15:30", "would overlap", "may overlap planned"},
		{"2h", "16:00", "at the same time", "in place of planned"}, {"2h30m", "16:30", "which comes first", "in place of planned"},
		{"4h", "18:00", "which comes first", "in place of planned"},
	}
	for alignment, starts := range map[policy.Alignment]string{
		policy.AlignPlanned:   "retry planned planned planned planned", // "wait longer" where it overlaps the start, "wait less" at the end
		policy.UntilSuccess:   "retry retry retry retry retry",
		policy.PlannedOnly:    "planned planned planned planned planned",
		policy.WhicheverFirst: "retry retry planned planned planned",
		policy.BetweenPlanned: "retry anew anew anew anew",
	} {
		for i, start := range strings.Fields(starts) {
			d := delays[i]
			t.Run(fmt.Sprintf("%s after %s", alignment, d.delay), func(t *testing.T) {
				want := fmt.Sprintf("#%d, next 16:00: retry 1 of 1 waits for planned, %s", map[string]int{"planned": 1}[start], d.planned)
				if start == "retry" {
					want = fmt.Sprintf("#1, next %s: retry 1 of 1 after %s, %s", d.retryAt, d.delay, d.retry)
				}
				tell(t, atSixteen+joining(alignment, d.delay), "13:50 run | 13:50 wake | 14:00 failure").expect(want)
			})
		}
	}
}

const atSixteen = `"rrule":"FREQ=DAILY;BYHOUR=16","dtstart":"2026-01-01",`

func joining(alignment policy.Alignment, delay string) string {
	return fmt.Sprintf(`"policy":{"timeout":"1h","retries":[%q],"alignment":%q}`, delay, alignment)
}

func TestWithNothingPlannedTheRetryRunsAfterItsDelay(t *testing.T) {
	const over = `"rrule":"FREQ=DAILY;BYHOUR=6;UNTIL=20260105T060000Z","dtstart":"2026-01-01",`
	for _, alignment := range []policy.Alignment{policy.AlignPlanned, policy.UntilSuccess, policy.PlannedOnly, policy.WhicheverFirst, policy.BetweenPlanned} {
		t.Run(string(alignment), func(t *testing.T) {
			tell(t, joining(alignment, "2h"), "00:00 wake | 00:10 failure").expect("#1, next 02:10: retry 1 of 1 after 2h")
			tell(t, over+joining(alignment, "2h"), "06:00 wake | 06:10 failure").expect("#1, next 08:10: retry 1 of 1 after 2h")
		})
	}
}

func TestARetryThatEndsExactlyAtPlannedMayRun(t *testing.T) {
	last := "13:50 run | 13:50 wake | 14:00 failure"
	for _, alignment := range []policy.Alignment{policy.AlignPlanned, policy.UntilSuccess, policy.WhicheverFirst, policy.BetweenPlanned} {
		tell(t, atSixteen+joining(alignment, "1h"), last).expect("#1, next 15:00: retry 1 of 1 after 1h, ends before planned")
	}
	runStories(t, []storyTest{
		{atSixteen + joining(policy.AlignPlanned, "1h1ms"), last, "#1, next 16:00: retry 1 of 1 waits for planned, would overlap"},
		{atSixteen + joining(policy.WhicheverFirst, "1h1ms"), last, "#1, next 15:00:00.001: retry 1 of 1 after 1h, may overlap planned"},
		{atSixteen + joining(policy.BetweenPlanned, "1h1ms"), last, "#0, next 16:00: retry 1 of 1 waits for planned, would overlap"},
		{atSixteen + joining(policy.PlannedOnly, "1h"), last, "#1, next 16:00: retry 1 of 1 waits for planned, as the policy says"},

		// Only the starts count when nobody knows how long an attempt takes
		{strings.Replace(atSixteen+joining(policy.AlignPlanned, "1h59m59s"), `"1h"`, `"none"`, 1), last, "#1, next 15:59:59: retry 1 of 1 after 1h59m, ends before planned"},
		{strings.Replace(atSixteen+joining(policy.AlignPlanned, "2h"), `"1h"`, `"none"`, 1), last, "#1, next 16:00: retry 1 of 1 waits for planned, at the same time"},
		{strings.Replace(atSixteen+joining(policy.AlignPlanned, "2h1s"), `"1h"`, `"none"`, 1), last, "#1, next 16:00: retry 1 of 1 waits for planned, which comes first"},

		// The other border: planned would have ended when the retry starts
		{atSixteen + joining(policy.UntilSuccess, "2h59m59s999ms"), last, "#1, next 16:59:59.999: retry 1 of 1 after 2h59m, in place of planned"},
		{atSixteen + joining(policy.UntilSuccess, "3h"), last, "#1, next 17:00: retry 1 of 1 after 3h, in place of planned"},
	})
}

// With a timeout as long as the interval every retry overlaps a planned refresh. An alignment that compares the starts lets it run.
func TestWithATimeoutAsLongAsTheIntervalARetryMayRunWhicheverIsFirst(t *testing.T) {
	everyTwoHours := `"rrule":"FREQ=HOURLY;INTERVAL=2","dtstart":"2026-01-05",`
	at := func(alignment policy.Alignment) string {
		return fmt.Sprintf(`%s"policy":{"timeout":"2h","retries":["5m"],"alignment":%q}`, everyTwoHours, alignment)
	}
	runStories(t, []storyTest{
		{at(policy.AlignPlanned), "02:00 wake | 02:10 failure", "#1, next 04:00: retry 1 of 1 waits for planned, would overlap"},
		{at(policy.WhicheverFirst), "02:00 wake | 02:10 failure", "#1, next 02:15: retry 1 of 1 after 5m, may overlap planned"},
	})
}

func TestAPlannedRefreshBeginsANewCycleOnlyBetweenPlanned(t *testing.T) {
	cycles := "06:00 wake | 06:10 failure | 06:40 wake | 06:50 failure | 07:20 wake | 07:30 failure"
	at := func(alignment policy.Alignment) string {
		return fmt.Sprintf(`"rrule":"FREQ=DAILY;BYHOUR=6,8","dtstart":"2026-01-01","policy":{"timeout":"10m","retries":["30m","30m","30m"],"on_exhausted":"give_up","alignment":%q}`, alignment)
	}
	runStories(t, []storyTest{
		{at(policy.BetweenPlanned), cycles, "#0, next 08:00: retry 3 of 3 waits for planned, at the same time"},
		{at(policy.BetweenPlanned), cycles + " | 08:00 wake | 08:10 failure", "#1, next 08:40: retry 1 of 3 after 30m, ends before planned"},
		{at(policy.AlignPlanned), cycles, "#3, next 08:00: retry 3 of 3 waits for planned, at the same time"},
		{at(policy.AlignPlanned), cycles + " | 08:00 wake | 08:10 failure", "#4 disabled (Cannot refresh after 4 attempts): disabled after 4 failures, no retry left"},

		// A retry that waits for the planned refresh anyway
		{strings.ReplaceAll(at(policy.BetweenPlanned), `"30m"`, `"next"`), "06:00 wake | 06:10 failure", "#0, next 08:00: retry 1 of 3 waits for planned"},
		{strings.ReplaceAll(at(policy.AlignPlanned), `"30m"`, `"next"`), "06:00 wake | 06:10 failure", "#1, next 08:00: retry 1 of 3 waits for planned"},
	})
}

func TestTheWordNextWaitsForThePlannedRefresh(t *testing.T) {
	const untilNext = `"policy":{"timeout":"10m","retries":["next","1m","next"],"on_exhausted":"give_up"}`
	runStories(t, []storyTest{
		{sixDaily + untilNext, "06:00 wake | 06:10 failure", "#1, next 06:00+1: retry 1 of 3 waits for planned"},
		{sixDaily + untilNext, "06:00 wake | 06:10 failure | 06:00+1 wake | 06:10+1 failure", "#2, next 06:11+1: retry 2 of 3 after 1m, ends before planned"},
		{sixDaily + untilNext, "06:00 wake | 06:10 failure | 06:00+1 wake | 06:10+1 failure | 06:11+1 wake | 06:12+1 failure", "#3, next 06:00+2: retry 3 of 3 waits for planned"},
	})
}
