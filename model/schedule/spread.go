package schedule

import (
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Spread shifts the occurrences of a schedule for one model, by a phase that is derived from its uid and less than length, so
// that a hundred thousand hourly models do not start at :00. No occurrence is shifted to its next one or past it.
type Spread struct {
	Schedule *Schedule
	Phase    float64 // of length, 0 up to but not including 1
	Length   time.Duration
	// By shifts each occurrence by a length that somebody has chosen, in place of the other two; 0: nobody has. Of one that is longer than
	// the distance to the next occurrence, the rest after whole distances counts.
	By time.Duration
}

// Shifted returns when an occurrence runs, given the one after it; found is false for the last one.
func (s Spread) Shifted(at, next time.Time, found bool) time.Time {
	return at.Add(s.Shift(next.Sub(at), found))
}

// Shift returns by how much an occurrence is shifted, given the distance to the one after it; found is false for the last one.
func (s Spread) Shift(distance time.Duration, found bool) time.Duration {
	if s.By > 0 {
		if found {
			return s.By % distance
		}
		return s.By
	}
	room := s.Length
	if found {
		room = min(room, distance)
	}
	return time.Duration(s.Phase * float64(room)).Truncate(time.Millisecond)
}

// Evaluate returns the first shifted occurrence strictly after an instant. The error comes from Schedule.Evaluate, about all the
// questions together that it takes.
func (s Spread) Evaluate(after time.Time) (time.Time, bool, error) {
	return within(after, func(b *budget) (time.Time, bool) {
		_, shifted, found := s.next(after, b)
		return shifted, found
	})
}

// Occurrence returns the occurrence that runs at an instant; false: none does. The error comes from Evaluate.
func (s Spread) Occurrence(runs time.Time) (time.Time, bool, error) {
	return within(runs, func(b *budget) (time.Time, bool) {
		at, shifted, found := s.next(runs.Add(-time.Nanosecond), b)
		return at, found && shifted.Equal(runs)
	})
}

// Begun returns the last occurrence at or before an instant; false: there is none in the ten years before it. The error comes from Evaluate.
func (s *Schedule) Begun(by time.Time) (time.Time, bool, error) {
	return within(by, func(b *budget) (time.Time, bool) {
		at, found := s.ask(Spread{Schedule: s, Length: document.MaxDuration}.before(by, b), b)
		if !found || at.After(by) {
			return time.Time{}, false
		}
		for next, more := s.ask(at, b); more && !next.After(by); next, more = s.ask(at, b) {
			at = next
		}
		return at, true
	})
}

func (s Spread) next(after time.Time, b *budget) (at, shifted time.Time, found bool) {
	at, found = s.Schedule.ask(s.before(after, b), b)
	for found {
		following, more := s.Schedule.ask(at, b)
		if shifted = s.Shifted(at, following, more); shifted.After(after) {
			return at, shifted, true
		}
		at, found = following, more
	}
	return time.Time{}, time.Time{}, false
}

// before returns an instant before the last occurrence that can have begun by after. Where many lie within the spread it searches instead of
// walking.
func (s Spread) before(after time.Time, b *budget) time.Time {
	if s.Length+s.By == 0 { // nothing is shifted
		return after
	}
	longest := max(s.Length, s.By).Truncate(time.Second) + time.Second
	at, found := s.Schedule.ask(after.Add(-longest), b)
	if found && !at.After(after) {
		at, found = s.Schedule.ask(at, b)
	}
	if !found || at.After(after) { // one or none
		return after.Add(-longest)
	}
	within := func(seconds int64) bool {
		at, found := s.Schedule.ask(after.Add(-time.Duration(seconds)*time.Second), b)
		return found && !at.After(after)
	}
	none, back := int64(0), int64(1)
	for back < int64(longest/time.Second) && !within(back) {
		none, back = back, 2*back
	}
	back = firstThat(none, min(back, int64(longest/time.Second)), within)
	return after.Add(-time.Duration(back) * time.Second)
}
