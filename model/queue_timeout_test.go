package model

import (
	"strings"
	"testing"
)

// The deadline of the queue counts until a worker says `started`, that of the work from then on.
const queued = `"policy":{"timeout":"1h","queue_timeout":"10m","retries":["1m"],"on_exhausted":"give_up"}`

func TestAnAttemptThatNobodyBeginsInTimeIsDueAgainAndNotCounted(t *testing.T) {
	runStories(t, []storyTest{
		{queued, "00:00 wake", "#1 a1 until 00:10, next 00:10: if not begun: again, not counted"},
		{queued, "00:00 wake | 00:10 timeout", "#0 deferred 1, next 00:10: not begun in time: again"},
		{queued, "00:00 wake | 00:10 timeout | 00:10 wake", "#1 a2 until 00:20 deferred 1, next 00:20: if not begun: again, not counted"},
		{queued, "00:00 wake | 00:05 user_friendly_status \"status\":\"waiting\" | 00:10 timeout", "#0 deferred 1, next 00:10: not begun in time: again"},
		{queued, "00:00 wake | 00:02 failure | 00:03 wake | 00:13 timeout", "#1 deferred 1, next 00:13: not begun in time: again"},

		// Still in the input list: withdrawn, not even deferred
		{queued, "00:00 wake | 00:10 withdraw", "#0, next 00:10: withdrawn: no worker took it"},
	})
	if d := tell(t, queued, "00:00 wake | 00:10 timeout").decision; d.Event != EventQueueTimeout || d.CountedAttempt() != 0 || !d.Next.FailingSince.IsZero() {
		t.Errorf("found %+v", d)
	}
}

func TestFromStartedOnTheTimeoutOfTheWorkHolds(t *testing.T) {
	runStories(t, []storyTest{
		{queued, "00:00 wake | 00:09 started", "#1 a1 until 01:09, next 01:10: if lost: retry 1/1 +1m, none planned"},
		{queued, "00:00 wake | 00:09 started | 00:30 started", "#1 a1 until 01:09, next 01:10: if lost: retry 1/1 +1m, none planned"},
		{queued, "00:00 wake | 00:09 started | 01:09 timeout", "#1, next 01:10: retry 1/1 +1m, none planned"},

		// Late, but nobody had noticed: the work has begun after all
		{queued, "00:00 wake | 00:11 started", "#1 a1 until 01:11, next 01:12: if lost: retry 1/1 +1m, none planned"},

		// Workers that never say so may end in time
		{queued, "00:00 wake | 00:09 success", "#0, next never: finished: one-shot"},
		{queued, "00:00 wake | 00:09 failure", "#1, next 00:10: retry 1/1 +1m, none planned"},

		// Without a queue timeout `started` moves the deadline as well
		{strings.Replace(queued, `"queue_timeout":"10m",`, "", 1), "00:00 wake | 00:09 started", "#1 a1 until 01:09, next 01:10: if lost: retry 1/1 +1m, none planned"},

		// Work without a timeout
		{`"policy":{"timeout":"none","queue_timeout":"10m"}`, "00:00 wake", "#1 a1 until 00:10, next 00:10: if not begun: again, not counted"},
		{atSixteen + `"policy":{"timeout":"none","queue_timeout":"10m","retries":["1m"]}`, "06:00 run | 06:00 wake | 06:09 started",
			"#1 a1 until 16:00, next 16:00: if lost: retry 1/1 at once: no answer until planned"},
	})
}

func TestTenAttemptsThatNobodyBeganAreFreeAndTheNextIsAFailure(t *testing.T) {
	s := tell(t, queued, "")
	now := monday
	for i := range maxDeferrals {
		s.do(now, "wake", "")
		now = s.m.DeadlineAt
		s.do(now, "timeout", "")
		if s.m.AttemptNo != 0 || s.m.Deferrals != i+1 {
			t.Fatalf("after %d: %s", i+1, s)
		}
	}
	s.do(now, "wake", "")
	now = s.m.DeadlineAt
	s.do(now, "timeout", "")
	s.expect("#1, next 01:51: retry 1/1 +1m, none planned")
	if ended := s.decision.Ended; ended.Outcome != EventFailure || ended.Reason != "queue_timeout 11 times in a row" {
		t.Errorf("the history says %+v", ended)
	}
	for range maxDeferrals + 1 { // the count began anew
		now = s.m.RefreshAt
		s.do(now, "wake", "")
		now = s.m.DeadlineAt
		s.do(now, "timeout", "")
	}
	s.expect("#2 disabled (Cannot refresh after 2 attempts: queue_timeout 11 times in a row): final: exhausted after 2")
}

func TestWorkThatBeganOnceEndsTheRowOfFreeOnes(t *testing.T) {
	s := tell(t, queued, "")
	now := monday
	for range 30 {
		s.do(now, "wake", "")
		if s.m.Deferrals == 9 {
			s.do(now, "success", "")
			s.do(now, "run", "")
			continue
		}
		now = s.m.DeadlineAt
		s.do(now, "timeout", "")
	}
	if s.m.Disabled || !s.m.FailingSince.IsZero() {
		t.Errorf("found %s", s)
	}
}
