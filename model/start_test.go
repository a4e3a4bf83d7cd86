package model

import "testing"

// A lost result is followed by the retry that the policy wants. Where nothing would follow, the deadline wakes the model.
func TestAStartExpectsItsTimeout(t *testing.T) {
	const toTheLast = "06:00 start | 06:00 failure | 06:00 start | 06:00 failure | 06:01 start | 06:01 failure | 06:06 start | 06:06 failure | " +
		"06:21 start | 06:21 failure | 06:51 start | 06:51 failure | 07:51 start"
	runStories(t, []storyTest{
		// What a timeout at the deadline would decide
		{daily, "06:00 start", "#1 a1 until 07:00, next 07:00: if lost: retry 1/6 at once, before planned"},
		{daily, "06:00 start | 06:10 failure | 06:10 start", "#2 a2 until 07:10, next 07:11: if lost: retry 2/6 +1m, before planned"},
		{daily, "06:00:00.250 start", "#1 a1 until 07:00:00.25, next 07:00:00.25: if lost: retry 1/6 at once, before planned"},

		// Joined with the schedule
		{daily, "14:00 run | 14:00 start", "#1 a1 until 15:00, next 15:00: if lost: retry 1/6 at once, before planned"},
		{daily, "14:01 run | 14:01 start", "#1 a1 until 15:01, next 16:00: if lost: retry 1/6 at once, planned first: overlaps start"},
		{daily, "15:30 run | 15:30 start", "#1 a1 until 16:30, next 16:30: if lost: retry 1/6 at once, before planned"},
		{daily, "15:00 run | 15:00 start", "#1 a1 until 16:00, next 16:00: if lost: retry 1/6 at once, before planned"},

		// A timeout that would be final: nothing is expected but the deadline
		{daily, toTheLast, "#7 a7 until 08:51, next never: if lost: final: exhausted after 7"},
		{lenient, toTheLast, "#7 a7 until 08:51, next 16:00: if lost: exhausted after 7, planned"},
		{banner, "00:00 start", "#1 a1 until 00:01, next 00:01: if lost: retry 1/3 at once, none planned"},

		// Timeout longer than the interval: refreshes do not overlap each other
		{halfHour, "00:30 start", "#1 a1 until 01:30, next 02:00: if lost: retry 1/6 at once, planned first: overlaps start"},

		// A missed time starts once, and everything counts from now
		{daily, "09:00+3 start", "#1 a1 until 10:00+3, next 10:00+3: if lost: retry 1/6 at once, before planned"},
		{daily, "09:00+3 start | 09:05+3 success", "#0, next 16:00+3: planned"},
	})
}

func TestAStartCountsAndForgetsTheStatusOfTheLastAttempt(t *testing.T) {
	s := tell(t, daily, `06:00 start | 06:01 user_friendly_status "status":"50 rows","progress":50 | 06:02 failure`)
	if s.m.UserFriendlyStatus != "50 rows" || s.m.Progress != 50 {
		t.Errorf("after the failure the owner reads %q, %d %%", s.m.UserFriendlyStatus, s.m.Progress)
	}
	s.then("06:02 start")
	if s.m.UserFriendlyStatus != "" || s.m.Progress != 0 || s.m.AttemptNo != 2 || !s.m.StartedAt.Equal(clock("06:02")) {
		t.Errorf("the start left %+v", s.m.State)
	}
}

// A backlog must not time out attempts that have never begun.
func TestTheDeadlineCountsFromTheFirstStarted(t *testing.T) {
	runStories(t, []storyTest{
		{daily, `06:00 start | 06:20 started`, "#1 a1 until 07:20, next 07:20: if lost: retry 1/6 at once, before planned"},
		{daily, `06:00 start | 06:20 started | 06:40 started`, "#1 a1 until 07:20, next 07:20: if lost: retry 1/6 at once, before planned"},
		{daily, `06:00 start | 06:20 started | 06:30 success`, "#0, next 16:00: planned"},
		{daily, `06:00 start | 06:20 started | 06:30 failure | 06:30 start | 06:31 started`, "#2 a2 until 07:31, next 07:32: if lost: retry 2/6 +1m, before planned"},

		// Nobody has noticed that the deadline passed: the work begins after all
		{daily, `06:00 start | 07:30 started`, "#1 a1 until 08:30, next 08:30: if lost: retry 1/6 at once, before planned"},

		// The expectation moves with the deadline, joined with the schedule again
		{daily, `14:00 run | 14:00 start | 14:01 started`, "#1 a1 until 15:01, next 16:00: if lost: retry 1/6 at once, planned first: overlaps start"},
		{daily, `06:00 start | 06:05 taken | 06:10 put "refresh":"now" | 06:20 started`, "#1 a1 until 07:20 again, next 07:20: saved while running: again"},
	})
	s := tell(t, daily, `06:00 start | 06:20 started "worker":"host-1","processing_id":7 | 06:40 started "worker":"host-2"`)
	if s.outcome != Duplicate || s.m.Worker != "host-1" || !s.m.ProcessingAt.Equal(clock("06:20")) {
		t.Errorf("outcome %q, worker %q since %s", s.outcome, s.m.Worker, clockText(s.m.ProcessingAt))
	}
}

func TestALongExpectationIsCutToSixtyBytes(t *testing.T) {
	const tenRetries = `"policy":{"timeout":"1h","retries":["100d13h14m15s167ms",0,0,0,0,0,0,0,0,0]}`
	s := tell(t, atSixAnd16+tenRetries, "06:00 start")
	s.expect("#1 a1 until 07:00, next 16:00: if lost: retry 1/10 +100d13h14m15s167ms, planned first: a…")
}
