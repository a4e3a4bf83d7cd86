package schedule

import (
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/zones"
)

// Note says why an occurrence is not simply at the wall clock that the rule names: that wall clock does not exist on the
// day ("02:30 does not exist on that day, runs at 03:30"), or it exists twice ("02:30 occurs twice, runs at the first"). It
// is empty for every other instant. Elapsed time and free hours have no notes, and RDATE lines have none: they are kept as instants.
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
		notes = append(notes, noteOfGap(skipped, shown))
	}
	if Again(at, s.zone.loc) > 0 && s.names(shown, instant) {
		notes = append(notes, noteOfTwo(shown))
	}
	return strings.Join(notes, "; ")
}

func noteOfGap(skipped, shown int64) string {
	if floorDiv(skipped, daySeconds) != floorDiv(shown, daySeconds) {
		return dateText(skipped) + " " + timeOfDay(skipped) + " does not exist, runs at " + dateText(shown) + " " + timeOfDay(shown)
	}
	return timeOfDay(skipped) + " does not exist on that day, runs at " + timeOfDay(shown)
}

func noteOfTwo(shown int64) string { return timeOfDay(shown) + " occurs twice, runs at the first" }

func (s *Schedule) names(wall, at int64) bool {
	b := budget(maxSteps)
	return slices.ContainsFunc(s.rules, func(rule *recurrence) bool { return at <= rule.until && rule.names(wall, &b) })
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
		limit = max(limit, rule.until)
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

// ClockChanges describes the first time that each change of the clocks within some days moves or doubles: "2026-10-25: 01:30 occurs
// twice, runs at the first". It leaves out the changes that move nothing.
func (s *Schedule) ClockChanges(after time.Time, days int) (changes []string) {
	for change := range zones.Changes(s.zone.loc, after, after.AddDate(0, 0, days)) {
		if _, moved := s.fates(change); moved != "" {
			changes = append(changes, dateText(min(s.zone.shownAt(change)))+": "+moved)
		}
	}
	return changes
}

// NextChange describes the lines when the clocks are changed next: "2026-10-25 from 02:00 to 01:00; the hour is free,
// runs in both". Of a text that is a cron expression, it adds what cron(8) does otherwise. It is empty if clocks are not changed within a year of
// the next occurrence, or if no line lasts until then.
func (s *Schedule) NextChange(after time.Time, text string) string {
	first, _ := s.Next(after)
	from := time.Unix(max(after.Unix(), first.Unix()-longestChange), 0).UTC()
	for change := range zones.Changes(s.zone.loc, from, from.AddDate(0, 0, 366)) {
		told, _ := s.changeText(change, text)
		return told
	}
	return ""
}

// CronDifferences describes the changes of the clocks in the year after an instant, as NextChange does, at which cron(8) runs a cron expression at
// other times than the schedule.
func (s *Schedule) CronDifferences(after time.Time, expression string) (differences []string) {
	for change := range zones.Changes(s.zone.loc, after, after.AddDate(0, 0, 366)) {
		if told, differs := s.changeText(change, expression); differs {
			differences = append(differences, told)
		}
	}
	return differences
}

// changeText describes the lines at a change of the clocks, and whether cron(8) would run the text otherwise. It is empty if no line lasts until then.
func (s *Schedule) changeText(change time.Time, text string) (told string, cronDiffers bool) {
	fates, moved := s.fates(change)
	if len(fates) == 0 {
		return "", false
	}
	before, behind := s.zone.shownAt(change)
	others := s.cronFate(text, change, before, behind)
	if cronDiffers = moved != "" && others != ""; cronDiffers {
		fates = append(fates, others)
	}
	return dateText(before) + " from " + timeOfDay(before) + " to " + timeOfDay(behind) + "; " + strings.Join(fates, "; "), cronDiffers
}

// fates describes the lines that last until a change of the clocks, and the first that this moves.
func (s *Schedule) fates(change time.Time) (all []string, moved string) {
	before, behind := s.zone.shownAt(change)
	for _, rule := range s.rules {
		if rule.until < change.Unix() {
			continue
		}
		fate, moves := rule.atChange(before, behind)
		if !slices.Contains(all, fate) {
			all = append(all, fate)
		}
		if moves && moved == "" {
			moved = fate
		}
	}
	return all, moved
}

// atChange describes the rule when clocks that show before are set to behind, both in wall time.
func (c *recurrence) atChange(before, behind int64) (fate string, moves bool) {
	b := budget(maxSteps)
	from, to := min(before, behind), max(before, behind)
	wall, found := c.wallAfter(from-1, floorDiv(to, daySeconds), &c.clock, &b)
	switch {
	case c.free && (c.elapsed || c.clock.pace.every > 1):
		return "elapsed time goes on", false
	case !found || wall >= to:
		return "names no time that is moved", false
	case c.free && behind < before:
		return "the hour is free, runs in both", false
	case c.free:
		return "the hour is free, nothing is made up", false
	case behind < before:
		return noteOfTwo(wall), true
	default:
		return noteOfGap(wall, wall+behind-before), true
	}
}
