package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// A lost result is followed by the retry that the policy wants. Where nothing would follow, the deadline wakes the model.
func TestAStartExpectsItsTimeout(t *testing.T) {
	const toTheLast = "06:00 start | 06:00 failure | 06:00 start | 06:00 failure | 06:01 start | 06:01 failure | 06:06 start | 06:06 failure | " +
		"06:21 start | 06:21 failure | 06:51 start | 06:51 failure | 07:51 start"
	runStories(t, []storyTest{
		// What a timeout at the deadline would decide
		{daily, "06:00 start", "#1 a1 until 07:00, next 07:00: on timeout: retry 1 of 6 at once, ends before planned"},
		{daily, "06:00 start | 06:10 failure | 06:10 start", "#2 a2 until 07:10, next 07:11: on timeout: retry 2 of 6 after 1m, ends before planned"},

		// Joined with the schedule
		{daily, "14:00 run | 14:00 start", "#1 a1 until 15:00, next 15:00: on timeout: retry 1 of 6 at once, ends before planned"},
		{daily, "14:01 run | 14:01 start", "#1 a1 until 15:01, next 16:00: on timeout: retry 1 of 6 waits for planned, would overlap"},
		{daily, "15:30 run | 15:30 start", "#1 a1 until 16:30, next 16:30: on timeout: retry 1 of 6 at once, ends before planned"},

		// A timeout that would be final: nothing is expected but the deadline
		{daily, toTheLast, "#7 a7 until 08:51, next never: on timeout: disabled after 7 failures, no retry left"},
		{lenient, toTheLast, "#7 a7 until 08:51, next 16:00: on timeout: waits for planned after 7 failures"},
		{banner, "00:00 start", "#1 a1 until 00:01, next 00:01: on timeout: retry 1 of 3 at once"},

		// Timeout longer than the interval: refreshes do not overlap each other
		{halfHour, "00:30 start", "#1 a1 until 01:30, next 02:00: on timeout: retry 1 of 6 waits for planned, would overlap"},

		// A missed time starts once, and everything counts from now
		{daily, "09:00+3 start", "#1 a1 until 10:00+3, next 10:00+3: on timeout: retry 1 of 6 at once, ends before planned"},
	})
}

func TestAStartCountsAndForgetsTheStatusOfTheLastAttempt(t *testing.T) {
	s := tell(t, daily, `06:00 start | 06:01 user_friendly_status "status":"50 rows","progress":50 | 06:02 failure`)
	failIf(t, s.m.UserFriendlyStatus != "50 rows" || s.m.Progress != 50,
		"after the failure the owner reads %q, %d %%", s.m.UserFriendlyStatus, s.m.Progress)
	s.then("06:02 start")
	failIf(t, s.m.UserFriendlyStatus != "" || s.m.Progress != 0 || s.m.AttemptNo != 2 || !s.m.StartedAt.Equal(clock("06:02")),
		"the start left %+v", s.m.State)
}

// A backlog must not time out attempts that have never begun.
func TestTheDeadlineCountsFromTheFirstStarted(t *testing.T) {
	runStories(t, []storyTest{
		{daily, `06:00 start | 06:20 started`, "#1 a1 until 07:20, next 07:20: on timeout: retry 1 of 6 at once, ends before planned"},
		{daily, `06:00 start | 06:20 started | 06:40 started`, "#1 a1 until 07:20, next 07:20: on timeout: retry 1 of 6 at once, ends before planned"},
		{daily, `06:00 start | 06:20 started | 06:30 failure | 06:30 start | 06:31 started`, "#2 a2 until 07:31, next 07:32: on timeout: retry 2 of 6 after 1m, ends before planned"},

		// Nobody has noticed that the deadline passed: the work begins after all
		{daily, `06:00 start | 07:30 started`, "#1 a1 until 08:30, next 08:30: on timeout: retry 1 of 6 at once, ends before planned"},

		// The expectation moves with the deadline, joined with the schedule again
		{daily, `14:00 run | 14:00 start | 14:01 started`, "#1 a1 until 15:01, next 16:00: on timeout: retry 1 of 6 waits for planned, would overlap"},
		{daily, `06:00 start | 06:05 taken | 06:10 put "refresh":"now" | 06:20 started`, "#1 a1 until 07:20 again, next 07:20: saved while running: again"},
	})
	s := tell(t, daily, `06:00 start | 06:20 started "worker":"host-1","processing_id":7 | 06:40 started "worker":"host-2"`)
	failIf(t, s.outcome != Duplicate || s.m.Worker != "host-1" || !s.m.ProcessingAt.Equal(clock("06:20")),
		"outcome %q, worker %q since %s", s.outcome, s.m.Worker, clockText(s.m.ProcessingAt))
}

func TestWithoutTimeoutThePlannedRefreshTakesThePlaceOfTheAttempt(t *testing.T) {
	const (
		twice = `"rrule":"FREQ=DAILY;BYHOUR=6,16","dtstart":"2026-01-01",`
		none  = twice + `"policy":{"timeout":"none","retries":["5m","5m"],"on_exhausted":"give_up"}`
	)
	runStories(t, []storyTest{
		// Two variables: no deadline but the next planned time
		{none, "06:00 wake", "#1 a1 until 16:00, next 16:00: on timeout: retry 1 of 2 at once, no answer until planned"},
		{none, "06:00 wake | 16:00 timeout", "#1, next 16:00: retry 1 of 2 at once, no answer until planned"},
		{none, "06:00 wake | 16:00 timeout | 16:00 wake", "#2 a2 until 06:00+1, next 06:00+1: on timeout: retry 2 of 2 at once, no answer until planned"},
		{none, "06:00 wake | 16:00 timeout | 16:00 wake | 06:00+1 timeout | 06:00+1 wake", "#3 a3 until 16:00+1, next never: on timeout: disabled after 3 failures, no retry left"},
		{none, "06:00 wake | 07:00 failure", "#1, next 07:05: retry 1 of 2 after 5m, ends before planned"},
		{none, "06:00 wake | 15:00 started", "#1 a1 until 16:00, next 16:00: on timeout: retry 1 of 2 at once, no answer until planned"},

		// Nobody noticed the planned time until later
		{none, "06:00 wake | 18:00 timeout", "#1, next 18:00: retry 1 of 2 at once, no answer until planned"},

		// No retry is left: the planned refresh runs all the same, or the model gives up
		{twice + `"policy":{"timeout":"none","retries":[]}`, "06:00 wake", "#1 a1 until 16:00, next 16:00: on timeout: planned is due now after 1 failure"},
		{twice + `"policy":{"timeout":"none","retries":[]}`, "06:00 wake | 16:00 timeout", "#0, next 16:00: planned is due now after 1 failure"},
		{twice + `"policy":{"timeout":"none","retries":[],"on_exhausted":"give_up"}`, "06:00 wake | 16:00 timeout", "#1 disabled (Cannot refresh after 1 attempt: timeout): disabled after 1 failure, no retry left"},
		{twice + `"policy":{"timeout":"none","retries":["5m"],"never_retry":["timeout"]}`, "06:00 wake | 16:00 timeout",
			"#1 disabled (Cannot refresh after 1 attempt: timeout): disabled, never retry timeout"},

		// Between planned, it begins a new cycle
		{twice + `"policy":{"timeout":"none","retries":["5m"],"alignment":"between_planned"}`, "06:00 wake | 16:00 timeout", "#0, next 16:00: retry 1 of 1 at once, no answer until planned"},
	})
}

func TestWithoutTimeoutAndPlanNothingEndsTheWaitButTheWindow(t *testing.T) {
	runStories(t, []storyTest{
		{`"policy":{"timeout":"none","retries":[]}`, "00:00 wake", "#1 a1 until 00:00+3650, next never: on timeout: disabled after 1 failure, nothing planned"},
		{`"policy":{"timeout":"none","give_up_after":"2d","retries":["1m"]}`, "00:00 wake", "#1 a1 until 00:00+2, next never: on timeout: disabled, no success for 2d"},
		{atSixteen + `"policy":{"timeout":"none","give_up_after":"2d","retries":["1m","1m","1m"]}`, "16:00 wake | 16:00+1 timeout | 16:00+1 wake",
			"#2 a2 until 16:00+2, next never: on timeout: disabled, no success for 2d"},
		{atSixteen + `"policy":{"timeout":"none","give_up_after":"2d","retries":["1m","1m","1m"]}`, "15:00 run | 15:00 wake | 16:00 timeout",
			"#1, next 16:00: retry 1 of 3 at once, no answer until planned"},
	})
}

// The deadline of the queue counts until a worker says `started`, the deadline of the work from then on.
const queued = `"policy":{"timeout":"1h","queue_timeout":"10m","retries":["1m"],"on_exhausted":"give_up"}`

func TestAnAttemptThatNobodyBeginsInTimeIsDueAgainAndNotCounted(t *testing.T) {
	runStories(t, []storyTest{
		{queued, "00:00 wake", "#1 a1 until 00:10, next 00:10: if not begun: again, not counted"},
		{queued, "00:00 wake | 00:10 timeout", "#0 deferred 1, next 00:10: not begun in time: again"},
		{queued, "00:00 wake | 00:10 timeout | 00:10 wake", "#1 a2 until 00:20 deferred 1, next 00:20: if not begun: again, not counted"},
		{queued, "00:00 wake | 00:05 user_friendly_status \"status\":\"waiting\" | 00:10 timeout", "#0 deferred 1, next 00:10: not begun in time: again"},
		{queued, "00:00 wake | 00:02 failure | 00:03 wake | 00:13 timeout", "#1 deferred 1, next 00:13: not begun in time: again"},
		{queued, "00:00 wake | 00:10 withdraw", "#0, next 00:10: withdrawn: no worker took it"},
	})
	d := tell(t, queued, "00:00 wake | 00:10 timeout").decision
	failIf(t, d.Event != EventQueueTimeout || d.countedAttempt() != 0 || !d.Next.FailingSince.IsZero(), "found %+v", d)
}

func TestFromStartedOnTheTimeoutOfTheWorkHolds(t *testing.T) {
	runStories(t, []storyTest{
		{queued, "00:00 wake | 00:09 started", "#1 a1 until 01:09, next 01:10: on timeout: retry 1 of 1 after 1m"},
		{queued, "00:00 wake | 00:09 started | 01:09 timeout", "#1, next 01:10: retry 1 of 1 after 1m"},

		// Late, but nobody had noticed: the work has begun after all
		{queued, "00:00 wake | 00:11 started", "#1 a1 until 01:11, next 01:12: on timeout: retry 1 of 1 after 1m"},

		// Workers that never say so may end in time
		{queued, "00:00 wake | 00:09 success", "#0, next never: finished: one-shot"},

		// Without a queue timeout `started` moves the deadline as well
		{strings.Replace(queued, `"queue_timeout":"10m",`, "", 1), "00:00 wake | 00:09 started", "#1 a1 until 01:09, next 01:10: on timeout: retry 1 of 1 after 1m"},

		// Work without a timeout
		{`"policy":{"timeout":"none","queue_timeout":"10m"}`, "00:00 wake", "#1 a1 until 00:10, next 00:10: if not begun: again, not counted"},
		{atSixteen + `"policy":{"timeout":"none","queue_timeout":"10m","retries":["1m"]}`, "06:00 run | 06:00 wake | 06:09 started",
			"#1 a1 until 16:00, next 16:00: on timeout: retry 1 of 1 at once, no answer until planned"},
	})
}

const officeHours = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16"

func TestAWindowMovesARetryBeforeItIsJoinedWithTheSchedule(t *testing.T) {
	at := func(hour int, more string) string {
		return fmt.Sprintf(`"rrule":"FREQ=DAILY;BYHOUR=%d","dtstart":"2026-01-01","policy":{"timeout":"1h","retries":["10m"],"retry_window":%q%s}`, hour, officeHours, more)
	}
	runStories(t, []storyTest{
		{at(6, ""), "06:00 wake | 06:10 failure", "#1, next 09:00: retry 1 of 1 when its window opens, ends before planned"},
		{at(6, ""), "17:00 run | 17:00 wake | 17:10 failure", "#1, next 06:00+1: retry 1 of 1 waits for planned, which comes first"},
		{at(6, `,"alignment":"until_success"`), "17:00+4 run | 17:00+4 wake | 17:10+4 failure", "#1, next 09:00+7: retry 1 of 1 when its window opens, in place of planned"},

		// The planned refresh itself, and a wait for it, need no window
		{at(6, ""), "06:00 wake | 06:10 success", "#0, next 06:00+1: planned"},
		{`"rrule":"FREQ=DAILY;BYHOUR=6","dtstart":"2026-01-01","policy":{"retries":["next"],"retry_window":"` + officeHours + `"}`, "06:00 wake | 06:01 failure", "#1, next 06:00+1: retry 1 of 1 waits for planned"},

		// A wish of the worker is moved too
		{at(6, ""), `10:00 run | 10:00 wake | 10:10 failure "retry_after":"8h"`, "#1, next 06:00+1: retry 1 of 1 waits for planned, which comes first"},

		// In the zone of the model
		{`"timezone":"America/New_York",` + at(6, ""), "11:00 wake | 11:10 failure", "#1, next 14:00: retry 1 of 1 when its window opens, ends before planned"},
		// … or of the policy, for a one-shot
		{`"policy":{"retries":["10m"],"timezone":"America/New_York","retry_window":"` + officeHours + `"}`, "00:00 wake | 00:05 failure", "#1, next 14:00: retry 1 of 1 when its window opens"},
	})
}

// A retry starts inside its window, whatever held it up: a dispatcher that was away, workers, or the circuit of the queue.
func TestARetryThatWasHeldUpWaitsForItsWindowAgain(t *testing.T) {
	const inOffice = `"rrule":"FREQ=DAILY;BYHOUR=6","dtstart":"2026-01-01","policy":{"timeout":"30m","retries":["10m","10m"],"on_exhausted":"next_planned","retry_window":"` + officeHours + `"`
	const untilSuccess = `,"alignment":"until_success"}`
	const failed = "06:00 wake | 06:10 failure | "
	runStories(t, []storyTest{
		{inOffice + `}`, failed + "16:59:59.999 wake", "#2 a2 until 17:29:59.999, next 06:00+1: on timeout: retry 2 of 2 waits for planned"},
		{inOffice + `}`, failed + "17:00 wake", "#1, next 06:00+1: retry window closed: waits for planned"},
		{inOffice + untilSuccess, failed + "17:00 wake", "#1, next 09:00+1: retry window closed: waits until it opens"},
		{inOffice + untilSuccess, failed + "17:00 wake | 09:00+1 wake", "#2 a2 until 09:30+1, next 09:40+1: on timeout: retry 2 of 2 after 10m, ends before planned"},
		{inOffice + `}`, failed + "16:50 wake | 17:20 withdraw | 17:20 wake", "#1, next 06:00+1: retry window closed: waits for planned"},

		// For so long nobody could try, so that it does not count towards giving up
		{inOffice + `,"give_up_after":"20h"` + untilSuccess, failed + "17:00 wake | 09:00+1 wake", "#2 a2 until 09:30+1, next 09:40+1: on timeout: retry 2 of 2 after 10m, ends before planned"},
		{inOffice + `}`, "17:00 wake", "#1 a1 until 17:30, next 06:00+1: on timeout: retry 1 of 2 waits for planned"},

		// What is planned or wanted by a hand, and what a worker has put off, needs no window
		{inOffice + `}`, failed + "17:00 run | 17:00 wake", "#2 a2 until 17:30, next 06:00+1: on timeout: retry 2 of 2 waits for planned"},
		{inOffice + `}`, failed + `09:00 wake | 09:01 postponed "retry_after":"9h" | 18:01 wake`, "#2 a3 until 18:31 deferred 1, next 06:00+1: on timeout: retry 2 of 2 waits for planned"},
	})
	s := tell(t, inOffice+untilSuccess, failed+"17:00 wake")
	failIf(t, s.decision.Event != EventSkipped || s.m.Trigger != TriggerRetry,
		"found %s as %q: want it skipped, and a retry still", s.decision.Event, s.m.Trigger)
}

func misfiring(rule string) string {
	return atSixAnd16 + `"policy":{"timeout":"1h","retries":["5m","5m"],"misfire":"` + rule + `"}`
}

// The planned refresh of 06:00 was missed: nothing ran.
func TestAMissedPlannedRefreshIsRunOnceOrSkipped(t *testing.T) {
	const (
		started = "#1 a1 until "
		skipped = "#0, next 16:00: skipped, late by "
	)
	runStories(t, []storyTest{
		{misfiring("run_if_younger_than 1h"), "07:00 wake", started + "08:00, next 08:05: on timeout: retry 1 of 2 after 5m, ends before planned"},
		{misfiring("run_if_younger_than 1h"), "07:00:00.001 wake", skipped + "1h: waits for planned"},
		{misfiring("run_if_younger_than 0s"), "06:00 wake", started + "07:00, next 07:05: on timeout: retry 1 of 2 after 5m, ends before planned"},
		{misfiring("run_if_younger_than 0s"), "06:00:00.001 wake", skipped + "0s: waits for planned"},
		{misfiring("skip"), "16:00 wake", started + "17:00, next 17:05: on timeout: retry 1 of 2 after 5m, ends before planned"}, // that one is on time
		{misfiring("skip"), "16:01:01 wake", "#0, next 06:00+1: skipped, late by 10h1m: waits for planned"},
		{misfiring("run_once"), "09:00+30 wake", started + "10:00+30, next 10:05+30: on timeout: retry 1 of 2 after 5m, ends before planned"},

		// What starts within a minute was not missed
		{misfiring("skip"), "06:01 wake", started + "07:01, next 07:06: on timeout: retry 1 of 2 after 5m, ends before planned"},
		{misfiring("skip"), "06:01:00.001 wake", skipped + "1m: waits for planned"},

		// Many were missed: the next one is that after now
		{misfiring("skip"), "09:00+30 wake", "#0, next 16:00+30: skipped, late by 30d3h: waits for planned"},
		{misfiring("skip"), "09:00+30 wake | 16:00+30 wake", started + "17:00+30, next 17:05+30: on timeout: retry 1 of 2 after 5m, ends before planned"},
	})
	d := tell(t, misfiring("skip"), "09:00 wake").decision
	failIf(t, d.Event != EventSkipped || d.Ended != nil || d.Message != "" || d.Notice != policy.NoticeNone || d.Final || d.countedAttempt() != 0,
		"found %+v", d)
}

func TestOnlyPlannedRefreshesAreSkipped(t *testing.T) {
	const last = `"rrule":"FREQ=DAILY;BYHOUR=6;UNTIL=20260105T060000Z","dtstart":"2026-01-01","policy":{"timeout":"1h","retries":[],"misfire":"skip"}`
	late := "#1 a1 until "
	runStories(t, []storyTest{
		// A one-shot, a run by hand, a save
		{`"policy":{"timeout":"1h","retries":[],"misfire":"skip"}`, "09:00 wake", late + "10:00, next never: on timeout: disabled after 1 failure, nothing planned"},
		{misfiring("skip"), "07:00 run | 09:00 wake", late + "10:00, next 10:05: on timeout: retry 1 of 2 after 5m, ends before planned"},
		{misfiring("skip"), `07:00 put "refresh":"now" | 09:00 wake`, late + "10:00, next 10:05: on timeout: retry 1 of 2 after 5m, ends before planned"},

		// A retry, a postponed and an interrupted attempt
		{misfiring("skip"), "06:00 wake | 06:10 failure | 09:00 wake", "#2 a2 until 10:00, next 10:05: on timeout: retry 2 of 2 after 5m, ends before planned"},
		{misfiring("skip"), `06:00 wake | 06:10 postponed "retry_after":600 | 09:00 wake`, "#1 a2 until 10:00 deferred 1, next 10:05: on timeout: retry 1 of 2 after 5m, ends before planned"},

		// The last one of a schedule: nothing comes after it
		{last, "09:00 wake", late + "10:00, next never: on timeout: disabled after 1 failure, nothing planned"},
	})
}

// A retry may start at the very instant of a planned refresh: it is a retry all the same.
func TestARetryAtThePlannedInstantIsNeverSkipped(t *testing.T) {
	untilSuccess := atSixAnd16 + `"policy":{"timeout":"1h","retries":["5m"],"on_exhausted":"give_up","alignment":"until_success","misfire":"skip"}`
	runStories(t, []storyTest{
		{untilSuccess, "15:00 run | 15:00 wake | 15:55 failure", "#1, next 16:00: retry 1 of 1 after 5m, in place of planned"},
		{untilSuccess, "15:00 run | 15:00 wake | 15:55 failure | 17:00 wake", "#2 a2 until 18:00, next never: on timeout: disabled after 2 failures, no retry left"},
	})
}

// An attempt that nobody takes is offered again, but not for ever: what it was started for is missed like any other planned refresh.
func TestAPlannedRefreshIsMissedWhileWorkersAreAwayToo(t *testing.T) {
	runStories(t, []storyTest{
		{misfiring("skip"), "06:00 wake | 07:00 withdraw | 07:00 wake", "#0, next 16:00: skipped, late by 1h: waits for planned"},
		{misfiring("run_if_younger_than 2h"), "06:00 wake | 07:00 withdraw | 07:00 wake | 08:00 withdraw | 08:00 wake | 09:00 withdraw | 09:00 wake",
			"#0, next 16:00: skipped, late by 3h: waits for planned"},
		{misfiring("run_once"), "06:00 wake | 07:00 withdraw | 07:00 wake", "#1 a2 until 08:00, next 08:05: on timeout: retry 1 of 2 after 5m, ends before planned"},
		{misfiring("skip"), "05:00 run | 05:00 wake | 06:00 withdraw | 08:00 wake", "#1 a2 until 09:00, next 09:05: on timeout: retry 1 of 2 after 5m, ends before planned"},
	})
	s := tell(t, misfiring("skip"), "06:00 wake | 06:01 started")
	failIf(t, !s.m.PlannedFor.IsZero(), "what a worker has begun is missed no more: %+v", s.m.State)
}

// A planned refresh that replaces a retry is a planned refresh: the number of the next attempt is kept.
func TestAPlannedRefreshThatTookThePlaceOfARetryIsSkippedToo(t *testing.T) {
	runStories(t, []storyTest{
		{misfiring("skip"), "15:00 run | 15:00 wake | 15:50 failure", "#1, next 16:00: retry 1 of 2 waits for planned, would overlap"},
		{misfiring("skip"), "15:00 run | 15:00 wake | 15:50 failure | 17:00 wake", "#1, next 06:00+1: skipped, late by 1h: waits for planned"},
		{misfiring("skip"), "15:00 run | 15:00 wake | 15:50 failure | 17:00 wake | 06:00+1 wake", "#2 a2 until 07:00+1, next 07:05+1: on timeout: retry 2 of 2 after 5m, ends before planned"},
	})
}

func TestASpreadRefreshIsMissedByItsOwnTime(t *testing.T) {
	spreading := strings.Replace(misfiring("skip"), `"misfire"`, `"spread":"1h","misfire"`, 1)
	s := tell(t, spreading, "")
	at := s.m.RefreshAt
	s.do(at.Add(time.Minute), "wake", "")
	failIf(t, !s.m.Running(), "a minute late: %s", s)
	s = tell(t, spreading, "")
	s.do(at.Add(61*time.Second), "wake", "")
	failIf(t, s.m.Running() || !s.m.RefreshAt.Equal(at.Add(10*time.Hour)), "61 seconds late: %s", s)
}

func TestTenAttemptsThatNobodyBeganAreFreeAndTheNextIsAFailure(t *testing.T) {
	s := tell(t, queued, "")
	now := monday
	for i := range maxDeferrals {
		s.do(now, "wake", "")
		now = s.m.DeadlineAt
		s.do(now, "timeout", "")
		stopIf(t, s.m.AttemptNo != 0 || s.m.Deferrals != i+1, "after %d: %s", i+1, s)
	}
	s.do(now, "wake", "")
	now = s.m.DeadlineAt
	s.do(now, "timeout", "")
	s.expect("#1, next 01:51: retry 1 of 1 after 1m")
	ended := s.decision.Ended
	failIf(t, ended.Outcome != EventFailure || ended.Reason != "queue_timeout 11 times in a row; 10 are allowed", "the history says %+v", ended)
	for range maxDeferrals + 1 { // the count began anew
		now = s.m.RefreshAt
		s.do(now, "wake", "")
		now = s.m.DeadlineAt
		s.do(now, "timeout", "")
	}
	s.expect("#2 disabled (Cannot refresh after 2 attempts: queue_timeout 11 times in a row; 10 are allowed): disabled after 2 failures, no retry left")
}

func TestAWindowInAZoneThatDoesNotExistIsRefused(t *testing.T) {
	p := policyOf(t, `{"retry_window":"FREQ=DAILY;BYHOUR=9"}`)
	err := (&Model{UID: "t", Timezone: "Mars/Base"}).Resolve(p, schedule.Parse)
	failIf(t, refusedField(err) != "timezone", "found %v", err)
}
