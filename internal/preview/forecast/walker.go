// Package forecast computes when the models of a queue start, minute by minute, and how their starts could come more evenly. It walks models through
// the code that decides about them, and keeps counts instead of lists: a million models fit in some tens of megabytes. It knows no Redis and no
// clock.
package forecast

import (
	"time"

	"github.com/refreshd/refreshd/model"
)

// Walker computes the starts of models from now to the end of a period. It is not safe for concurrent use.
type Walker struct {
	now, to  time.Time
	blockers model.Blockers
	memory   memory
	other    model.Model // that Spread has returned last
}

// NewWalker begins at now, with the holds of that time.
func NewWalker(now, to time.Time, blockers model.Blockers) *Walker {
	return &Walker{now: now, to: to, blockers: blockers, memory: memory{from: now, to: to}}
}

// Starts visits the starts of a model: its next one, and then its planned refreshes, if each attempt takes so long and succeeds. A due model starts
// now, and a held one at the end of the hold. Running attempts do not count, nor models that wait for a limit or a circuit.
func (w *Walker) Starts(m *model.Model, took time.Duration, visit func(at time.Time)) {
	at := m.StartsAt(w.now)
	switch opens, look := w.blockers.Opens(m.ParkedBy, w.now); {
	case m.Running():
		if at = m.StartedAt.Add(took); at.After(m.DeadlineAt) {
			at = m.DeadlineAt
		}
		if at.Before(w.now) {
			at = w.now
		}
		if !m.Again {
			w.follow(m, at, took, visit)
			return
		}
	case m.Parked() && m.ParkedBy.Timed() && opens:
		at = w.passed(m, w.now)
	case m.Parked() && m.ParkedBy.Timed() && look.Before(w.to):
		at = w.passed(m, look)
	case m.Parked(): // nobody knows when its blocker opens, or it does so behind the period
		return
	}
	if at.IsZero() {
		return
	}
	at, starts := w.admitted(m, at)
	if !starts {
		return
	}
	visit(at)
	w.follow(m, at.Add(took), took, visit)
}

func (w *Walker) follow(m *model.Model, ended time.Time, took time.Duration, visit func(at time.Time)) {
	if m.Schedule == nil {
		return
	}
	spread := m.Spread()
	w.memory.of(m).each(ended, func(at, next time.Time, found bool) bool {
		if at = spread.Shifted(at, next, found); !at.After(ended) {
			return true
		}
		starts := false
		if at, starts = w.admitted(m, at); starts {
			visit(at)
			ended = at.Add(took)
		}
		return starts
	})
}

// AsksLength reports whether it matters how long the attempts of a model take: one runs or starts beside the schedule, or it may last until
// the next planned refresh, which is then left out.
func (w *Walker) AsksLength(m *model.Model) bool {
	if m.Schedule == nil || m.Disabled {
		return false
	}
	if m.Running() || m.Trigger != model.TriggerPlanned || m.Due(w.now) || m.Policy.Timeout == 0 {
		return true
	}
	shortest := w.memory.of(m).shortest
	return shortest > 0 && m.Policy.Timeout >= shortest-min(shortest, m.Policy.Spread)
}

// Spread returns the model with another spread, valid until the next call. 0 is a tenth of its interval, for models that nothing shifts yet.
func (w *Walker) Spread(m *model.Model, length time.Duration) *model.Model {
	if m.Schedule == nil || length == 0 && m.Policy.Spread+m.Phase > 0 {
		return m
	}
	o := w.memory.of(m)
	if length == 0 {
		length = o.shortest / 10
	}
	w.other = *m
	w.other.Policy.Spread, w.other.Phase = length, 0
	if !m.Waiting() || m.Parked() || m.Due(w.now) || m.Trigger != model.TriggerPlanned {
		return &w.other
	}
	is, would := m.Spread(), w.other.Spread()
	o.each(m.RefreshAt.Add(-time.Nanosecond), func(occurrence, next time.Time, found bool) bool {
		planned := is.Shifted(occurrence, next, found)
		if at := would.Shifted(occurrence, next, found); planned.Equal(m.RefreshAt) && at.After(w.now) {
			w.other.RefreshAt = at
		}
		return planned.Before(m.RefreshAt)
	})
	return &w.other
}

// admitted returns when a start that is due comes about, after the holds and calendars that stop it; false: not within the period.
func (w *Walker) admitted(m *model.Model, at time.Time) (time.Time, bool) {
	if w.blockers.Empty() && len(m.Policy.Closed) == 0 {
		return at, at.Before(w.to)
	}
	for range 20 { // so many blockers may follow each other
		blocker, look := w.blockers.Stop(m, at)
		if blocker == "" || !blocker.Timed() || !look.After(at) {
			break
		}
		if !look.Before(w.to) {
			return at, false
		}
		waiting := *m
		waiting.State = model.State{RefreshAt: at}
		waiting.State = waiting.Park(blocker, look, at).Next
		at = w.passed(&waiting, look)
	}
	return at, at.Before(w.to)
}

func (w *Walker) passed(m *model.Model, opens time.Time) time.Time {
	decision, _ := w.blockers.Pass(m, new(model.Limiters), "", opens) // of a hold or a calendar: it starts nothing
	if at := decision.Next.RefreshAt; at.After(opens) {
		return at
	}
	return opens
}
