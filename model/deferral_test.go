package model

import "testing"

func TestPostponedAndInterruptedAttemptsAreNotCounted(t *testing.T) {
	runStories(t, []storyTest{
		{daily, `06:00 start | 06:10 postponed "retry_after":600`, "#0 deferred 1, next 06:20: postponed by the worker +10m"},
		{daily, `06:00 start | 06:10 postponed "retry_after":0`, "#0 deferred 1, next 06:10: postponed by the worker at once"},
		{daily, `06:00 start | 06:10 postponed "retry_after":"2026-01-05T09:00:00+01:00"`, "#0 deferred 1, next 08:00: postponed by the worker +1h50m"},
		{daily, `06:00 start | 06:10 postponed "retry_after":"2026-01-05T05:00:00Z"`, "#0 deferred 1, next 06:10: postponed by the worker at once"},
		{daily, `06:00 start | 06:10 interrupted`, "#0 deferred 1, next 06:10: interrupted: again at once"},
		{daily, `06:00 start | 06:10 failure | 06:10 start | 06:11 interrupted`, "#1 deferred 1, next 06:11: interrupted: again at once"},
		{daily, `06:00 start | 06:10 interrupted | 06:10 start | 06:11 postponed "retry_after":60`, "#0 deferred 2, next 06:12: postponed by the worker +1m"},

		// What ends the row
		{daily, `06:00 start | 06:10 interrupted | 06:10 start | 06:11 success`, "#0, next 16:00: planned"},
		{daily, `06:00 start | 06:10 interrupted | 06:10 start | 06:11 failure`, "#1, next 06:11: retry 1/6 at once, before planned"},
		{daily, `06:00 start | 06:10 interrupted | 06:11 put "payload":{"size":2}`, "#0, next 06:10: saved while due"},

		// What does not: nobody took it
		{daily, `06:00 start | 06:10 interrupted | 06:10 start | 07:10 withdraw`, "#0 deferred 1, next 07:10: withdrawn: no worker took it"},
	})
}

func TestTheEleventhDeferralInARowIsAFailure(t *testing.T) {
	const tenTimes = "06:00 start" + " | 06:00 interrupted | 06:00 start | 06:00 postponed \"retry_after\":0 | 06:00 start" +
		" | 06:00 interrupted | 06:00 start | 06:00 postponed \"retry_after\":0 | 06:00 start" +
		" | 06:00 interrupted | 06:00 start | 06:00 postponed \"retry_after\":0 | 06:00 start" +
		" | 06:00 interrupted | 06:00 start | 06:00 postponed \"retry_after\":0 | 06:00 start" +
		" | 06:00 interrupted | 06:00 start | 06:00 postponed \"retry_after\":0 | 06:00 start"
	runStories(t, []storyTest{
		{daily, tenTimes, "#1 a11 until 07:00 deferred 10, next 07:00: if lost: retry 1/6 at once, before planned"},
		{daily, tenTimes + " | 06:05 interrupted", "#1, next 06:05: retry 1/6 at once, before planned"},
		{daily, tenTimes + " | 06:05 postponed \"retry_after\":0", "#1, next 06:05: retry 1/6 at once, before planned"},
		{daily, tenTimes + " | 06:05 postponed \"retry_after\":600", "#1, next 06:15: retry 1/6 +10m as asked, before planned"},
		{daily, tenTimes + " | 06:05 interrupted | 06:05 start | 06:06 interrupted", "#1 deferred 1, next 06:06: interrupted: again at once"},
	})
	s := tell(t, daily, tenTimes+" | 06:05 interrupted")
	if s.decision.Event != EventFailure || s.decision.Ended.Reason != "interrupted 11 times in a row" {
		t.Errorf("the eleventh was told as %s: %+v", s.decision.Event, s.decision.Ended)
	}
}
