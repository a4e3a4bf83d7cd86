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
	standIn, _, gap := s.zone.resolve(skipped)
	if skipped != shown && gap && standIn == instant && s.names(skipped, instant) {
		note := timeOfDay(skipped) + " does not exist on that day, runs at " + timeOfDay(shown)
		if floorDiv(skipped, daySeconds) != floorDiv(shown, daySeconds) {
			note = dateText(skipped) + " " + timeOfDay(skipped) + " does not exist, runs at " + dateText(shown) + " " + timeOfDay(shown)
		}
		notes = append(notes, note)
	}
	later := s.zone.offset(shown + daySeconds)
	if again := shown - later; again > instant && s.zone.offset(again) == later && s.names(shown, instant) {
		notes = append(notes, timeOfDay(shown)+" occurs twice, runs at the first")
	}
	return strings.Join(notes, "; ")
}

func (s *Schedule) names(wall, at int64) bool {
	b := budget(maxSteps)
	return slices.ContainsFunc(s.rules, func(rule recurrence) bool { return at <= rule.ends() && rule.names(wall, &b) })
}

func dateText(wall int64) string { return time.Unix(wall, 0).UTC().Format(time.DateOnly) }

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
		limit = max(limit, rule.ends())
	}
	if limit >= horizon-1 {
		return time.Time{}, false
	}
	// Something comes after each instant before the last occurrence, and nothing after it.
	end := firstThat(-daySeconds*400, limit, func(at int64) bool {
		_, more := s.Next(time.Unix(at, 0))
		return !more
	})
	return time.Unix(end, 0).UTC(), true
}

const maxSampled = 500

// ClockChange is an occurrence that a change of the clocks moves, or that comes twice on the clock.
type ClockChange struct {
	Day  string // on which it happens, as 2006-01-02
	Note string // what becomes of the occurrence, see Note
}

// ClockChanges returns the first occurrence that each change of the clocks within some days moves or doubles, of what does not run in each hour.
func (s *Schedule) ClockChanges(after time.Time, days int64) (changes []ClockChange) {
	if s.zone.loc == time.UTC {
		return nil
	}
	from := after.Unix()
	for to := from + daySeconds; to < from+days*daySeconds; to += daySeconds {
		if s.zone.offset(to-daySeconds) == s.zone.offset(to) {
			continue
		}
		if change, found := s.around(s.zone.changed(to-daySeconds, to)); found {
			changes = append(changes, change)
		}
	}
	return changes
}

// around finds the first occurrence that a change of the clocks moves. Skipped times run in the hour after it, doubled ones in the hour before.
func (s *Schedule) around(change int64) (ClockChange, bool) {
	from, to := change, change+s.zone.offset(change)-s.zone.offset(change-1)
	if to < from {
		from, to = to, from
	}
	at, end := time.Unix(from-1, 0), time.Unix(to, 0)
	for range maxSampled {
		next, found := s.Next(at)
		if !found || !next.Before(end) {
			break
		}
		shown, skipped := next.Unix()+s.zone.offset(next.Unix()), next.Unix()+s.zone.offset(next.Unix()-longestChange)
		if note := s.Note(next); note != "" && !s.hourly(shown, next.Unix()) && !s.hourly(skipped, next.Unix()) {
			return ClockChange{next.In(s.zone.loc).Format(time.DateOnly), note}, true
		}
		at = next
	}
	return ClockChange{}, false
}

func (s *Schedule) hourly(wall, at int64) bool {
	first := wall - floorMod(wall, daySeconds) + floorMod(wall, hourSeconds)
	for hour := range int64(24) {
		if !s.names(first+hour*hourSeconds, at) {
			return false
		}
	}
	return true
}
