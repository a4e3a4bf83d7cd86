package schedule

import (
	"time"

	"github.com/teambition/rrule-go"
)

// endless is later than every instant. It leaves room for sums.
const endless = 1 << 61

// recurrence is one RRULE line, ready to be asked. Implementations are read only.
type recurrence interface {
	// next returns the first instant strictly after another. The ticks belong to the caller and to this recurrence.
	next(after int64, t *ticks) (int64, bool)

	// names tells whether a wall time is among those that the rule names, which elapsed time has none of.
	names(wall int64) bool

	// end returns the instant after which nothing comes; horizon-1 when the rule has no end of its own.
	end() int64
}

// newRecurrence prepares a rule for a zone and the wall time of dtstart.
func newRecurrence(r *ruleLine, z zone, dtstart int64) (recurrence, error) {
	until := int64(horizon - 1)
	if r.hasUntil {
		until = min(until, r.until)
	}
	if r.Freq > rrule.DAILY && !filtersDays(&r.ROption) && !filtersTimes(&r.ROption) {
		return newElapsed(r, z, dtstart, until), nil
	}
	return newCalendar(r, z, dtstart, until)
}

// filtersDays tells whether a rule has a part that chooses days.
func filtersDays(o *rrule.ROption) bool {
	return len(o.Bymonth)+len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byweekday) > 0
}

func filtersTimes(o *rrule.ROption) bool {
	return len(o.Byhour)+len(o.Byminute)+len(o.Bysecond) > 0
}

// elapsed is a rule finer than a day without BY-parts: real time from dtstart on, whatever the clocks do.
type elapsed struct{ start, step, until int64 }

func newElapsed(r *ruleLine, z zone, dtstart, until int64) elapsed {
	start, _, _ := z.resolve(dtstart)
	step := slotSeconds(r.Freq) * int64(r.Interval)
	if r.Count > 0 {
		until = min(until, start+int64(r.Count-1)*step)
	}
	return elapsed{start: start, step: step, until: until}
}

func (e elapsed) next(after int64, _ *ticks) (int64, bool) {
	at := e.start
	if after >= e.start {
		at += (floorDiv(after-e.start, e.step) + 1) * e.step
	}
	return at, at <= e.until
}

func (elapsed) names(int64) bool { return false }

func (e elapsed) end() int64 { return e.until }

// calendar is every other rule: it names wall times, and the zone says when those are.
type calendar struct {
	zone    zone
	dtstart int64 // wall time
	until   int64 // the last instant
	clock   dayClock
	days    dayRule
}

func newCalendar(r *ruleLine, z zone, dtstart, until int64) (*calendar, error) {
	option := withDefaults(r.ROption, time.Unix(dtstart, 0).UTC())
	c := &calendar{zone: z, dtstart: dtstart, until: until, clock: newDayClock(&option, dtstart), days: newDayRule(option, dtstart)}
	if !c.clock.meets() {
		return nil, r.refuse("INTERVAL", "an INTERVAL that meets BYHOUR, BYMINUTE or BYSECOND when it is counted from dtstart", "one that never does")
	}
	if r.Count > 0 {
		c.until = c.last(r.Count)
	}
	return c, nil
}

// withDefaults writes down what a rule takes from dtstart, because dtstart will be moved.
func withDefaults(o rrule.ROption, dtstart time.Time) rrule.ROption {
	if len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byweekday) == 0 {
		switch o.Freq {
		case rrule.YEARLY:
			o.Bymonth = orDefault(o.Bymonth, int(dtstart.Month()))
			o.Bymonthday = []int{dtstart.Day()}
		case rrule.MONTHLY:
			o.Bymonthday = []int{dtstart.Day()}
		case rrule.WEEKLY:
			o.Byweekday = []rrule.Weekday{weekdays[(dtstart.Weekday()+6)%7]}
		}
	}
	if o.Freq <= rrule.DAILY {
		o.Byhour = orDefault(o.Byhour, dtstart.Hour())
	}
	if o.Freq <= rrule.HOURLY {
		o.Byminute = orDefault(o.Byminute, dtstart.Minute())
	}
	if o.Freq <= rrule.MINUTELY {
		o.Bysecond = orDefault(o.Bysecond, dtstart.Second())
	}
	return o
}

func orDefault(list []int, value int) []int {
	if len(list) > 0 {
		return list
	}
	return []int{value}
}

// last returns the instant of occurrence number count. The number of occurrences is bounded by the reader of rules.
func (c *calendar) last(count int) int64 {
	var seen ticks
	at := int64(-endless)
	for range count {
		next, ok := c.next(at, &seen)
		if !ok {
			break
		}
		at = next
	}
	return min(c.until, at)
}

// next finds the next instant of the wall times. Wall times rise from one call to the next, and so do their instants, but for one case: the wall
// times inside a gap run behind the gap, among those that the clocks really show there. Two wall times can even fall on one
// instant there, which then is one occurrence.
func (c *calendar) next(after int64, t *ticks) (int64, bool) {
	if after >= c.until {
		return 0, false
	}
	best, view := int64(endless), c.zone.outlook(max(after, c.dtstart-longestChange))
	if view.from < view.to {
		if wall, ok := c.wallAfter(view.from, t); ok && wall < view.to {
			best = wall - view.shift
		}
	}
	best = min(best, c.instantAfter(view.shown, after, t))
	return best, best <= c.until
}

func (c *calendar) names(wall int64) bool {
	next, ok := c.wallAfter(wall-1, new(ticks))
	return ok && next == wall
}

func (c *calendar) end() int64 { return c.until }

// instantAfter returns the first instant later than after that belongs to a wall time after wall, or endless.
func (c *calendar) instantAfter(wall, after int64, t *ticks) int64 {
	best := int64(endless)
	for {
		shown, ok := c.wallAfter(wall, t)
		if !ok {
			return best
		}
		at, resume, gap := c.zone.resolve(shown)
		if at > after {
			best = min(best, at)
		}
		if !gap && best != endless {
			return best
		}
		// Of a gap only the first wall time matters, against the first one behind it.
		wall = max(shown, resume-1)
	}
}

// wallAfter returns the first wall time of the rule after another.
func (c *calendar) wallAfter(wall int64, t *ticks) (int64, bool) {
	from := max(wall+1, c.dtstart)
	if c.days.unit == 1 {
		return t.from(&c.days, from)
	}
	day, ok := t.from(&c.days, floorDiv(from, daySeconds))
	for ok && day*daySeconds <= horizon+daySeconds {
		if second, found := c.clock.from(day, max(0, from-day*daySeconds)); found {
			return day*daySeconds + second, true
		}
		day, ok = t.from(&c.days, day+1)
	}
	return 0, false
}
