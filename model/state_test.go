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

func TestEachDigitOfATimeIsWritten(t *testing.T) {
	for _, text := range []string{"2026-11-21T06:07:08.009Z", "1999-12-31T23:59:59.999Z", "2100-01-01T00:00:00.100Z", "0987-06-05T04:03:02.010Z"} {
		at, err := time.Parse(TimeLayout, text)
		must(t, err)
		failIf(t, FormatTime(at) != text, "%s is written %s", text, FormatTime(at))
	}
	far := time.Date(12345, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	failIf(t, FormatTime(far) != "12345-01-02T03:04:05.006Z", "got %s", FormatTime(far))
}

func TestAnAttemptExpiresAtItsDeadlineOrAfterTheSilenceOfItsWorker(t *testing.T) {
	at := func(s int) time.Time { return monday.Add(time.Duration(s) * time.Second) }
	for name, test := range map[string]struct {
		state State
		want  time.Time
	}{
		"no signs":            {State{DeadlineAt: at(60), HeardAt: at(0)}, at(60)},
		"silent before":       {State{DeadlineAt: at(60), HeardAt: at(0), SilentAfter: 10 * time.Second}, at(10)},
		"silent at the end":   {State{DeadlineAt: at(60), HeardAt: at(50), SilentAfter: 10 * time.Second}, at(60)},
		"silent beyond":       {State{DeadlineAt: at(60), HeardAt: at(55), SilentAfter: 10 * time.Second}, at(60)},
		"silent just in time": {State{DeadlineAt: at(60), HeardAt: at(49), SilentAfter: 10 * time.Second}, at(59)},
	} {
		failIf(t, !test.state.ExpiresAt().Equal(test.want), "%s: got %s, want %s", name, test.state.ExpiresAt(), test.want)
	}
}

func TestTheScoresOfAModelAreOfItsOneState(t *testing.T) {
	at, stale := monday, monday.Add(time.Hour)
	for name, test := range map[string]struct {
		state State
		want  Scores
	}{
		"waits":            {State{RefreshAt: at}, Scores{Due: at}},
		"nothing to do":    {State{}, Scores{}},
		"runs":             {State{RefreshAt: at, AttemptUID: "x"}, Scores{}},
		"parked":           {State{RefreshAt: at, ParkedBy: "hold:h", Trigger: TriggerRun}, Scores{Parked: at}},
		"a run":            {State{RefreshAt: at, Trigger: TriggerRun}, Scores{Urgent: at.Add(-RunAhead)}},
		"a hand":           {State{RefreshAt: at, Trigger: TriggerHand}, Scores{Urgent: at}},
		"a change":         {State{RefreshAt: at, Trigger: TriggerChange}, Scores{Urgent: at}},
		"a retry":          {State{RefreshAt: at, Trigger: TriggerRetry}, Scores{Due: at}},
		"disabled":         {State{Disabled: true, DisabledAt: at}, Scores{Disabled: at}},
		"disabled, no day": {State{Disabled: true}, Scores{Disabled: time.UnixMilli(1).UTC()}},
		"fresh":            {State{Freshness: Fresh, StaleAt: stale}, Scores{StaleAt: stale}},
		"late":             {State{Freshness: FreshnessLate, StaleAt: stale}, Scores{StaleAt: stale, Late: stale}},
		"never":            {State{Freshness: FreshnessNever, StaleAt: stale}, Scores{StaleAt: stale, Late: Never}},
		"stale":            {State{Freshness: FreshnessStale, StaleAt: stale}, Scores{Stale: stale}},
	} {
		got := test.state.Scores()
		failIf(t, got != test.want, "%s: got %+v, want %+v", name, got, test.want)
	}
}

// They outlive a release.
func TestTheScoresOfAQueueMeanTheSameInEveryRelease(t *testing.T) {
	failIf(t, RunAhead.Milliseconds() != 3_153_600_000_000, "got %d ms", RunAhead.Milliseconds())
	failIf(t, FormatTime(Never) != "9999-12-31T00:00:00.000Z", "never is %s", FormatTime(Never))
}
