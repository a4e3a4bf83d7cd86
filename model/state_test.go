package model

import (
	"testing"
	"time"
)

func TestTheStatusTellsWhatAModelIsDoing(t *testing.T) {
	for _, test := range []struct {
		definition, steps, at string
		queued                bool
		want                  Status
	}{
		{daily, "", "05:59:59.999", false, StatusScheduled},
		{daily, "", "06:00", false, StatusDue}, // at, not after
		{daily, "", "09:00+3", false, StatusDue},
		{daily, "06:00 start", "06:00", true, StatusQueued}, {daily, "06:00 start", "06:00", false, StatusProcessing},
		{daily, "06:00 start | 06:01 started", "06:01", false, StatusProcessing},
		{daily, "06:00 start | 06:01 started", "06:01", true, StatusProcessing}, // the worker peeked, or put it back
		{daily, "06:00 start | 06:10 failure", "06:10", false, StatusDue},
		{daily, `06:00 start | 06:10 failure "retryable":false`, "06:10", false, StatusDisabled},
		{daily, "05:00 disable", "06:00", false, StatusDisabled},
		{banner, "00:00 start | 00:00:10 success", "00:01", false, StatusFinished},
	} {
		s := tell(t, test.definition, test.steps)
		got := s.m.Status(clock(test.at), test.queued)
		failIf(t, got != test.want, "%s at %s: %s, want %s", test.steps, test.at, got, test.want)
	}
}

func TestAModelIsDueOnlyWhileItIsIdleAndEnabled(t *testing.T) {
	for _, test := range []struct {
		state State
		due   bool
	}{
		{State{RefreshAt: monday}, true}, {State{RefreshAt: monday.Add(time.Millisecond)}, false}, {State{}, false},
		{State{RefreshAt: monday, AttemptUID: "a1"}, false}, {State{RefreshAt: monday, Disabled: true}, false},
	} {
		got := test.state.Due(monday)
		failIf(t, got != test.due, "%+v: due %v", test.state, got)
	}
}

func TestAWaitingModelStandsInOneIndexAndARunBeforeWhatElseIsUrgent(t *testing.T) {
	for _, test := range []struct {
		state               State
		due, urgent, parked time.Time
	}{
		{State{RefreshAt: monday}, monday, time.Time{}, time.Time{}},
		{State{RefreshAt: monday, Trigger: TriggerHand}, time.Time{}, monday, time.Time{}},
		{State{RefreshAt: monday, Trigger: TriggerRun}, time.Time{}, monday.Add(-RunAhead), time.Time{}},
		{State{RefreshAt: monday, Trigger: TriggerRun, ParkedBy: "hold:h"}, time.Time{}, time.Time{}, monday},
		{State{RefreshAt: monday, AttemptUID: "a1"}, time.Time{}, time.Time{}, time.Time{}},
	} {
		if got, want := test.state.Scores(), (Scores{Due: test.due, Urgent: test.urgent, Parked: test.parked}); got != want {
			t.Errorf("%+v: %+v, want %+v", test.state, got, want)
		}
	}
}

func TestAOneShotHasNothingPlanned(t *testing.T) {
	if m := (&Model{}); !m.OneShot() || !m.Planned(monday).IsZero() {
		t.Errorf("planned %s", m.Planned(monday))
	}
	if s := tell(t, daily, ""); s.m.OneShot() || !s.m.Planned(monday).Equal(clock("06:00")) {
		t.Errorf("planned %s", s.m.Planned(monday))
	}
}

func TestTimesAreWrittenInUTCWithMilliseconds(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	for want, at := range map[string]time.Time{
		"": {}, "2026-01-05T00:00:00.000Z": monday, "2026-01-05T05:30:00.250Z": time.Date(2026, 1, 5, 6, 30, 0, 250e6, berlin),
	} {
		got := FormatTime(at)
		failIf(t, got != want, "%s: %q, want %q", at, got, want)
	}
}
