package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func TestASuccessIsFollowedByTheNextPlannedRefreshAfterNow(t *testing.T) {
	runStories(t, []storyTest{
		{banner, "00:00 start | 00:00:30 success", "#0, next never: finished: one-shot"},
		{daily, "06:00 start | 06:10 success", "#0, next 16:00: planned"},
		// Strictly after now: an occurrence at now is consumed, as are those that passed meanwhile
		{daily, "15:30 run | 15:30 start | 16:00 success", "#0, next 06:00+1: planned"},

		// The phase of the schedule is that of dtstart, not of the day or of now
		{`"rrule":"FREQ=HOURLY;INTERVAL=5","dtstart":"2026-01-05",` + oneThenGo, "20:00 run | 20:00 start | 20:07 success", "#0, next 01:00+1: planned"},

		// Nothing is left
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
		"00:00 start | 00:00:10 failure | 00:00:10 start | 00:00:20 success": policy.NoticeNone,

		// A final failure, however the model was enabled again
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
	})
}

func TestASaveDuringAnAttemptIsFollowedByAnotherInWhateverWayItEnds(t *testing.T) {
	const saved = `00:00 start | 00:00:05 taken | 00:00:20 put "payload":{"size":2} | `
	runStories(t, []storyTest{
		{banner, saved + "00:00:30 interrupted", "#0, next 00:00:30: saved while running: again"},
		{banner, saved + "00:00:30 success", "#0, next 00:00:30: saved while running: again"},
		{banner, saved, "#1 a1 until 00:01 again outdated, next 00:01: saved while running: again"},

		{banner, saved + "00:00:30 failure", "#0, next 00:00:30: saved while running: again"},
		{banner, saved + `00:00:30 postponed "retry_after":3600`, "#0, next 00:00:30: saved while running: again"},

		// The second thumbnail is the last
		{banner, saved + "00:00:30 success | 00:00:30 start | 00:00:40 success", "#0, next never: finished: one-shot"},
	})
}

func TestWhatAnAttemptReportsAboutAReplacedPayloadIsRecordedAndNotCounted(t *testing.T) {
	const failing = "06:00 start | 06:10 failure | 06:10 start | "
	const cured = failing + `06:11 taken | 06:20 put "payload":{"size":2} | `
	const kept = failing + `06:11 taken | 06:20 put "payload":{"size":2},"refresh":"planned" | `
	for steps, want := range map[string]string{
		cured + `06:30 failure "retryable":false,"reason":"no such host"`: "#0, next 06:30: saved while running: again",
		kept + `06:30 failure "retryable":false,"reason":"no such host"`:  "#0, next 16:00: planned",
		kept + `06:30 failure "retry_after":86400`:                        "#0, next 16:00: planned",

		// What the worker asked for was about the old payload too
		cured + `06:30 postponed "retry_after":3600`: "#0, next 06:30: saved while running: again",
		kept + `06:30 postponed "retry_after":86400`: "#0, next 16:00: planned",
	} {
		s := tell(t, daily, steps)
		s.expect(want)
		before := tell(t, daily, steps[:strings.LastIndex(steps, "|")])
		if s.decision.Event != EventOutdated || s.decision.Ended.Outcome != EventOutdated || s.decision.Ended.AttemptUID != "a2" {
			t.Errorf("%s: recorded as %s, %+v", steps, s.decision.Event, s.decision.Ended)
		}
		if s.decision.Final || s.decision.Notice != policy.NoticeNone || s.decision.CountedAttempt() != 0 || s.m.FailingSince != before.m.FailingSince ||
			!s.m.LastSuccessAt.IsZero() {
			t.Errorf("%s: it counted: %+v", steps, s.decision)
		}
	}
	s := tell(t, daily, cured+`06:30 failure "reason":"no such host"`)
	if s.decision.Ended.Reason != "no such host" {
		t.Errorf("the history has lost what was reported: %+v", s.decision.Ended)
	}

	// Other changes replace no payload: the attempt is judged by the policy in force
	tell(t, daily, failing+`06:11 taken | 06:20 put "policy":{"retries":[],"on_exhausted":"give_up"} | 06:30 failure`).
		expect("#1 disabled (Cannot refresh after 1 attempt): final: exhausted after 1")
}

func TestAQueuedAttemptTakesOverWhatIsSaved(t *testing.T) {
	for steps, must := range map[string]bool{
		`06:00 start | 06:10 put "payload":{"size":2}`: true, `06:00 start | 06:10 put "payload":{"size":2},"refresh":"planned"`: true,
		`06:00 start | 06:10 put "refresh":"now"`:                      true,
		`06:00 start | 06:05 taken | 06:10 put "payload":{"size":2}`:   false,
		`06:00 start | 06:05 started | 06:10 put "payload":{"size":2}`: true,
	} {
		s := tell(t, daily, steps)
		if s.decision.MustBeQueued != must {
			t.Errorf("%s: must be queued: %v", steps, s.decision.MustBeQueued)
		}
		if must && (s.decision.Message != s.m.Entry() || s.m.Again || s.m.Outdated) {
			t.Errorf("%s: the entry becomes %q, again %v, outdated %v", steps, s.decision.Message, s.m.Again, s.m.Outdated)
		}
	}
}

func TestALateResultCountsWhileItsUIDIsCurrent(t *testing.T) {
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

func TestAModelWhoseScheduleCannotBeReadLooksAgainAnHourLater(t *testing.T) {
	m := Model{UID: "tbl_1", Rule: "FREQ=GARBAGE", Fault: "rrule: …", Policy: policy.Default(), State: State{RefreshAt: monday}}
	m.State = m.Start(monday, "a1").Next
	decision := m.Succeed(monday.Add(time.Minute), nil)
	if !decision.Next.RefreshAt.Equal(monday.Add(61*time.Minute)) || decision.Next.Why != "schedule unreadable: look again later" {
		t.Errorf("next %s: %s", decision.Next.RefreshAt, decision.Next.Why)
	}
}
