package forecast

import (
	"time"

	"github.com/refreshd/refreshd/model"
)

// Walker tells when models start from now to the end of a period. It is not safe for concurrent use.
type Walker struct {
	now, to time.Time
	gates   model.Blockers
	memory  memory
}

// NewWalker begins at now, and goes by the holds as they stand then.
func NewWalker(now, to time.Time, gates model.Blockers) *Walker {
	return &Walker{now: now, to: to, gates: gates, memory: memory{from: now, to: to}}
}

// Starts hands over when a model starts: first what it waits for as it stands, a retry too, and then its planned refreshes, on the assumption
// that each attempt takes so long and succeeds. What is due starts now, and what a hold stops starts at its end. Of an attempt that runs only what follows it counts, and of a model that waits for
// a limit or a circuit nothing.
func (w *Walker) Starts(m *model.Model, took time.Duration, visit func(at time.Time)) {
	at := m.StartsAt(w.now)
	if m.Parked() {
		at, _ = w.unparked(m)
	}
	if m.Running() {
		end := w.ends(m, took)
		if !m.Again {
			w.follow(m, end, took, visit)
			return
		}
		at = end
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

func (w *Walker) ends(m *model.Model, took time.Duration) time.Time {
	end := m.StartedAt.Add(took)
	if end.After(m.DeadlineAt) {
		end = m.DeadlineAt
	}
	if end.Before(w.now) {
		end = w.now
	}
	return end
}

// follow hands over the planned refreshes that follow the end of an attempt.
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
	shortest := w.memory.of(m).shortest()
	return shortest > 0 && m.Policy.Timeout >= shortest-min(shortest, m.Policy.Spread)
}

// Spread is a model as it would be if its policy spread its planned refreshes over a length. 0 is a tenth of its interval, for those that
// nothing shifts as yet.
func (w *Walker) Spread(m *model.Model, length time.Duration) *model.Model {
	if m.Schedule == nil || length == 0 && m.Policy.Spread+m.Phase > 0 {
		return m
	}
	if length == 0 {
		length = w.memory.of(m).shortest() / 10
	}
	other := *m
	other.Policy.Spread, other.Phase = length, 0
	if at, waits := m.Shifted(other.Spread(), w.now); waits {
		other.RefreshAt = at
	}
	return &other
}
