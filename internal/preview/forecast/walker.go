// Package forecast computes when the models of a queue start, minute by minute, and how their starts could come more evenly. It walks models through
// the code that decides about them, and keeps counts instead of lists: a million models fit in some tens of megabytes. It knows no Redis and no
// clock.
package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
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
	switch opens, recheck := w.blockers.Opens(m.ParkedBy, w.now); {
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
	case m.Parked() && m.ParkedBy.Timed() && recheck.Before(w.to):
		at = w.passed(m, recheck)
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
	w.memory.planned(m, ended, func(_, at time.Time) bool {
		if !at.After(ended) {
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
	w.other = *m
	w.other.Policy.Spread, w.other.Phase = cmp.Or(length, o.shortest/10), 0
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
		blocker, recheck := w.blockers.Stop(m, at)
		if blocker == "" || !blocker.Timed() || !recheck.After(at) {
			break
		}
		if !recheck.Before(w.to) {
			return at, false
		}
		waiting := *m
		waiting.State = model.State{RefreshAt: at}
		waiting.State = waiting.Park(blocker, recheck, at).Next
		at = w.passed(&waiting, recheck)
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

// rule is the text of a schedule. Models that share it share their occurrences.
type rule struct{ text, timezone, dtstart string }

func ruleOf(m *model.Model) rule {
	return rule{cmp.Or(m.Rule, m.Policy.Rule), m.Zone(), cmp.Or(m.Dtstart, m.Policy.Anchor())}
}

// occurrences are those of a schedule in a period, with the last one before it and the first one behind it, so that all shifted starts in the period
// follow from them.
type occurrences struct {
	times    []int64       // Unix seconds, in rising order
	ends     bool          // nothing comes behind the last of times
	shortest time.Duration // distance between two of them; 0: there are not two
}

// each visits the occurrences whose shifted time may be after an instant, with the next one if there is one, until visit returns false.
func (o *occurrences) each(after time.Time, visit func(at, next time.Time, found bool) bool) {
	first, _ := slices.BinarySearch(o.times, after.Unix()+1)
	for i := max(0, first-1); i < len(o.times); i++ {
		at, next, found := time.Unix(o.times[i], 0).UTC(), time.Time{}, i+1 < len(o.times)
		if found {
			next = time.Unix(o.times[i+1], 0)
		}
		if !found && !o.ends || !visit(at, next, found) {
			return
		}
	}
}

// memory caches the occurrences of schedules.
type memory struct {
	from, to time.Time
	known    map[*schedule.Schedule]*occurrences
	kept     int // instants
}

// maxKept bounds the cached instants; a schedule counts as 150 more. That is 32 MB.
const maxKept = 4_000_000

// planned visits the occurrences of a model that may start after an instant, with the starts to which its spread or phase shifts them.
func (k *memory) planned(m *model.Model, after time.Time, visit func(occurrence, starts time.Time) bool) {
	spread := m.Spread()
	k.of(m).each(after, func(at, next time.Time, found bool) bool { return visit(at, spread.Shifted(at, next, found)) })
}

func (k *memory) of(m *model.Model) *occurrences {
	if o := k.known[m.Schedule]; o != nil {
		return o
	}
	o := &occurrences{}
	at, found, err := m.Schedule.Begun(k.from)
	if found && err == nil {
		o.times = append(o.times, at.Unix())
	}
	for at = k.from; at.Before(k.to) && !o.ends; {
		if at, found, err = m.Schedule.Evaluate(at); found && err == nil {
			o.times = append(o.times, at.Unix())
		} else {
			o.ends = true // a schedule that takes too many steps ends there
		}
	}
	for i := 1; i < len(o.times); i++ {
		if distance := time.Duration(o.times[i]-o.times[i-1]) * time.Second; o.shortest == 0 || distance < o.shortest {
			o.shortest = distance
		}
	}
	if k.kept += len(o.times) + 150; k.known == nil || k.kept > maxKept {
		k.known, k.kept = map[*schedule.Schedule]*occurrences{}, len(o.times)+150
	}
	k.known[m.Schedule] = o
	return o
}
