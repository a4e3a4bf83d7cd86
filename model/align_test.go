package model

import "testing"

// aligning is refreshed at 6 and 16 with a timeout of an hour and one retry each 30 minutes.
func aligning(expr string) string {
	return atSixAnd16 + `"policy":{"timeout":"1h","retries":["30m","30m","30m"],"alignment":{"expr":"` + expr + `"}}`
}

func TestAnExpressionJoinsARetryWithTheSchedule(t *testing.T) {
	const lenient = "retry_at + timeout > planned_at + 5m ? planned_at : retry_at"
	runStories(t, []storyTest{
		{aligning(lenient), "14:00 run | 14:00 wake | 14:35 failure", "#1, next 15:05: retry 1/3 +30m, retry first: overlaps start"},
		{aligning(lenient), "14:00 run | 14:00 wake | 14:36 failure", "#1, next 16:00: retry 1/3 +30m, planned first: overlaps start"},
		{aligning(lenient), "06:00 wake | 06:10 failure", "#1, next 06:40: retry 1/3 +30m, before planned"},
		{aligning(lenient), "15:00 run | 15:00 wake", "#1 a1 until 16:00, next 16:30: if lost: retry 1/3 +30m, before planned"},
		{aligning("retry_at"), "14:00 run | 14:00 wake | 15:30 failure", "#1, next 16:00: retry 1/3 +30m, planned first: same"},
		{aligning("k > 1 ? planned_at : now"), "06:00 wake | 06:10 failure | 06:10 wake | 06:20 failure", "#2, next 16:00: retry 2/3 +30m, planned first: before"},

		// A time of its own, which is a start that the worker may put off
		{aligning("planned_at - 2h"), "06:00 wake | 06:10 failure", "#1, next 14:00: retry 1/3 +30m, as the alignment says: before"},
		{aligning("now + 1m"), `06:00 wake | 06:10 failure "retry_after":7200`, "#1, next 08:10: retry 1/3 +2h as asked, before planned"},

		// The error type is known; a time that has passed is an error of the policy, and planned goes first
		{aligning("error_type == 'Busy' ? planned_at : retry_at"), `06:00 wake | 06:10 failure "error_type":"Busy"`, "#1, next 16:00: retry 1/3 +30m, planned first: before"},
		{aligning("now - 1s"), "06:00 wake | 06:10 failure", "#1, next 06:40: retry 1/3 +30m: policy_error, before planned"},
		{aligning("now - 1s"), "14:00 run | 14:00 wake | 14:36 failure", "#1, next 16:00: retry 1/3 +30m: policy_error, planned first: overlaps start"},

		// With nothing planned nobody is asked
		{`"policy":{"timeout":"1h","retries":["30m"],"alignment":{"expr":"now - 1s"}}`, "00:00 wake | 00:10 failure", "#1, next 00:40: retry 1/1 +30m, none planned"},
	})
	s := tell(t, aligning("now - 1s"), "06:00 wake | 06:10 failure")
	if want := "expected a time from now to ten years on, found 2026-01-05T06:09:59Z"; s.decision.PolicyError != want {
		t.Errorf("policy error %q", s.decision.PolicyError)
	}
}
