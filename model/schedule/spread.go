package schedule

import "time"

// Spread shifts the occurrences of a schedule for one model, by a phase that is derived from its uid and less than length, so
// that a hundred thousand hourly models do not start at :00. No occurrence is shifted to its next one or past it.
type Spread struct {
	Schedule *Schedule
	Phase    float64 // of length, 0 up to but not including 1
	Length   time.Duration
}

// shifted returns when an occurrence runs, given the one after it.
func (s Spread) shifted(at, next time.Time, found bool) time.Time {
	room := s.Length
	if found {
		room = min(room, next.Sub(at))
	}
	return at.Add(time.Duration(s.Phase * float64(room)).Truncate(time.Millisecond))
}

// Evaluate returns the first shifted occurrence strictly after an instant. The error is that of Schedule.Evaluate, about all the
// questions together that it takes.
func (s Spread) Evaluate(after time.Time) (time.Time, bool, error) {
	return within(after, func(b *budget) (time.Time, bool) { return s.next(after, b) })
}

func (s Spread) next(after time.Time, b *budget) (time.Time, bool) {
	at, found := s.Schedule.ask(s.before(after, b), b)
	for found {
		following, more := s.Schedule.ask(at, b)
		if shifted := s.shifted(at, following, more); shifted.After(after) {
			return shifted, true
		}
		at, found = following, more
	}
	return time.Time{}, false
}

// before returns an instant before the only occurrence that can have begun by after and be shifted past it: the last one. Where
// many lie within the length of the spread, it searches for that one instead of walking through all.
func (s Spread) before(after time.Time, b *budget) time.Time {
	longest := s.Length.Truncate(time.Second) + time.Second
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
