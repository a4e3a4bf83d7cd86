package model

import "time"

// missed reports whether the model is due for a planned refresh that its policy no longer wants at now, nor any later one that has
// come. There is another one then, at next.
func (m *Model) missed(now time.Time) (next time.Time, missed bool) {
	rule := m.Policy.Misfire
	if !rule.Limited || m.RefreshAt.IsZero() || now.Sub(m.RefreshAt) <= rule.Younger {
		return next, false
	}
	if planned, found := m.planned(m.RefreshAt.Add(-time.Millisecond)); !found || !planned.Equal(m.RefreshAt) {
		return next, false
	}
	next, found := m.planned(now.Add(-rule.Younger - time.Millisecond))
	return next, found && next.After(now)
}
