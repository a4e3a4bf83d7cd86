package forecast

import (
	"time"

	"github.com/refreshd/refreshd/model"
)

// maxBlockers bounds how many blockers a start may meet one behind the other.
const maxBlockers = 20

// timed reports whether a gate opens at a time that is known. What a limit or a circuit lets through depends on how attempts end.
func timed(gate model.Blocker) bool {
	kind, _ := gate.Split()
	return kind == model.BlockerHold || kind == model.BlockerCalendar
}

// admitted is when a start that is due at an instant comes about: behind the holds and calendars that stop it, as those stand now. false: not
// within the period.
func (w *Walker) admitted(m *model.Model, at time.Time) (time.Time, bool) {
	if w.gates.Empty() && len(m.Policy.Closed) == 0 {
		return at, at.Before(w.to)
	}
	for range maxBlockers {
		gate, look := w.gates.Stop(m, at)
		if gate == "" || !timed(gate) || !look.After(at) {
			break
		}
		if !look.Before(w.to) {
			return at, false
		}
		waiting := *m
		waiting.State = model.State{RefreshAt: at}
		waiting.State = waiting.Park(gate, look, at).Next
		at = w.passed(&waiting, look)
	}
	return at, at.Before(w.to)
}

func (w *Walker) passed(m *model.Model, opens time.Time) time.Time {
	decision, _ := w.gates.Pass(m, new(model.Limiters), "", opens) // of a hold or a calendar: it starts nothing
	if at := decision.Next.RefreshAt; at.After(opens) {
		return at
	}
	return opens
}

// unparked is when the gate opens for which a model waits, as far as anybody knows; false: not within the period.
func (w *Walker) unparked(m *model.Model) (time.Time, bool) {
	opens, look := w.gates.Opens(m.ParkedBy, w.now)
	switch {
	case !timed(m.ParkedBy):
		return time.Time{}, false
	case opens:
		return w.passed(m, w.now), true
	case look.Before(w.to):
		return w.passed(m, look), true
	default:
		return time.Time{}, false
	}
}
