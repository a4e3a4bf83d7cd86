package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"
)

// Bug 3: the planned time was computed from a deadline that did not exist. Bug 4: a lost result waited for the planned time,
// whatever the retry policy said. Bug 21: an expectation of nothing left the model to nobody; now the deadline wakes it.
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

		// Timeout longer than the interval: refreshes do not overlap each other (S0-26)
		{halfHour, "00:30 start", "#1 a1 until 01:30, next 02:00: if lost: retry 1/6 at once, planned first: overlaps start"},

		// A missed time starts once, and everything counts from now (DESIGN 6.9)
		{daily, "09:00+3 start", "#1 a1 until 10:00+3, next 10:00+3: if lost: retry 1/6 at once, before planned"},
		{daily, "09:00+3 start | 09:05+3 success", "#0, next 16:00+3: planned"},
	})
}

func TestAStartCountsAndForgetsTheStatusOfTheLastAttempt(t *testing.T) {
	s := tell(t, daily, `06:00 start | 06:01 user_friendly_status "status":"50 rows","progress":50 | 06:02 failure`)
	if s.m.UserFriendlyStatus != "50 rows" || s.m.Progress != 50 {
		t.Errorf("after the failure the owner reads %q, %d %%", s.m.UserFriendlyStatus, s.m.Progress)
	}
	s.then("06:02 start") // bug 32
	if s.m.UserFriendlyStatus != "" || s.m.Progress != 0 || s.m.AttemptNo != 2 || !s.m.StartedAt.Equal(clock("06:02")) {
		t.Errorf("the start left %+v", s.m.State)
	}
}

func TestASuccessIsFollowedByTheNextPlannedRefreshAfterNow(t *testing.T) {
	runStories(t, []storyTest{
		{daily, "06:00 start | 06:10 success", "#0, next 16:00: planned"},
		{daily, "16:00 start | 16:10 success", "#0, next 06:00+1: planned"},
		{daily, "06:00 start | 06:10 failure | 06:10 start | 06:20 success", "#0, next 16:00: planned"},

		// Not after the deadline: timeout 1 h, 10 minutes of work, every 30 minutes (S0-14)
		{halfHour, "00:30 start | 00:40 success", "#0, next 01:00: planned"},

		// Strictly after now: an occurrence at now is consumed, as are those that passed meanwhile (bug 29)
		{daily, "15:30 run | 15:30 start | 16:00 success", "#0, next 06:00+1: planned"},
		{daily, "15:30 run | 15:30 start | 15:59:59.999 success", "#0, next 16:00: planned"},
		{halfHour, "00:30 start | 01:29 success", "#0, next 01:30: planned"},

		// The phase of the schedule is that of dtstart, not of the day or of now (bugs 12, 14)
		{`"rrule":"FREQ=HOURLY;INTERVAL=5","dtstart":"2026-01-05",` + oneThenGo, "20:00 run | 20:00 start | 20:07 success", "#0, next 01:00+1: planned"},

		// Nothing is left
		{banner, "00:00 start | 00:00:30 success", "#0, next never: finished: one-shot"},
		{lastDay, "16:00 start | 16:30 success", "#0, next never: finished: no planned refresh left"},
	})
}

func TestASuccessStartsTheCountAnew(t *testing.T) {
	s := tell(t, daily, "06:00 start | 06:10 failure | 06:10 start | 06:20 postponed \"retry_after\":60 | 06:21 start | 06:30 success")
	if s.m.AttemptNo != 0 || s.m.Deferrals != 0 || !s.m.FailingSince.IsZero() || !s.m.LastSuccessAt.Equal(clock("06:30")) {
		t.Errorf("the success left %+v", s.m.State)
	}
}

func TestARecoveryIsToldOnlyAfterAFinalFailure(t *testing.T) {
	for steps, want := range map[string]policy.Notice{
		// Failures and a success
		"00:00 start | 00:00:10 success":                                     policy.NoticeNone,
		"00:00 start | 00:00:10 failure | 00:00:10 start | 00:00:20 success": policy.NoticeNone,

		// A final failure, however the model was enabled again
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 enable | 01:00 start | 01:00:10 success`:                                        policy.NoticeRecovered,
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 run | 01:00 start | 01:00:10 success`:                                           policy.NoticeRecovered,
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 put "payload":{"size":2} | 01:00 start | 01:00:10 success`:                      policy.NoticeRecovered,
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 run | 01:00 start | 01:00:10 failure | 01:00:10 start | 01:00:20 success`:       policy.NoticeRecovered,
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 run | 01:00 start | 01:00:10 success | 02:00 run | 02:00 start | 02:01 success`: policy.NoticeNone,

		// Disabled by hand: nobody was alarmed
		"00:00 disable | 01:00 enable | 01:00 start | 01:00:10 success": policy.NoticeNone,
	} {
		if got := tell(t, banner, steps).decision.Notice; got != want {
			t.Errorf("%s: notice %q, want %q", steps, got, want)
		}
	}
}

func TestAnAttemptThatNoWorkerTookIsNotCounted(t *testing.T) {
	runStories(t, []storyTest{
		{daily, "06:00 start | 07:00 withdraw", "#0, next 07:00: withdrawn: no worker took it"},
		{daily, "06:00 start | 06:10 failure | 06:10 start | 07:10 withdraw", "#1, next 07:10: withdrawn: no worker took it"},
		{daily, "06:00 start | 06:10 put \"refresh\":\"now\" | 07:00 withdraw", "#0, next 07:00: saved while running: again"},
		{banner, "00:00 start | 00:01 withdraw", "#0, next 00:01: withdrawn: no worker took it"},
	})
}

func TestWorkersThatAreDownForAWeekendDisableNobody(t *testing.T) {
	s := tell(t, daily, "")
	now := clock("06:00")
	for range 48 {
		s.do(now, "start", "")
		now = s.m.DeadlineAt
		s.do(now, "withdraw", "")
	}
	s.expect("#0, next 06:00+2: withdrawn: no worker took it")
	if !s.m.FailingSince.IsZero() || s.decision.Ended != nil {
		t.Errorf("an attempt that nobody took left a trace of failure: %+v", s.decision)
	}
}

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

// Bug 31: the deadline counted from the push, so a backlog timed out attempts that had never begun.
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
		{daily, `06:00 start | 06:10 put "refresh":"now" | 06:20 started`, "#1 a1 until 07:20 again, next 07:20: saved while running: again"},
	})
	s := tell(t, daily, `06:00 start | 06:20 started "worker":"host-1","processing_id":7 | 06:40 started "worker":"host-2"`)
	if s.outcome != Duplicate || s.m.Worker != "host-1" || !s.m.ProcessingAt.Equal(clock("06:20")) {
		t.Errorf("outcome %q, worker %q since %s", s.outcome, s.m.Worker, clockText(s.m.ProcessingAt))
	}
}

func TestASaveDuringAnAttemptIsFollowedByAnotherInWhateverWayItEnds(t *testing.T) {
	const saved = `00:00 start | 00:00:20 put "payload":{"size":2} | `
	runStories(t, []storyTest{
		{banner, `00:00 start | 00:00:20 put "payload":{"size":2}`, "#1 a1 until 00:01 again, next 00:01: saved while running: again"},
		{banner, saved + `00:00:25 put "payload":{"size":3}`, "#1 a1 until 00:01 again, next 00:01: saved while running: again"},

		{banner, saved + "00:00:30 success", "#0, next 00:00:30: saved while running: again"},
		{banner, saved + "00:00:30 failure", "#0, next 00:00:30: saved while running: again"},
		{banner, saved + `00:00:30 failure "retryable":false`, "#0, next 00:00:30: saved while running: again"},
		{banner, saved + `00:00:30 failure "retry_after":3600`, "#0, next 00:00:30: saved while running: again"},
		{banner, saved + `00:00:30 postponed "retry_after":3600`, "#0 deferred 1, next 00:00:30: saved while running: again"},
		{banner, saved + "00:00:30 interrupted", "#0 deferred 1, next 00:00:30: saved while running: again"},
		{banner, saved + "00:01 timeout", "#0, next 00:01: saved while running: again"},
		{banner, saved + "00:01 withdraw", "#0, next 00:01: saved while running: again"},
		{banner, saved + `00:00:30 run "force":true`, "#0, next 00:00:30: run by hand"},
		{banner, saved + `00:00:30 disable`, "#0 disabled (): disabled by hand"},

		// The second thumbnail is the last
		{banner, saved + "00:00:30 success | 00:00:30 start | 00:00:40 success", "#0, next never: finished: one-shot"},
	})
	s := tell(t, banner, saved+`00:00:30 failure "retryable":false`)
	if s.decision.Final || s.decision.Notice != policy.NoticeNone || !s.m.FailingSince.IsZero() {
		t.Errorf("a failure that belongs to an old definition counted: %+v", s.decision)
	}
}

func TestTheRecordOfAnAttemptTellsWhatWasAndWhatFollows(t *testing.T) {
	s := tell(t, daily, `06:00 start | 06:00:30 started "worker":"host-1" | 06:10 failure "reason":"HTTP 503","error_type":"Unavailable"`)
	want := Attempt{AttemptUID: "a1", AttemptNo: 1, StartedAt: clock("06:00"), EndedAt: clock("06:10"), Duration: 10 * time.Minute, Outcome: EventFailure,
		Reason: "HTTP 503", ErrorType: "Unavailable", Worker: "host-1",
		DeadlineAt: clock("07:00:30"), // an hour after the work began
		RetryAt:    clock("06:10"), PlannedAt: clock("16:00"), Overlap: policy.Before,
		RefreshAt: clock("06:10"), Why: "retry 1/6 at once, before planned"}
	if diff := cmp.Diff(want, *s.decision.Ended); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s.m.LastAttemptUID != "a1" {
		t.Errorf("last attempt %q, want a1", s.m.LastAttemptUID)
	}
}

func TestTheRecordOfTheLastAttemptHasNoNextTime(t *testing.T) {
	s := tell(t, banner, `00:00 start | 00:00:10 success "changed":false`)
	if !s.decision.Ended.RefreshAt.IsZero() || s.decision.Ended.Changed == nil || *s.decision.Ended.Changed {
		t.Errorf("found %+v", s.decision.Ended)
	}
	s = tell(t, banner, `00:00 start | 00:00:10 failure "retryable":false`)
	if !s.decision.Ended.RefreshAt.IsZero() || !s.decision.Ended.Final {
		t.Errorf("found %+v", s.decision.Ended)
	}
}

func TestALateResultCountsWhileItsUIDIsCurrent(t *testing.T) { // bug 30
	for steps, late := range map[string]bool{
		"06:00 start | 06:59:59.999 success": false, "06:00 start | 07:00 success": false, "06:00 start | 07:00:00.001 success": true,
		"06:00 start | 07:01 failure": true, "06:00 start | 07:01 interrupted": true, "06:00 start | 07:01 started": true,
		"06:00 start | 07:01 user_friendly_status \"status\":\"still here\"": false,
	} {
		if s := tell(t, daily, steps); s.outcome != Applied || s.decision.Late != late {
			t.Errorf("%s: outcome %q, late %v; want it applied, late %v", steps, s.outcome, s.decision.Late, late)
		}
	}
}

func TestALongWhyIsCutToSixtyBytes(t *testing.T) {
	s := tell(t, atSixAnd16+`"policy":{"timeout":"1h","retries":["1w2d13h4m5s6ms","1m"],"retry_window":"FREQ=DAILY;BYHOUR=23"}`,
		`06:00 start | 06:10 failure "retry_after":"1w2d13h4m5s7ms"`)
	s.expect("#1, next 16:00: retry 1/2 +9d13h4m5s7ms as asked in window, planned first…")
	if len(s.m.Why) != 60 || s.decision.Ended.Why != s.m.Why || !strings.HasSuffix(s.m.Why, "…") {
		t.Errorf("%d bytes: %q; the record says %q", len(s.m.Why), s.m.Why, s.decision.Ended.Why)
	}
}

func TestALongExpectationIsCutToSixtyBytes(t *testing.T) {
	const tenRetries = `"policy":{"timeout":"1h","retries":["100d13h14m15s167ms",0,0,0,0,0,0,0,0,0]}`
	s := tell(t, atSixAnd16+tenRetries, "06:00 start")
	s.expect("#1 a1 until 07:00, next 16:00: if lost: retry 1/10 +100d13h14m15s167ms, planned first: a…")
}

func TestTextsInTheRecordOfAnAttemptAreFitToBeShown(t *testing.T) {
	long := strings.Repeat("x", 600)
	s := tell(t, daily, `06:00 start | 06:01 started "worker":"`+long+`" | 06:10 failure "reason":"a\nb`+long+`","error_type":"`+long+`"`)
	if e := s.decision.Ended; !fit(e.Reason, 500) || !fit(e.ErrorType, 500) || !fit(e.Worker, 60) || !strings.HasPrefix(e.Reason, "a bxxx") {
		t.Errorf("found %+v", e)
	}
}

func TestAModelWhoseScheduleCannotBeReadLooksAgainAnHourLater(t *testing.T) {
	m := Model{UID: "tbl_1", Rule: "FREQ=GARBAGE", Fault: "rrule: …", Policy: policy.Default(), State: State{RefreshAt: monday}}
	m.State = m.Start(monday, "a1").Next
	decision := m.Succeed(monday.Add(time.Minute), nil)
	if !decision.Next.RefreshAt.Equal(monday.Add(61*time.Minute)) || decision.Next.Why != "schedule unreadable: look again later" {
		t.Errorf("next %s: %s", decision.Next.RefreshAt, decision.Next.Why)
	}
}
