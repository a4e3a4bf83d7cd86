package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/schedule"
)

func TestAnImportedStateThatBreaksAnInvariantIsRefused(t *testing.T) {
	at := monday
	for name, test := range map[string]struct {
		state State
		field string // "-": it is accepted
	}{
		"idle":                             {State{RefreshAt: at}, "-"},
		"running":                          {State{AttemptUID: "a", StartedAt: at, DeadlineAt: at, Counted: "limit:a=1"}, "-"},
		"disabled":                         {State{Disabled: true}, "-"},
		"running, not started":             {State{AttemptUID: "a", DeadlineAt: at}, "attempt_uid"},
		"running without a deadline":       {State{AttemptUID: "a", StartedAt: at}, "attempt_uid"},
		"idle with a start":                {State{StartedAt: at}, "attempt_uid"},
		"idle with a deadline":             {State{DeadlineAt: at}, "attempt_uid"},
		"idle and counted":                 {State{Counted: "limit:a=1"}, "counted_by"},
		"disabled and running":             {State{Disabled: true, AttemptUID: "a", StartedAt: at, DeadlineAt: at}, "attempt_uid"},
		"disabled with a time for a start": {State{Disabled: true, RefreshAt: at}, "refresh_at"},
	} {
		err := test.state.validateImported()
		failIf(t, err == nil != (test.field == "-") || refusedField(err) != test.field, "%s: got %v, want a refusal of %q", name, err, test.field)
	}
}

func TestAnExportSaysWhatCannotBeMoved(t *testing.T) {
	at := monday
	for begins, state := range map[string]State{
		"":                      {RefreshAt: at},
		"its attempt: ":         {AttemptUID: "a", Reserved: "a=1"},
		"its wait for hold:h: ": {RefreshAt: at, ParkedBy: "hold:h"},
		"its slot of a=1: ":     {RefreshAt: at, Reserved: "a=1"},
	} {
		got := state.LeftBehind()
		failIf(t, !strings.HasPrefix(got, begins) || (got == "") != (begins == ""), "got %q, want %q", got, begins)
	}
	held := State{RefreshAt: at, ParkedBy: BySuspect}
	failIf(t, held.LeftBehind() != "", "the doubt about a success stays behind: %s", held.LeftBehind())
}

// imported is the model a of the new queue once the state has come, and the outcome.
func imported(t *testing.T, state State, past ...string) (*Model, Decision, Outcome) {
	t.Helper()
	moved := Moved{Definition: Definition{UID: "a", Payload: "{}", Labels: map[string]string{"tenant": "t1"}}, State: state, Past: past}
	m := &Model{UID: "a", State: State{Fence: 7}}
	decision, outcome, err := m.Import(moved, policyOf(t, `{}`), false, nil, monday)
	must(t, err)
	return decision.Definition, decision, outcome
}

func TestAnImportBringsTheStateAndLeavesAttemptBlockerAndSlotsBehind(t *testing.T) {
	later := monday.Add(time.Hour)
	m, decision, outcome := imported(t, State{RefreshAt: later, Reserved: "a=1", Fence: 3}, "newest", "oldest")
	failIf(t, outcome != Applied || decision.Event != EventImport || !decision.Recheck.Equal(Never), "got %q: %+v", outcome, decision)
	failIf(t, !m.RefreshAt.Equal(later) || m.Reserved != "" || m.Fence != 7 || m.Labels["tenant"] != "t1", "got %+v", m)
	equal(t, []string{"newest", "oldest"}, decision.Past)

	m, _, _ = imported(t, State{RefreshAt: later, ParkedBy: "hold:h", ParkedSince: monday, Fence: 9})
	failIf(t, m.ParkedBy != "" || m.Fence != 9, "the wait for a hold has come: %+v", m.State)
	m, _, _ = imported(t, State{RefreshAt: later, ParkedBy: BySuspect, ParkedSince: monday})
	failIf(t, m.ParkedBy != BySuspect, "the doubt stayed behind: %+v", m.State)
	m, _, _ = imported(t, State{AttemptUID: "x", AttemptNo: 2, StartedAt: monday, DeadlineAt: later})
	failIf(t, m.Running() || !m.RefreshAt.Equal(monday) || m.Why != whyLeftBehind || m.AttemptNo != 1, "a running attempt has come: %+v", m.State)
}

func TestAnImportOfWhatIsThereChangesNothing(t *testing.T) {
	policy, later := policyOf(t, `{}`), monday.Add(time.Hour)
	stored := func() *Model {
		m := &Model{UID: "a", Payload: "{}", Labels: map[string]string{"tenant": "t1"}, State: State{RefreshAt: later}}
		must(t, m.Resolve(policy, schedule.Parse))
		return m
	}
	for name, test := range map[string]struct {
		change func(*Moved)
		exists bool
		want   Outcome
	}{
		"the same":         {func(*Moved) {}, true, Unchanged},
		"no model":         {func(*Moved) {}, false, Applied},
		"another state":    {func(m *Moved) { m.State.RefreshAt = monday }, true, Applied},
		"another payload":  {func(m *Moved) { m.Payload = `{"a":1}` }, true, Applied},
		"another label":    {func(m *Moved) { m.Labels = nil }, true, Applied},
		"another history":  {func(m *Moved) { m.Past = nil }, true, Applied},
		"a slot of a rate": {func(m *Moved) { m.State.Reserved = "a=1" }, true, Unchanged},
	} {
		m := stored()
		moved := Moved{Definition: Definition{UID: "a", Payload: "{}", Labels: map[string]string{"tenant": "t1"}}, State: m.State, Past: []string{"newest"}}
		test.change(&moved)
		_, outcome, err := m.Import(moved, policy, test.exists, []string{"newest"}, monday)
		failIf(t, err != nil || outcome != test.want, "%s: got %q, %v, want %q", name, outcome, err, test.want)
	}
}

func TestAnImportIsRefusedByTheFieldThatCannotBeUsed(t *testing.T) {
	for field, moved := range map[string]Moved{
		"timezone":          {Definition: Definition{UID: "a", Payload: "{}", Timezone: "Mars/Olympus"}},
		"rrule FREQ":        {Definition: Definition{UID: "a", Payload: "{}", Rule: "FREQ=NEVER", Dtstart: "2026-01-01T00:00:00"}},
		"state.attempt_uid": {Definition: Definition{UID: "a", Payload: "{}"}, State: State{StartedAt: monday}},
	} {
		_, outcome, err := new(Model).Import(moved, policyOf(t, `{}`), false, nil, monday)
		failIf(t, refusedField(err) != field || outcome != Unchanged, "got %q, %v, want a refusal of %s", outcome, err, field)
	}
}
