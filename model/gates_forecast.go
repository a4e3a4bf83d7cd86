package model

import "time"

// mostGates bounds how many gates a start may meet one behind the other.
const mostGates = 20

// Timed reports whether somebody knows when a gate opens, if it ever does. What a limit or a circuit lets through depends on how attempts end.
func (g Blocker) Timed() bool {
	kind, _ := g.Split()
	return kind == BlockerHold || kind == BlockerCalendar
}

// Forecast is Model.Forecast of a model whose next start comes behind the holds and calendars that stop it, as these stand now. Of a start that
// waits for a gate of which nobody knows when it opens it is told as if that were as soon as it can be; gate is that one, and StartAt is zero.
func (g *Blockers) Forecast(m *Model, now time.Time) (f Forecast, gate Blocker) {
	next := *m
	for at, n := now, 0; next.Waiting() && n < mostGates; n++ {
		if !next.Parked() {
			if next.RefreshAt.After(at) {
				at = next.RefreshAt
			}
			by, look := g.Stop(&next, at)
			if by == "" {
				break
			}
			next.State = next.Park(by, look, at).Next
		}
		opens, look := g.Opens(next.ParkedBy, at)
		if !next.ParkedBy.Timed() || look.Equal(Never) {
			gate = next.ParkedBy
			next.State = next.Release(at, at).Next
			break
		}
		if !opens {
			at = look
		}
		decision, _ := g.Pass(&next, new(Limiters), "", at) // of a hold or a calendar: it starts nothing
		next.State = decision.Next
	}
	if f = next.Forecast(now); gate != "" {
		f.StartAt = time.Time{}
	}
	return f, gate
}
