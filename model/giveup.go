package model

import (
	"cmp"
	"time"
)

// failingSince is from when the time without a success counts: the last success, the first start, or the last update. Zero: never started.
func (s *State) failingSince() time.Time {
	return cmp.Or(s.TryingSince, s.LastSuccessAt)
}

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

func (m *Model) windowEnded(s *State, now time.Time) bool {
	end := m.giveUpAt(s)
	return !end.IsZero() && !now.Before(end)
}

// notTried extends the give-up window by a time in which nobody could try.
func (m *Model) notTried(next *State, length time.Duration) {
	if since := next.failingSince(); m.Policy.GiveUpAfter > 0 && !since.IsZero() {
		next.TryingSince = since.Add(max(0, length))
	}
}

// boundWait lets a failing model wait no longer than its give-up window, where no failure began the wait.
func (m *Model) boundWait(next *State, now time.Time) {
	end := m.giveUpAt(next)
	if end.IsZero() || next.FailingSince.IsZero() || !next.RefreshAt.After(now) || next.RefreshAt.Before(end) {
		return
	}
	next.wait(end, TriggerGiveUp, givesUpText(m.Policy.GiveUpAfter))
}
