package model

import (
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Replan plans the model anew from now on, as its policy says something else of planned refreshes than when it was planned, and watches its
// freshness as the policy says now. To do it again changes nothing.
func (m *Model) Replan(now time.Time) (Decision, Outcome) {
	if decision, changed := m.planAnew(now); changed {
		return decision, Applied
	}
	decision := Decision{Event: EventWatch, Next: m.State}
	next := &decision.Next
	m.Watch(&decision, now)
	if next.Freshness == m.Freshness && next.StaleAt.Equal(m.StaleAt) && next.FreshSince.Equal(m.FreshSince) {
		return Decision{}, Unchanged
	}
	return decision, Applied
}

// planAnew changes only a model that waits for a planned refresh, or for nothing. Where that stands for more (a retry, the end of a window, a
// wish of a worker) it may come sooner, never later.
func (m *Model) planAnew(now time.Time) (decision Decision, changed bool) {
	if !m.replannable(now) {
		return decision, false
	}
	decision = Decision{Event: EventReplan, Next: m.State}
	next := &decision.Next
	m.plan(next, now)
	m.boundWait(next, now)
	stands := !m.RefreshAt.IsZero() && (m.AttemptNo > 0 || m.Deferrals > 0 || m.endsWindow() || m.RefreshAt.Equal(m.NotBefore))
	switch at := next.RefreshAt; {
	case at.Equal(m.RefreshAt):
		return decision, false
	case !m.OneShot() && (m.Schedule == nil || m.RuleError != ""): // nobody knows when: the next decision looks again
		return decision, false
	case at.IsZero() && m.Rule != "", stands && (at.IsZero() || at.After(m.RefreshAt)):
		return decision, false
	case at.IsZero():
		next.NotBefore = time.Time{}
	}
	return decision, true
}

// replannable reports whether the model waits for a planned refresh, the end of the give-up window, or nothing.
func (m *Model) replannable(now time.Time) bool {
	return !m.Disabled && !m.Running() && !m.Parked() && !m.Due(now) && (m.Trigger == TriggerPlanned || m.endsWindow())
}

// Spread is how the occurrences of the schedule are shifted for this model: by its phase if it has one, or else by its part of the spread
// of its policy. Everything that asks when the model is planned asks this.
func (m *Model) Spread() schedule.Spread {
	spread := schedule.Spread{Schedule: m.Schedule, Length: m.Policy.Spread, By: m.Phase}
	if spread.Length > 0 {
		spread.Phase = policy.Fraction("spread", m.UID)
	}
	return spread
}

// Level gives the model a phase, or takes it away (0), so that planned starts of many models come evenly. A planned refresh that it waits
// for moves with it, unless that would be in the past: then the next one is the first that moves. So no refresh is left out or comes
// twice, and of a model that does anything else nothing is changed: Busy. To do it again changes nothing.
func (m *Model) Level(phase time.Duration, now time.Time) (Decision, Outcome) {
	if phase == m.Phase {
		return Decision{}, Unchanged
	}
	decision := Decision{Event: EventLevel, Next: m.State}
	next := &decision.Next
	next.Phase = phase
	if !m.Running() && m.RefreshAt.IsZero() { // it waits for nothing, or is disabled
		return decision, Applied
	}
	levelled := *m
	levelled.Phase = phase
	at, waits := m.Shifted(levelled.Spread(), now)
	if !waits {
		return Decision{}, Busy
	}
	next.RefreshAt = at
	m.boundWait(next, now)
	return decision, Applied
}

// Shifted is when the planned refresh that the model waits for would come if its schedule were shifted otherwise; it stays where it is if
// that would be in the past. false: the model waits for something else.
func (m *Model) Shifted(spread schedule.Spread, now time.Time) (time.Time, bool) {
	if !m.replannable(now) || m.Schedule == nil || m.RefreshAt.IsZero() {
		return time.Time{}, false
	}
	occurrence, found, err := m.Spread().Occurrence(m.RefreshAt)
	if err != nil || !found {
		return time.Time{}, false
	}
	following, more, err := m.Schedule.Evaluate(occurrence)
	if err != nil {
		return time.Time{}, false
	}
	if at := spread.Shifted(occurrence, following, more); at.After(now) {
		return at, true
	}
	return m.RefreshAt, true
}
