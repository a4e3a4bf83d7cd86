package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func misfiring(rule string) string {
	return atSixAnd16 + `"policy":{"timeout":"1h","retries":["5m","5m"],"misfire":"` + rule + `"}`
}

// The planned refresh of 06:00 was missed: nothing ran.
func TestAMissedPlannedRefreshIsRunOnceOrSkipped(t *testing.T) {
	const (
		started = "#1 a1 until "
		skipped = "#0, next 16:00: misfire: skipped, late by "
	)
	runStories(t, []storyTest{
		{misfiring("run_once"), "09:00+30 wake", started + "10:00+30, next 10:05+30: if lost: retry 1/2 +5m, before planned"},

		// What starts within a minute was not missed
		{misfiring("skip"), "06:01 wake", started + "07:01, next 07:06: if lost: retry 1/2 +5m, before planned"},
		{misfiring("skip"), "06:01:00.001 wake", skipped + "1m"},

		{misfiring("run_if_younger_than 1h"), "07:00:00.001 wake", skipped + "1h"},
		{misfiring("run_if_younger_than 0s"), "06:00:00.001 wake", skipped + "0s"},

		// Many were missed: the next one is that after now
		{misfiring("skip"), "09:00+30 wake", "#0, next 16:00+30: misfire: skipped, late by 30d3h"},
	})
	d := tell(t, misfiring("skip"), "09:00 wake").decision
	if d.Event != EventSkipped || d.Ended != nil || d.Message != "" || d.Notice != policy.NoticeNone || d.Final || d.CountedAttempt() != 0 {
		t.Errorf("found %+v", d)
	}
}

func TestOnlyPlannedRefreshesAreSkipped(t *testing.T) {
	const last = `"rrule":"FREQ=DAILY;BYHOUR=6;UNTIL=20260105T060000Z","dtstart":"2026-01-01","policy":{"timeout":"1h","retries":[],"misfire":"skip"}`
	late := "#1 a1 until "
	runStories(t, []storyTest{
		// A one-shot, a run by hand, a save
		{`"policy":{"timeout":"1h","retries":[],"misfire":"skip"}`, "09:00 wake", late + "10:00, next never: if lost: final: exhausted, none planned"},
		{misfiring("skip"), "07:00 run | 09:00 wake", late + "10:00, next 10:05: if lost: retry 1/2 +5m, before planned"},

		// A retry, a postponed and an interrupted attempt
		{misfiring("skip"), "06:00 wake | 06:10 failure | 09:00 wake", "#2 a2 until 10:00, next 10:05: if lost: retry 2/2 +5m, before planned"},
		{misfiring("skip"), `06:00 wake | 06:10 postponed "retry_after":600 | 09:00 wake`, "#1 a2 until 10:00 deferred 1, next 10:05: if lost: retry 1/2 +5m, before planned"},

		// The last one of a schedule: nothing comes after it
		{last, "09:00 wake", late + "10:00, next never: if lost: final: exhausted, none planned"},
	})
}

// A retry may start at the very instant of a planned refresh: it is a retry all the same.
func TestARetryAtThePlannedInstantIsNeverSkipped(t *testing.T) {
	untilSuccess := atSixAnd16 + `"policy":{"timeout":"1h","retries":["5m"],"on_exhausted":"give_up","alignment":"until_success","misfire":"skip"}`
	runStories(t, []storyTest{
		{untilSuccess, "15:00 run | 15:00 wake | 15:55 failure | 17:00 wake", "#2 a2 until 18:00, next never: if lost: final: exhausted after 2"},
	})
}

// An attempt that nobody takes is offered again, but not for ever: what it was started for is missed like any other planned refresh.
func TestAPlannedRefreshIsMissedWhileWorkersAreAwayToo(t *testing.T) {
	runStories(t, []storyTest{
		{misfiring("skip"), "06:00 wake | 07:00 withdraw | 07:00 wake", "#0, next 16:00: misfire: skipped, late by 1h"},
		{misfiring("run_if_younger_than 2h"), "06:00 wake | 07:00 withdraw | 07:00 wake | 08:00 withdraw | 08:00 wake | 09:00 withdraw | 09:00 wake",
			"#0, next 16:00: misfire: skipped, late by 3h"},
		{misfiring("skip"), "05:00 run | 05:00 wake | 06:00 withdraw | 08:00 wake", "#1 a2 until 09:00, next 09:05: if lost: retry 1/2 +5m, before planned"},
	})
	if s := tell(t, misfiring("skip"), "06:00 wake | 06:01 started"); !s.m.PlannedFor.IsZero() {
		t.Errorf("what a worker has begun is missed no more: %+v", s.m.State)
	}
}

// A planned refresh that stands for a retry is a planned refresh: the number of the next attempt is kept.
func TestAPlannedRefreshThatTookThePlaceOfARetryIsSkippedToo(t *testing.T) {
	runStories(t, []storyTest{
		{misfiring("skip"), "15:00 run | 15:00 wake | 15:50 failure | 17:00 wake", "#1, next 06:00+1: misfire: skipped, late by 1h"},
		{misfiring("skip"), "15:00 run | 15:00 wake | 15:50 failure | 17:00 wake | 06:00+1 wake", "#2 a2 until 07:00+1, next 07:05+1: if lost: retry 2/2 +5m, before planned"},
	})
}

func TestASpreadRefreshIsMissedByItsOwnTime(t *testing.T) {
	spreading := strings.Replace(misfiring("skip"), `"misfire"`, `"spread":"1h","misfire"`, 1)
	s := tell(t, spreading, "")
	at := s.m.RefreshAt
	s.do(at.Add(time.Minute), "wake", "")
	if !s.m.Running() {
		t.Errorf("a minute late: %s", s)
	}
	s = tell(t, spreading, "")
	s.do(at.Add(61*time.Second), "wake", "")
	if s.m.Running() || !s.m.RefreshAt.Equal(at.Add(10*time.Hour)) {
		t.Errorf("61 seconds late: %s", s)
	}
}
