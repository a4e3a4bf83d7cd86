package schedule

import (
	"slices"
	"strings"
	"time"
)

// Note tells why an occurrence is not simply at the wall clock that the rule names: that wall clock does not exist on the
// day ("02:30 does not exist on that day, runs at 03:30"), or it exists twice ("02:30 occurs twice, runs at the first"). It
// is empty for every other instant. Elapsed time has no notes, and RDATE lines have none: they are kept as instants.
func (s *Schedule) Note(at time.Time) string {
	instant := at.Unix()
	if _, excluded := slices.BinarySearch(s.except, instant); excluded || at.Nanosecond() != 0 {
		return ""
	}
	shown := instant + s.zone.offset(instant)
	skipped := instant + s.zone.offset(instant-longestChange)
	var notes []string
	if skipped != shown && s.zone.skips(skipped, instant) && s.names(skipped, instant) {
		notes = append(notes, noteOfGap(skipped, shown))
	}
	if s.zone.repeats(shown, instant) && s.names(shown, instant) {
		notes = append(notes, timeOfDay(shown)+" occurs twice, runs at the first")
	}
	return strings.Join(notes, "; ")
}

// names tells whether a rule that has not ended at an instant names a wall time.
func (s *Schedule) names(wall, at int64) bool {
	return slices.ContainsFunc(s.rules, func(rule recurrence) bool { return at <= rule.end() && rule.names(wall) })
}

// skips tells whether clocks never show wall, and at stands in for it.
func (z zone) skips(wall, at int64) bool {
	standIn, _, gap := z.resolve(wall)
	return gap && standIn == at
}

// repeats tells whether clocks show wall at an instant and once more later.
func (z zone) repeats(wall, at int64) bool {
	later := z.offset(wall + daySeconds)
	return wall-later > at && z.offset(wall-later) == later
}

func noteOfGap(wall, shown int64) string {
	if floorDiv(wall, daySeconds) == floorDiv(shown, daySeconds) {
		return timeOfDay(wall) + " does not exist on that day, runs at " + timeOfDay(shown)
	}
	return dateText(wall) + " " + timeOfDay(wall) + " does not exist, runs at " + dateText(shown) + " " + timeOfDay(shown)
}

func dateText(wall int64) string { return time.Unix(wall, 0).UTC().Format(time.DateOnly) }

// timeOfDay renders the time of day, with seconds when there are any.
func timeOfDay(wall int64) string {
	if wall%60 == 0 {
		return time.Unix(wall, 0).UTC().Format("15:04")
	}
	return time.Unix(wall, 0).UTC().Format(time.TimeOnly)
}

// Ends returns the last occurrence of a schedule that is limited by COUNT, UNTIL or RDATE, in UTC; ends is false for one that
// goes on to the year 2300.
func (s *Schedule) Ends() (last time.Time, ends bool) {
	limit := int64(-endless)
	if len(s.dates) > 0 {
		limit = s.dates[len(s.dates)-1]
	}
	for _, rule := range s.rules {
		limit = max(limit, rule.end())
	}
	if limit >= horizon-1 {
		return time.Time{}, false
	}
	// Something comes after each instant before the last occurrence, and nothing after it.
	before, end := int64(-daySeconds*400), limit
	for before+1 < end {
		middle := before + (end-before)/2
		if _, more := s.next(middle); more {
			before = middle
		} else {
			end = middle
		}
	}
	return time.Unix(end, 0).UTC(), true
}
