package schedule

import "time"

// maxSampled bounds how many occurrences are looked at around one change of the clocks.
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

// around finds the first occurrence that a change of the clocks concerns. What clocks skip runs in the hour after the change, and
// what they show twice runs in the hour before it.
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

// hourly tells whether a rule names the minute of a wall time in each hour of its day, so that nobody waits for one hour of them.
func (s *Schedule) hourly(wall, at int64) bool {
	first := wall - floorMod(wall, daySeconds) + floorMod(wall, hourSeconds)
	for hour := range int64(24) {
		if !s.names(first+hour*hourSeconds, at) {
			return false
		}
	}
	return true
}
