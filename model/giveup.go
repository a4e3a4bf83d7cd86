package model

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// failingSince is the instant from which the time without a success counts: the last success, or the first start of a model that
// never succeeded, or the update that began anew. Zero: it has not started yet.
func (s *State) failingSince() time.Time {
	return cmp.Or(s.TryingSince, s.LastSuccessAt)
}

// withoutSuccess is how long the model has gone without a success at now; 0 before its first start.
func (s *State) withoutSuccess(now time.Time) time.Duration {
	if since := s.failingSince(); !since.IsZero() {
		return max(0, now.Sub(since))
	}
	return 0
}

// giveUpAt is the end of the give-up window; zero: there is none.
func (m *Model) giveUpAt(s *State) time.Time {
	since := s.failingSince()
	if m.Policy.GiveUpAfter == 0 || since.IsZero() {
		return time.Time{}
	}
	return since.Add(m.Policy.GiveUpAfter)
}

// GivesUpAt is when a failing model is disabled if it does not succeed before; zero: never, or it is not failing.
func (m *Model) GivesUpAt() time.Time {
	if m.FailingSince.IsZero() {
		return time.Time{}
	}
	return m.giveUpAt(&m.State)
}

// windowEnded reports whether the give-up window is over, also if nobody has noticed it yet.
func (m *Model) windowEnded(s *State, now time.Time) bool {
	end := m.giveUpAt(s)
	return !end.IsZero() && !now.Before(end)
}

// notTried leaves a time in which nobody could try out of the give-up window.
func (m *Model) notTried(next *State, length time.Duration) {
	if since := next.failingSince(); m.Policy.GiveUpAfter > 0 && !since.IsZero() {
		next.TryingSince = since.Add(max(0, length))
	}
}

// boundWait lets a failing model wait no longer than its give-up window lasts, where no failure began the wait: a wish of the
// worker, or a missed refresh.
func (m *Model) boundWait(next *State, now time.Time) {
	end := m.giveUpAt(next)
	if end.IsZero() || next.FailingSince.IsZero() || !next.RefreshAt.After(now) || next.RefreshAt.Before(end) {
		return
	}
	next.wait(end, TriggerGiveUp, givesUpText(m.Policy.GiveUpAfter))
}

// givesUp reports whether the model is due for the end of its give-up window and not for a start. A start that was promised before
// the end is made, however late, because the delay is ours. So is one that an update planned behind the end.
func (m *Model) givesUp() bool {
	return !m.QueueCircuit.Open && m.endsWindow()
}

// giveUp disables a model at the end of its give-up window. No attempt is running.
func (m *Model) giveUp(now time.Time) Decision {
	decision := Decision{Event: EventGiveUp, Next: m.State}
	failure := policy.Failure{Reason: noSuccessText(m.Policy.GiveUpAfter)}
	decision.Next.wait(time.Time{}, TriggerPlanned, "final: "+failure.Reason)
	m.disable(&decision, failure, now)
	return decision
}
