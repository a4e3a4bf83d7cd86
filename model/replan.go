package model

import "time"

// Replan plans the model anew from now on, as its policy says something else of planned refreshes than when it was planned, and watches its
// freshness as the policy says now. To do it again changes nothing.
func (m *Model) Replan(now time.Time) (Decision, Outcome) {
	if decision, outcome := m.planAnew(now); outcome == Applied {
		return decision, outcome
	}
	return m.watchAnew(now)
}

// planAnew concerns a model that waits for a planned refresh, or for nothing; what is due stays due, and what was promised for another reason
// (a retry, a wish of a hand or a worker) stays as it is.
func (m *Model) planAnew(now time.Time) (Decision, Outcome) {
	if !m.replannable(now) {
		return Decision{}, Unchanged
	}
	decision := Decision{Event: EventReplan, Next: m.State}
	next := &decision.Next
	m.plan(next, now)
	m.boundWait(next, now)
	switch at := next.RefreshAt; {
	case at.Equal(m.RefreshAt):
		return Decision{}, Unchanged
	case !m.OneShot() && (m.Schedule == nil || m.RuleError != ""): // nobody knows when: the next decision looks again
		return Decision{}, Unchanged
	case at.IsZero() && m.Rule != "", m.waitsForPlanned() && (at.IsZero() || at.After(m.RefreshAt)):
		return Decision{}, Unchanged
	case at.IsZero():
		next.NotBefore = time.Time{}
	}
	return decision, Applied
}

// replannable reports whether the model waits for a planned refresh or for nothing. The end of the give-up window stands where a planned
// refresh would have come too late, and one that is planned before it may come first.
func (m *Model) replannable(now time.Time) bool {
	return !m.Disabled && !m.Running() && !m.Parked() && !m.Due(now) && (m.Trigger == TriggerPlanned || m.endsWindow())
}

// waitsForPlanned reports whether what the model waits for is more than a planned refresh: it takes the place of a retry, ends the give-up window,
// or was moved to the floor of a worker. Then it may come sooner, and never later or not at all.
func (m *Model) waitsForPlanned() bool {
	waits := !m.RefreshAt.IsZero()
	return waits && (m.AttemptNo > 0 || m.Deferrals > 0 || m.endsWindow() || m.RefreshAt.Equal(m.NotBefore))
}
