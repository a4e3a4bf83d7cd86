package model

import (
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// trying is the instant from which the time without a success counts: the last success, or the first start of a model that
// never succeeded, or the update that began anew (decisions 7 and 8). Zero: it has not started yet.
func (s *State) trying() time.Time {
	if s.TryingSince.IsZero() {
		return s.LastSuccessAt
	}
	return s.TryingSince
}

// withoutSuccess is how long the model has gone without a success at now; 0 before its first start.
func (s *State) withoutSuccess(now time.Time) time.Duration {
	if since := s.trying(); !since.IsZero() {
		return max(0, now.Sub(since))
	}
	return 0
}

// giveUpAt is the end of the give-up window; zero: there is none.
func (m *Model) giveUpAt(s *State) time.Time {
	since := s.trying()
	if m.Policy.GiveUpAfter == 0 || since.IsZero() {
		return time.Time{}
	}
	return since.Add(m.Policy.GiveUpAfter)
}

// boundWait lets a failing model wait no longer than its give-up window lasts, where no failure began the wait: a wish of the
// worker, or a missed refresh.
func (m *Model) boundWait(next *State, now time.Time) {
	end := m.giveUpAt(next)
	if end.IsZero() || next.FailingSince.IsZero() || !next.RefreshAt.After(now) || next.RefreshAt.Before(end) {
		return
	}
	next.RefreshAt, next.Why = end, givesUpText(m.Policy.GiveUpAfter)
}

// windowEnded reports whether the give-up window is over, which nobody may have noticed yet.
func (m *Model) windowEnded(now time.Time) bool {
	end := m.giveUpAt(&m.State)
	return !end.IsZero() && !now.Before(end)
}

// GivesUpAt is when a failing model is disabled if it does not succeed before; zero: never, or it is not failing.
func (m *Model) GivesUpAt() time.Time {
	if m.FailingSince.IsZero() {
		return time.Time{}
	}
	return m.giveUpAt(&m.State)
}

// givenUp reports whether what the model is due for is not a start but the end of its give-up window. A start that was promised
// before the end runs, however late: that it is late is our doing. So does one that was planned anew, behind the end.
func (m *Model) givenUp() bool {
	end := m.giveUpAt(&m.State)
	return !m.Brake.Engaged && !end.IsZero() && !m.FailingSince.IsZero() && m.RefreshAt.Equal(end)
}

// giveUp disables a model at the end of its give-up window (S0-30, S0-31). No attempt is running.
func (m *Model) giveUp(now time.Time) Decision {
	decision := Decision{Event: EventGiveUp, Next: m.State}
	failure := policy.Failure{Reason: noSuccessText(m.Policy.GiveUpAfter)}
	decision.Next.RefreshAt, decision.Next.Why = time.Time{}, "final: "+failure.Reason
	m.disable(&decision, failure, now)
	return decision
}
