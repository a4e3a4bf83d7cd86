package model

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/zones"
)

// lookBehind is how far back to look for a missed planned refresh if nobody knows its old offset: zones seldom move further.
const lookBehind = 3 * time.Hour

const whyZones = "planned anew, by newer zone data"

// Rezone plans a model anew that was planned by older zone data; was are the old clocks of its zone, the zero Note if unknown. If the new time is
// past and may not have run, the model is due now: it may run twice on that day, but never not at all. Running and parked models are planned at
// their next decision. To repeat it changes nothing.
func (m *Model) Rezone(was zones.Note, now time.Time) (Decision, Outcome) {
	decision := Decision{Event: EventReplan, Next: m.State}
	next, at := &decision.Next, m.RefreshAt
	if m.Disabled || m.Running() || m.Parked() || m.Due(now) || at.IsZero() || m.Reserved != "" || m.Fault != "" {
		return Decision{}, Unchanged
	}
	moved := at // when the clocks, by the data in use, show the intended time
	ahead, known := was.Offset(at)
	if zone, err := schedule.Zone(m.Zone()); known && err == nil {
		moved = schedule.Shown(at.Add(ahead), zone)
	}
	switch {
	case known && moved.Equal(at):
		return Decision{}, Unchanged
	case m.endsWindow():
		if missed, found := m.planned(latest(now.Add(moved.Sub(at)), m.LastSuccessAt)); known && found && !missed.After(now) {
			next.wait(now, TriggerPlanned, whyZones)
			return decision, Applied
		}
		if decision, changed := m.planAnew(now); changed {
			return decision, Applied
		}
		return Decision{}, Unchanged
	case m.Trigger == TriggerPlanned && m.Schedule != nil && !at.Equal(m.NotBefore):
		next.wait(latest(m.replanned(moved, known, now), m.NotBefore, now), TriggerPlanned, whyZones)
	case m.Trigger == TriggerRetry && m.Window != nil:
		if m.opens(moved.Add(-time.Millisecond)).Equal(moved) {
			at = moved
		}
		if from := latest(at, m.NotBefore, now); m.opens(from).After(from) {
			decision.PolicyError = m.rejoin(next, from, now)
		} else {
			next.wait(from, TriggerRetry, whyWindow)
			m.notTried(next, from.Sub(m.RefreshAt))
		}
	default:
		return Decision{}, Unchanged
	}
	m.boundWait(next, now)
	if next.RefreshAt.Equal(m.RefreshAt) || m.RuleError != "" {
		return Decision{}, Unchanged
	}
	return decision, Applied
}

// replanned is the new time of the planned refresh at refresh_at; moved is the same wall time by the new data. refresh_at may also come from the
// new data, or be no occurrence, as after a spread release. In doubt the model waits no longer than before.
func (m *Model) replanned(moved time.Time, known bool, now time.Time) time.Time {
	from, occurs := moved.Add(-time.Millisecond), m.occursAt(m.RefreshAt)
	switch {
	case !known && (occurs || strings.HasPrefix(m.Why, whyReleased)): // models that a hold has released come little by little
		return m.RefreshAt
	case !known:
		from = now.Add(-lookBehind)
	}
	if occurs || !known {
		from = latest(from, m.LastSuccessAt)
	}
	at, found := m.planned(from)
	if doubted := occurs || !known || !m.occursAt(moved); !found || doubted && at.After(m.RefreshAt) {
		return m.RefreshAt
	}
	return at
}

func (m *Model) occursAt(at time.Time) bool { return m.Planned(at.Add(-time.Millisecond)).Equal(at) }
