package model

import (
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

var atLeastOne = []policy.Guard{{Metric: "rows", Rule: policy.GuardMin, Bound: 1}, {Metric: "rows", Rule: policy.GuardMax, Bound: 1000}}

func TestANumberThatTheLastGoodResultsHadIsDoubtedWhenItIsMissing(t *testing.T) {
	const missing = "rows: missing, and the last good results had it"
	with := func(past []Attempt, i int, change func(*Attempt)) []Attempt { change(&past[i]); return past }
	none := func(a *Attempt) { a.Metrics = nil }
	for name, test := range map[string]struct {
		past    []Attempt
		usually string
		want    string
	}{
		"three had it":                       {rowsOf(100, 100, 100), "", missing},
		"two had it":                         {rowsOf(100, 100), "", ""},
		"the newest had it not":              {with(rowsOf(100, 100, 100, 100), 0, none), "", ""},
		"the fourth had it not":              {with(rowsOf(100, 100, 100, 100), 3, none), "", missing},
		"failures stand before them":         {slices.Concat(slices.Repeat([]Attempt{{Outcome: EventFailure}}, 3), rowsOf(100, 100, 100)), "", missing},
		"unchanged ones say nothing":         {slices.Concat(slices.Repeat([]Attempt{{Outcome: EventSuccess, Changed: new(bool)}}, 3), rowsOf(100, 100, 100)), "", missing},
		"failures fill the history":          {slices.Repeat([]Attempt{{Outcome: EventFailure}}, 10), `{"rows":100}`, missing},
		"of another number that is known":    {nil, `{"bytes":100}`, ""},
		"one without it has been accepted":   {with(rowsOf(100, 100, 100), 0, func(a *Attempt) { a.Accepted, a.Metrics = true, nil }), `{"rows":100}`, ""},
		"a doubted one without it is no end": {with(rowsOf(100, 100, 100, 100), 0, func(a *Attempt) { a.Suspect, a.Metrics = missing, nil }), "", missing},
	} {
		if got := Doubt(atLeastOne, map[string]float64{"bytes": 7}, test.past, test.usually); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestALoginPageIsDoubtedForAsLongAsItComes also when its failures have pushed all good results out of the history.
func TestALoginPageIsDoubtedForAsLongAsItComes(t *testing.T) {
	m := guarded(t, policy.SuspectFail)
	m.Past = nil
	if got := series(t, &m, 100, 100, 100); got != "..." {
		t.Fatalf("got %s", got)
	}
	for day := range 25 {
		at := monday.Add(time.Duration(24*(day+10)) * time.Hour)
		m.AttemptUID, m.StartedAt, m.DeadlineAt = "a", at, at.Add(time.Hour)
		d, _ := m.Handle(Message{Type: MessageSuccess, AttemptUID: "a", Metrics: map[string]float64{"bytes": 4000}}, at)
		m.State = d.Next
		m.Disabled = false
		m.Past = slices.Insert(m.Past, 0, *d.Ended)[:min(10, len(m.Past)+1)]
		if got := d.Ended.ErrorType; got != policy.ReasonSuspect {
			t.Fatalf("day %d: got %q, want a failure of type suspect", day, got)
		}
	}
}

func TestAResultThatFoundNothingNewIsNeitherDoubtedNorUsual(t *testing.T) {
	for _, metrics := range []map[string]float64{{"rows": 0}, nil} {
		m := guarded(t, policy.SuspectHold)
		m.Past, m.Usual = rowsOf(100, 100, 100), `{"rows":100}`
		d, _ := m.Handle(Message{Type: MessageSuccess, AttemptUID: m.AttemptUID, Metrics: metrics, Changed: new(bool)}, monday.Add(time.Minute))
		if d.Event != EventSuccess || d.Ended.Suspect != "" || d.NotifiesSuspect {
			t.Errorf("%v: got %s doubted by %q, want a success", metrics, d.Event, d.Ended.Suspect)
		}
		if d.Next.Usual != m.Usual || d.Ended.Good() {
			t.Errorf("%v: got %q as usual, want %q", metrics, d.Next.Usual, m.Usual)
		}
	}
}

func TestAnAttemptIsGuardedWhileAGuardMayWithholdItsResult(t *testing.T) {
	for on, want := range map[policy.OnSuspect]bool{"": false, policy.SuspectFail: true, policy.SuspectHold: true} {
		m := guarded(t, on)
		if got := m.Guarded; got != want {
			t.Errorf("%s: got %t, want %t", on, got, want)
		}
		if d := succeed(t, &m, 7, monday.Add(time.Minute)); d.Next.Guarded {
			t.Errorf("%s: the mark outlives its attempt", on)
		}
	}
	m := guarded(t, policy.SuspectFail)
	m.State, m.Policy.Guard = m.Succeed(monday.Add(time.Minute), nil).Next, nil
	if m.Start(monday.Add(time.Hour), "a2").Next.Guarded {
		t.Error("a policy without guards marks its attempts")
	}
}

// TestWhatIsWithheldIsDoubtedThoughItFoundNothingNew by a handler that asks nevertheless: else it would be interrupted again and again.
func TestWhatIsWithheldIsDoubtedThoughItFoundNothingNew(t *testing.T) {
	m := guarded(t, policy.SuspectHold)
	metrics := map[string]float64{"rows": 0}
	d, _ := m.Handle(Message{Type: MessageReady, AttemptUID: m.AttemptUID, Metrics: metrics}, monday)
	if d.Verdict != VerdictHold {
		t.Fatalf("got %s, want hold", d.Verdict)
	}
	d, _ = m.Handle(Message{Type: MessageSuccess, AttemptUID: m.AttemptUID, Metrics: metrics, Changed: new(bool), Unpublished: true}, monday)
	if d.Event != EventSuspect {
		t.Errorf("got %s: %s, want it held", d.Event, d.Next.Why)
	}
}
