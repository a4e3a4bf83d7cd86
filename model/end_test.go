package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func TestASuccessIsFollowedByTheNextPlannedRefreshAfterNow(t *testing.T) {
	runStories(t, []storyTest{
		{daily, "06:00 start | 06:10 success", "#0, next 16:00: planned"},
		{daily, "16:00 start | 16:10 success", "#0, next 06:00+1: planned"},
		{daily, "06:00 start | 06:10 failure | 06:10 start | 06:20 success", "#0, next 16:00: planned"},

		// Not after the deadline: timeout 1 h, 10 minutes of work, every 30 minutes
		{halfHour, "00:30 start | 00:40 success", "#0, next 01:00: planned"},

		// Strictly after now: an occurrence at now is consumed, as are those that passed meanwhile
		{daily, "15:30 run | 15:30 start | 16:00 success", "#0, next 06:00+1: planned"},

		// The phase of the schedule comes from dtstart, not from the day or from now
		{`"rrule":"FREQ=HOURLY;INTERVAL=5","dtstart":"2026-01-05",` + oneThenGo, "20:00 run | 20:00 start | 20:07 success", "#0, next 01:00+1: planned"},

		// Nothing is left
		{banner, "00:00 start | 00:00:30 success", "#0, next never: finished: one-shot"},
		{lastDay, "16:00 start | 16:30 success", "#0, next never: finished: no planned refresh left"},
	})
}

func TestASuccessStartsTheCountAnew(t *testing.T) {
	s := tell(t, daily, "06:00 start | 06:10 failure | 06:10 start | 06:20 postponed \"retry_after\":60 | 06:21 start | 06:30 success")
	failIf(t, s.m.AttemptNo != 0 || s.m.Deferrals != 0 || !s.m.FailingSince.IsZero() || !s.m.LastSuccessAt.Equal(clock("06:30")),
		"the success left %+v", s.m.State)
}

func TestARecoveryIsToldOnlyAfterAFinalFailure(t *testing.T) {
	for steps, want := range map[string]policy.Notice{
		"00:00 start | 00:00:10 success": policy.NoticeNone,
		// Failures and a success
		"00:00 start | 00:00:10 failure | 00:00:10 start | 00:00:20 success":                               policy.NoticeNone,
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 enable | 01:00 start | 01:00:10 success`: policy.NoticeRecovered,

		// A final failure, however the model was enabled again
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 run | 01:00 start | 01:00:10 success`:                                           policy.NoticeRecovered,
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 put "payload":{"size":2} | 01:00 start | 01:00:10 success`:                      policy.NoticeRecovered,
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 run | 01:00 start | 01:00:10 failure | 01:00:10 start | 01:00:20 success`:       policy.NoticeRecovered,
		`00:00 start | 00:00:10 failure "retryable":false | 01:00 run | 01:00 start | 01:00:10 success | 02:00 run | 02:00 start | 02:01 success`: policy.NoticeNone,

		// Disabled by hand: nobody was alarmed
		"00:00 disable | 01:00 enable | 01:00 start | 01:00:10 success": policy.NoticeNone,
	} {
		got := tell(t, banner, steps).decision.Notice
		failIf(t, got != want, "%s: notice %q, want %q", steps, got, want)
	}
}

func TestAnAttemptThatNoWorkerTookIsNotCounted(t *testing.T) {
	runStories(t, []storyTest{
		{daily, "06:00 start | 07:00 withdraw", "#0, next 07:00: withdrawn: no worker took it"},
		{daily, "06:00 start | 06:10 failure | 06:10 start | 07:10 withdraw", "#1, next 07:10: withdrawn: no worker took it"},
		{banner, "00:00 start | 00:01 withdraw", "#0, next 00:01: withdrawn: no worker took it"},
	})
}

func TestASaveDuringAnAttemptIsFollowedByAnotherInWhateverWayItEnds(t *testing.T) {
	const saved = `00:00 start | 00:00:05 taken | 00:00:20 put "payload":{"size":2} | `
	runStories(t, []storyTest{
		{banner, saved, "#1 a1 until 00:01 again outdated, next 00:01: saved while running: again"},

		{banner, saved + "00:00:30 success", "#0, next 00:00:30: saved while running: again"},
		{banner, saved + "00:00:30 failure", "#0, next 00:00:30: saved while running: again"},
		{banner, saved + `00:00:30 failure "retryable":false`, "#0, next 00:00:30: saved while running: again"},
		{banner, saved + `00:00:30 postponed "retry_after":3600`, "#0, next 00:00:30: saved while running: again"},
		{banner, saved + "00:00:30 interrupted", "#0, next 00:00:30: saved while running: again"},
		{banner, saved + "00:01 timeout", "#0, next 00:01: saved while running: again"},
		{banner, saved + `00:00:30 run "force":true`, "#0, next 00:00:30: run by hand"},
		{banner, saved + `00:00:30 disable`, "#0 disabled (): disabled by hand"},

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
		cured + "06:30 success": "#0, next 06:30: saved while running: again",
		cured + "07:10 timeout": "#0, next 07:10: saved while running: again",
		kept + `06:30 failure "retryable":false,"reason":"no such host"`: "#0, next 16:00: planned",
		kept + `06:30 failure "retry_after":86400`:                       "#0, next 16:00: planned",
		kept + "06:30 success":                                           "#0, next 16:00: planned",
		kept + "07:10 timeout":                                           "#0, next 16:00: planned",

		// What the worker asked for was about the old payload too
		cured + `06:30 postponed "retry_after":3600`: "#0, next 06:30: saved while running: again",
		kept + `06:30 postponed "retry_after":86400`: "#0, next 16:00: planned",
	} {
		s := tell(t, daily, steps)
		s.expect(want)
		before := tell(t, daily, steps[:strings.LastIndex(steps, "|")])
		failIf(t, s.decision.Event != EventOutdated || s.decision.Ended.Outcome != EventOutdated || s.decision.Ended.AttemptUID != "a2",
			"%s: recorded as %s, %+v", steps, s.decision.Event, s.decision.Ended)
		if s.decision.Final || s.decision.Notice != policy.NoticeNone || s.decision.countedAttempt() != 0 || s.m.FailingSince != before.m.FailingSince ||
			!s.m.LastSuccessAt.IsZero() {
			t.Errorf("%s: it counted: %+v", steps, s.decision)
		}
	}
	s := tell(t, daily, cured+`06:30 failure "reason":"no such host"`)
	failIf(t, s.decision.Ended.Reason != "no such host", "the history has lost what was reported: %+v", s.decision.Ended)

	// Other changes replace no payload: the attempt is judged by the policy in force
	tell(t, daily, failing+`06:11 taken | 06:20 put "policy":{"retries":[],"on_exhausted":"give_up"} | 06:30 failure`).
		expect("#1 disabled (Cannot refresh after 1 attempt): disabled after 1 failure, no retry left")
}

func TestAQueuedAttemptTakesOverWhatIsSaved(t *testing.T) {
	for steps, must := range map[string]bool{
		`06:00 start | 06:10 put "payload":{"size":2}`: true, `06:00 start | 06:10 put "payload":{"size":2},"refresh":"planned"`: true,
		`06:00 start | 06:10 put "refresh":"now"`: true, `06:00 start | 06:10 put "policy":{"timeout":"2h"}`: false,
		`06:00 start | 06:05 taken | 06:10 put "payload":{"size":2}`:   false,
		`06:00 start | 06:05 started | 06:10 put "payload":{"size":2}`: true,
	} {
		s := tell(t, daily, steps)
		failIf(t, s.decision.MustBeQueued != must, "%s: must be queued: %v", steps, s.decision.MustBeQueued)
		failIf(t, must && (s.decision.Message != s.m.Entry() || s.m.Again || s.m.Outdated),
			"%s: the entry becomes %q, again %v, outdated %v", steps, s.decision.Message, s.m.Again, s.m.Outdated)
	}
}

func TestALateResultCountsWhileItsUIDIsCurrent(t *testing.T) {
	for steps, late := range map[string]bool{
		"06:00 start | 06:59:59.999 success": false, "06:00 start | 07:00 success": false, "06:00 start | 07:00:00.001 success": true,
		"06:00 start | 07:01 failure": true, "06:00 start | 07:01 interrupted": true, "06:00 start | 07:01 started": true,
		"06:00 start | 07:01 user_friendly_status \"status\":\"still here\"": false,
	} {
		s := tell(t, daily, steps)
		failIf(t, s.outcome != Applied || s.decision.Late != late,
			"%s: outcome %q, late %v; want it applied, late %v", steps, s.outcome, s.decision.Late, late)
	}
}

func TestAModelWhoseScheduleCannotBeReadLooksAgainAnHourLater(t *testing.T) {
	m := Model{UID: "tbl_1", Rule: "FREQ=GARBAGE", Fault: "rrule: …", Policy: policy.Default(), State: State{RefreshAt: monday}}
	m.State = m.Start(monday, "a1").Next
	decision := m.Succeed(monday.Add(time.Minute), nil)
	failIf(t, !decision.Next.RefreshAt.Equal(monday.Add(61*time.Minute)) || decision.Next.Why != "schedule unreadable: checked again then",
		"next %s: %s", decision.Next.RefreshAt, decision.Next.Why)
}

const (
	mondays   = `"rrule":"FREQ=WEEKLY;BYDAY=MO;BYHOUR=6","dtstart":"2026-01-01",`
	sixDaily  = `"rrule":"FREQ=DAILY;BYHOUR=6","dtstart":"2026-01-01",`
	threeDays = `"policy":{"timeout":"1h","retries":["1m"],"on_exhausted":"next_planned","give_up_after":"3d"}`
	anHour    = `"policy":{"timeout":"10m","retries":"30m","give_up_after":"1h"}`
)

func TestTheGiveUpWindowHasItsOwnWakeUp(t *testing.T) {
	const hopeless = "06:00 wake | 06:10 failure | 06:11 wake | 06:20 failure"
	runStories(t, []storyTest{
		// A retry that would come later, or exactly then
		{anHour, "00:00 wake | 00:10 failure", "#1, next 00:40: retry 1 after 30m"},
		{anHour, "00:00 wake | 00:10 failure | 00:40 wake | 00:45 failure", "#2, next 01:00: gives up then: no success for 1h"},
		{anHour, "00:00 wake | 00:30 failure", "#1, next 01:00: gives up then: no success for 1h"},
		{anHour, `00:00 wake | 00:01 failure "retry_after":"2h"`, "#1, next 01:00: gives up then: no success for 1h"},

		// Then it is disabled without an attempt
		{anHour, "00:00 wake | 00:30 failure | 01:00 wake", "#1 disabled (Cannot refresh after 1 attempt: no success for 1h): disabled, no success for 1h"},

		// A planned refresh that would come later
		{mondays + threeDays, hopeless, "#0, next 06:00+3: gives up then: no success for 3d"},
		{mondays + threeDays, hopeless + " | 06:00+3 wake", "#0 disabled (Cannot refresh: no success for 3d): disabled, no success for 3d"},
		{sixDaily + threeDays, hopeless, "#0, next 06:00+1: waits for planned after 2 failures"},

		// What is due at once behind the window starts, and does not give up
		{anHour, "00:00 wake | 00:25 failure | 00:55 wake | 01:02 interrupted | 01:02 wake", "#2 a3 until 01:12 deferred 1, next never: on timeout: disabled, no success for 1h"},

		// A failure in the window's last moment, and behind it
		{anHour, "00:00 wake | 00:59:59.999 failure", "#1, next 01:00: gives up then: no success for 1h"},
		{anHour, "00:00 wake | 01:00 failure", "#1 disabled (Cannot refresh after 1 attempt): disabled, no success for 1h"},

		// While an attempt runs the deadline wakes it
		{anHour, "00:00 wake | 00:10 failure | 00:40 wake | 00:41 failure | 01:00 enable", "#2, next 01:00: gives up then: no success for 1h"},
		{anHour, "00:00 wake | 00:29 failure | 00:59 wake", "#2 a2 until 01:09, next never: on timeout: disabled, no success for 1h"},
	})
}

// Only a wait for the end of the window ends in giving up, not any wait that ends at the same instant.
func TestAModelThatWasMendedGetsItsAttempt(t *testing.T) {
	weekly := mondays + `"policy":{"timeout":"1h","retries":["1m"],"on_exhausted":"next_planned","give_up_after":"1w"}`
	const failed = "06:00 wake | 06:10 failure | 06:11 wake | 06:20 failure"
	runStories(t, []storyTest{
		{weekly, failed, "#0, next 06:00+7: gives up then: no success for 1w"},
		{weekly, failed + " | 06:00+7 wake", "#0 disabled (Cannot refresh: no success for 1w): disabled, no success for 1w"},

		// Saved, or disabled and enabled, at an instant that puts the end of the new window on the next planned refresh
		{weekly, failed + ` | 06:00+1 disable | 06:00+7 enable | 06:00+14 wake`, "#1 a3 until 07:00+14, next never: on timeout: disabled, no success for 1w"},
		{weekly, failed + ` | 06:00+7 put "timezone":"Europe/London" | 06:00+7 wake`, "#1 a3 until 07:00+7, next 07:01+7: on timeout: retry 1 of 1 after 1m, ends before planned"},
	})
}

// The circuit of the queue holds giving up back; what starts instead waits as long as the worker has asked.
func TestTheOpenCircuitOfTheQueueAtTheEndOfAWindowKeepsTheFloorOfAWorker(t *testing.T) {
	s := tell(t, anHour, `00:00 wake | 00:30 failure "retry_after":"5h"`)
	s.m.QueueCircuit.Open = true
	s.then("01:00 wake")
	s.expect("#1, next 05:30: queue circuit open: waits as the worker asked")
	s.then("05:30 wake")
	failIf(t, !s.m.Running(), "want an attempt, got %s", s)
}

func TestOnlyAFailingModelIsSaidToGiveUp(t *testing.T) {
	for _, test := range []struct{ definition, steps, want string }{
		{anHour, "", "never"},
		{anHour, "00:00 wake", "never"}, // it has not failed yet
		{anHour, "00:00 wake | 00:10 failure", "01:00"},
		{anHour, "00:00 wake | 00:10 failure | 00:40 wake | 00:50 success", "never"},
		{anHour, "00:00 wake | 00:50 success | 01:00 run | 01:00 wake | 01:05 failure", "01:50"},
		{`"policy":{"retries":"30m"}`, "00:00 wake | 00:10 failure", "never"},
	} {
		s := tell(t, test.definition, test.steps)
		got := clockText(s.m.GivesUpAt())
		failIf(t, got != test.want, "%s: gives up at %s, want %s", test.steps, got, test.want)
	}
}

func TestGivingUpIsAFinalFailureWithoutAnAttempt(t *testing.T) {
	s := tell(t, anHour, "00:00 wake | 00:30 failure | 01:00 wake")
	d := s.decision
	failIf(t, d.Event != EventGiveUp || !d.Final || d.Notice != policy.NoticeDisabled || d.Muted || d.Ended != nil || d.Message != "" || s.starts != 1,
		"found %+v after %d starts", d, s.starts)
	failIf(t, !s.m.RefreshAt.IsZero() || s.m.Running() || !s.m.FinalFailureAt.Equal(clock("01:00")) || d.countedAttempt() != 0, "state %+v", s.m.State)
	s.then("02:00 run | 02:00 wake | 02:01 success")
	failIf(t, s.decision.Notice != policy.NoticeRecovered, "notice %q, want that of a recovery", s.decision.Notice)

	quiet := strings.Replace(anHour, `"timeout"`, `"notify":["recovered"],"disabled_reason":"thumbnail creation failed","timeout"`, 1)
	s = tell(t, quiet, "00:00 wake | 00:30 failure | 01:00 wake")
	s.expect("#1 disabled (thumbnail creation failed): disabled, no success for 1h")
	failIf(t, !s.decision.Muted, "the owner is told though the policy is silent")
}

func TestTheWindowCountsFromTheLastSuccessOrTheFirstStart(t *testing.T) {
	runStories(t, []storyTest{
		// Never started: nothing counts, however long nobody came for it
		{anHour, "05:00 wake | 05:10 failure", "#1, next 05:40: retry 1 after 30m"},

		// A start that was promised before the end is made, however late it is
		{anHour, "00:00 wake | 00:10 failure | 05:00 wake", "#2 a2 until 05:10, next never: on timeout: disabled, no success for 1h"},
		{anHour, "00:00 wake | 00:10 failure | 05:00 wake | 05:01 success", "#0, next never: finished: one-shot"},

		// The first start fixes the end, no later one moves it
		{anHour, "05:00 wake | 05:10 failure | 05:40 wake | 05:45 failure", "#2, next 06:00: gives up then: no success for 1h"},
		{anHour, "05:00 wake | 05:20 failure | 05:50 wake | 05:55 failure | 06:00 wake", "#2 disabled (Cannot refresh after 2 attempts: no success for 1h): disabled, no success for 1h"},
		{anHour, "00:00 wake | 00:10 failure | 00:40 wake | 00:50 success | 01:30 run | 01:30 wake | 01:35 failure", "#1, next 01:50: gives up then: no success for 1h"},
	})
}

func TestAnUpdateOrAHandBeginsTheWindowAnew(t *testing.T) {
	const given = "00:00 wake | 00:30 failure | 01:00 wake | "
	runStories(t, []storyTest{
		{anHour, given + "09:00 enable | 09:00 wake | 09:10 failure", "#1, next 09:40: retry 1 after 30m"},
		{anHour, given + "09:00 run | 09:00 wake | 09:10 failure", "#1, next 09:40: retry 1 after 30m"},
		{anHour, given + `09:00 put "payload":{"size":2} | 09:00 wake | 09:10 failure`, "#1, next 09:40: retry 1 after 30m"},
		{anHour, given + `09:00 put "refresh":"now" | 09:00 wake | 09:10 failure`, "#1, next 09:40: retry 1 after 30m"},

		// An update within the window
		{anHour, `00:00 wake | 00:30 failure | 00:50 put "payload":{"size":2} | 00:50 wake | 01:00 failure`, "#1, next 01:30: retry 1 after 30m"},

		// A request when the window has just ended, before the dispatcher came, gets an attempt
		{anHour, "00:00 wake | 00:30 failure | 01:00 run | 01:00 wake", "#1 a2 until 01:10, next 01:40: on timeout: retry 1 after 30m"},
		{anHour, `00:00 wake | 00:30 failure | 01:00 put "refresh":"now" | 01:00 wake`, "#1 a2 until 01:10, next 01:40: on timeout: retry 1 after 30m"},

		// A run within the window is an attempt like any other
		{anHour, "00:00 wake | 00:30 failure | 00:50 run | 00:50 wake | 00:51 failure", "#2, next 01:00: gives up then: no success for 1h"},
	})
}

// What begins anew waits for its schedule, also for longer than the window: it has not failed since.
func TestAWeeklyModelThatIsEnabledGetsItsAttempt(t *testing.T) {
	const given = "06:00 wake | 06:10 failure | 06:11 wake | 06:20 failure | 06:00+3 wake | "
	runStories(t, []storyTest{
		{mondays + threeDays, given + "07:00+3 enable", "#0, next 06:00+7: planned"},
		{mondays + threeDays, given + "07:00+3 enable | 06:00+7 wake", "#1 a3 until 07:00+7, next never: on timeout: disabled, no success for 3d"},
		{mondays + threeDays, "06:00 wake | 06:10 success | 06:00+7 wake | 06:10+7 success", "#0, next 06:00+14: planned"},
		{mondays + threeDays, "06:00 wake | 06:10 failure | 06:11 wake | 06:20 success | 09:00+7 wake", "#1 a3 until 10:00+7, next never: on timeout: disabled, no success for 3d"},
		{mondays + strings.Replace(threeDays, "3d", "1w", 1), "05:50 run | 05:50 wake | 06:00 success | 06:00+7 wake", "#1 a2 until 07:00+7, next never: on timeout: disabled, no success for 1w"},
		{mondays + threeDays, given + `07:00+3 put "payload":{"size":2} | 06:00+7 wake | 06:01+7 success`, "#0, next 06:00+14: planned"},
		{mondays + threeDays, `06:00 wake | 06:10 failure | 06:10 put "payload":{"size":2} | 06:00+7 wake | 06:01+7 success`, "#0, next 06:00+14: planned"},
	})
}

func TestTimeInTheInputListDoesNotCountAsTimeWithoutSuccess(t *testing.T) {
	runStories(t, []storyTest{
		{anHour, "00:00 wake | 00:10 withdraw | 00:10 wake | 00:20 withdraw | 00:20 wake | 00:45 failure", "#1, next 01:15: retry 1 after 30m"},
		{anHour, "00:00 wake | 00:20 failure | 00:50 wake | 09:00 withdraw | 09:00 wake | 09:05 failure", "#2, next 09:10: gives up then: no success for 1h"},
		{anHour, "00:00 wake | 00:10 success | 00:20 run | 00:20 wake | 09:20 withdraw | 09:20 wake | 09:25 failure", "#1, next 09:55: retry 1 after 30m"},
	})
}

// Nobody waits for a time behind the end of the window, whatever asked for it.
func TestNoWishOfAWorkerReachesBehindTheWindow(t *testing.T) {
	const skip = `"policy":{"timeout":"10m","retries":["next","next","next"],"give_up_after":"90m","misfire":"skip"}`
	const hourly = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05",`
	runStories(t, []storyTest{
		{anHour, `00:00 wake | 00:10 failure | 00:40 wake | 00:45 postponed "retry_after":"1d"`, "#1 deferred 1, next 01:00: gives up then: no success for 1h"},
		{anHour, `00:00 wake | 00:10 failure | 00:40 wake | 00:45 postponed "retry_after":"10m"`, "#1 deferred 1, next 00:55: postponed by the worker: again after 10m"},
		{anHour, `00:00 wake | 00:10 postponed "retry_after":"1d"`, "#0 deferred 1, next 00:10+1: postponed by the worker: again after 1d"}, // has not failed
		{hourly + skip, "01:00 wake | 01:05 failure", "#1, next 02:00: retry 1 of 3 waits for planned"},
		{hourly + skip, "01:00 wake | 01:05 failure | 02:05 wake", "#1, next 02:30: gives up then: no success for 1h30m"},
	})
}

// N retries are N+1 runs, no matter who runs them.
func TestARunByHandAfterExhaustionBeginsANewCycle(t *testing.T) {
	const exhausted = "06:00 wake | 06:10 failure | 06:11 wake | 06:20 failure | "
	tell(t, mondays+threeDays, exhausted+"07:00 run | 07:00 wake").expect("#1 a3 until 08:00, next 08:01: on timeout: retry 1 of 1 after 1m, ends before planned")
}

func TestAModelWithoutTimeoutIsWaitedForUntilItsWindowEnds(t *testing.T) {
	const waits = `"policy":{"timeout":"none","retries":"30m","give_up_after":"1h"}`
	runStories(t, []storyTest{
		{waits, "00:00 wake", "#1 a1 until 01:00, next never: on timeout: disabled, no success for 1h"},
		{waits, "00:00 wake | 01:00 timeout", "#1 disabled (Cannot refresh after 1 attempt: timeout): disabled, no success for 1h"},
		{sixDaily + waits, "06:00 wake", "#1 a1 until 07:00, next never: on timeout: disabled, no success for 1h"},
	})
}

// A worker that postpones its attempt again and again fails at last, but says nothing of the host.
func TestTooManyDeferralsSayNothingOfACircuit(t *testing.T) {
	for _, on := range []string{"", `,"on":["http_5xx"]`} {
		s := tell(t, `"policy":{"timeout":"1h","retries":["1m"],"circuit":{"key":"{policy}","open_after":"1 of 1"`+on+`}}`, "")
		now := monday
		for range maxDeferrals + 1 {
			s.do(now, "wake", "")
			s.do(now, "postponed", `"retry_after":60`)
			now = s.m.RefreshAt
			failIf(t, s.decision.CircuitOutcome != CircuitUnsettled, "%s says %q of the circuit", s.decision.Event, s.decision.CircuitOutcome)
		}
		failIf(t, s.decision.Event != EventFailure, "want the last one failed, got %s", s.decision.Event)
	}
}
