package model

import (
	"strings"
	"time"
)

// lintedDays is how far ahead changes of the clocks are looked at: two years.
const lintedDays = 2 * 366

// maxSampled bounds how many occurrences a lint looks at around one change of the clocks.
const maxSampled = 500

// clockChanges warns of occurrences that a change of the clocks moves, or that come twice on the clock.
func (l *linter) clockChanges() {
	z, err := loadZone(l.m.Zone())
	if err != nil || z.loc == time.UTC {
		return
	}
	var notes []string
	from := l.now.Unix()
	for to := from + daySeconds; to < from+lintedDays*daySeconds; to += daySeconds {
		if z.offset(to-daySeconds) == z.offset(to) {
			continue
		}
		if note := l.noteAround(z, z.changed(to-daySeconds, to)); note != "" {
			notes = append(notes, note)
		}
	}
	if len(notes) > 0 {
		l.warn("rrule", "meets changes of the clocks: %s", strings.Join(notes, "; "))
	}
}

// noteAround is what becomes of the first occurrence that a change of the clocks concerns; empty: there is none. What clocks skip
// runs in the hour after the change, and what they show twice runs in the hour before it.
func (l *linter) noteAround(z zone, change int64) string {
	from, to := change, change+z.offset(change)-z.offset(change-1)
	if to < from {
		from, to = to, from
	}
	at, end := time.Unix(from-1, 0), time.Unix(to, 0)
	for range maxSampled {
		next, found := l.m.Schedule.Next(at)
		if !found || !next.Before(end) {
			break
		}
		if note := l.m.Schedule.Note(next); note != "" {
			return next.In(z.loc).Format(time.DateOnly) + ": " + note
		}
		at = next
	}
	return ""
}
