package main

import "testing"

func TestTheHistoryIsDrawn(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put(`
uid: a
rrule: FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0
policy: {timeout: 1h, retries: [0, 30m], on_exhausted: give_up}
`)
	expectContains(t, s.do("model", "history", "a", "-o", "mermaid"), "gantt")
	s.dispatch("06:00:00")
	s.answer("06:05:00", "failure", "a", `"reason":"HTTP <503>\u001b[2J"`)
	s.dispatch("06:05:00")
	drawn := s.do("history", "a", "-o", "mermaid")
	expectContains(t, drawn, "title a", "Failure 1", "2026-01-05T06:05:00", "Retry 1")
	s.answer("06:15:00", "success", "a")
	drawn = s.do("model", "history", "a", "-o", "mermaid")
	expectContains(t, drawn, ": crit, 2026-01-05T06:00:00, 5m", ": done, 2026-01-05T06:05:00, 10m", "Success")
	expectContains(t, s.do("model", "history", "a", "-o", "svg"), "<svg ", "06:05")
	expectContains(t, s.do("model", "history", "a"), "ATTEMPT", "Initial", "Retry #1")
}

func TestAModelThatWasGivenUpWhileItWaitedIsDrawnDisabled(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put(`
uid: a
rrule: FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0
policy: {timeout: 1h, retries: [], give_up_after: 3h}
`)
	s.dispatch("06:00:00")
	s.answer("06:05:00", "failure", "a")
	s.dispatch("09:00:00")
	expectContains(t, s.do("model", "history", "a", "-o", "mermaid"), "Disabled", "2026-01-05T09:00:00")
}
