package schedule

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/teambition/rrule-go"
)

// endless is later than every instant. It leaves room for sums.
const endless = 1 << 61

// recurrence is one RRULE line, ready to be asked. It names wall times, and the zone says when those are. One with a free hour runs whenever clocks
// show them.
type recurrence struct {
	until   int64 // the last instant
	zone    zone
	dtstart int64 // wall time; long ago for a free hour
	clock   dayClock
	days    dayRule
	chosen  positions // BYSETPOS

	// Of a free hour alone, whose clock has its pace in instants too:
	free    bool
	elapsed bool // without BY parts: real time from dtstart on, whatever the clocks do
	start   int64

	known atomic.Pointer[stretch] // the last one that took many steps to find; nil: none
}

func newRecurrence(r *ruleLine, z zone, dtstart int64, b *budget) (*recurrence, error) {
	option := r.ROption
	start, _, _ := z.resolve(dtstart)
	elapsed := r.Freq > rrule.DAILY && !filtersDays(&option) && !filtersTimes(&option)
	if elapsed { // it may run at any second
		option.Freq, option.Interval = rrule.SECONDLY, option.Interval*int(slotSeconds(r.Freq))
	}
	option = withDefaults(option, time.Unix(dtstart, 0).UTC())
	c := &recurrence{
		until: horizon - 1, zone: z, dtstart: dtstart, elapsed: elapsed,
		clock: newDayClock(&option, dtstart), days: newDayRule(&option, dtstart), chosen: option.Bysetpos,
	}
	if r.hasUntil {
		c.until = min(c.until, r.until)
	}
	length := int64(daySeconds)
	if c.free = r.Freq > rrule.DAILY && len(r.Byhour) == 0; c.free && z.loc != time.UTC {
		length = smallestChange
	}
	if !c.clock.meets(length, b) && !b.cut() {
		return nil, r.refuse("INTERVAL", "an INTERVAL that meets BYHOUR, BYMINUTE or BYSECOND when it is counted from dtstart", "one that never does")
	}
	if c.free {
		c.start, c.dtstart = start, -endless
		c.clock.pace.start -= dtstart - start
	}
	most := c.clock.count() // no period has more of times
	switch n := bits.OnesCount64(c.days.filter.weekdays); c.days.span {
	case 12:
		most *= 52*n + min(n, 2)
	default:
		most *= min(n, int(c.days.span))
		if c.days.months {
			most *= 4*n + min(n, 3)
		}
	}
	if len(c.chosen) > 0 && !slices.ContainsFunc(c.chosen, func(position int) bool { return max(position, -position) <= most }) {
		c.until = -endless
	}
	if r.Count > 0 {
		last := int64(-endless)
		for range r.Count {
			next := c.next(last, endless, b)
			if next == endless {
				break
			}
			last = next
		}
		c.until = min(c.until, last)
	}
	return c, nil
}

// withDefaults writes down the parts that a rule takes from dtstart.
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

// probe asks a rule for its first occurrences, and ends it with the last of them. dearest is the most steps that one took.
func probe(r *recurrence, b *budget) (dearest int, found bool) {
	at := int64(-endless)
	for range probes {
		before := *b
		next := r.next(at, endless, b)
		if b.cut() {
			return dearest, found
		}
		if next == endless {
			r.until = min(r.until, at)
			return dearest, found
		}
		dearest, at, found = max(dearest, int(before-*b)), next, true
	}
	return dearest, found
}

func filtersDays(o *rrule.ROption) bool {
	return len(o.Bymonth)+len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byweekday) > 0
}

func filtersTimes(o *rrule.ROption) bool {
	return len(o.Byhour)+len(o.Byminute)+len(o.Bysecond) > 0
}

// stretch is a time without occurrences between an instant and the next one. Long ones are dear to search, so the last is remembered.
type stretch struct{ after, end int64 }

const worthKeeping = 16

func orDefault(list []int, value int) []int {
	if len(list) > 0 {
		return list
	}
	return []int{value}
}

// next returns the first instant strictly after one and before another, or that other one when there is none. The other is endless, or the next
// occurrence of what the set has besides. It means nothing when the budget is cut. What was dear to find is remembered.
func (c *recurrence) next(after, before int64, b *budget) int64 {
	if after >= c.until {
		return before
	}
	if c.elapsed {
		if at := c.clock.pace.from(max(after+1, c.start)); at <= c.until {
			return min(at, before)
		}
		return before
	}
	known := c.known.Load()
	if known == nil || after >= known.end {
		known = &stretch{endless, endless}
	}
	if known.after <= after {
		b.step()
		return min(before, known.end)
	}
	spent := *b
	search := c.search
	if c.free {
		search = c.shown
	}
	at := search(after, lastDay(min(c.until, before, known.after)), b)
	if at > known.after { // the occurrences behind are known
		at = known.end
	}
	if at > c.until {
		at = before
	}
	next := min(at, before)
	if !b.cut() && spent-*b >= worthKeeping {
		c.known.Store(&stretch{after, next})
	}
	return next
}

// search finds the next instant up to a day, or endless. Instants rise with wall times, except that times inside a gap run behind it, among
// those that the clocks show there; two of them may fall on one instant.
func (c *recurrence) search(after, last int64, b *budget) int64 {
	b.take(c.zone.steps())
	best, found := int64(endless), int64(endless)
	from := max(after, c.dtstart-longestChange)
	now, before := c.zone.offset(from), c.zone.offset(from-longestChange)
	seen := from + now // the time on the clock
	if now != before {
		change := c.zone.changed(from-longestChange, from)
		seen = max(seen, change+before-1)                   // all wall times of an overlap ran the first time round
		if resumed := change + now; from+before < resumed { // times of a gap run behind it
			if wall, ok := c.wallAfter(from+before, last, &c.clock, b); ok && wall < resumed {
				best = wall - before
			}
		}
	}
	for wall := seen; ; {
		shown, ok := c.wallAfter(wall, last, &c.clock, b)
		if !ok {
			return min(best, found)
		}
		b.take(c.zone.steps())
		at, resume, gap := c.zone.resolve(shown)
		if at > after {
			found = min(found, at)
		}
		if !gap && found != endless {
			return min(best, found)
		}
		// Of a gap only the first wall time matters, against the first one behind it.
		wall = max(shown, resume-1)
	}
}

// shown is search for a free hour: of each time in which clocks keep their offset it looks at what they show. They move against the slots of
// the INTERVAL, which are elapsed time.
func (c *recurrence) shown(after, last int64, b *budget) int64 {
	for at := max(after+1, c.start); b.take(c.zone.steps()); {
		at = c.clock.pace.from(at)
		offset, end := c.zone.offset(at), at+longestChange
		if c.zone.offset(end) != offset {
			end = c.zone.changed(at, end)
		}
		clock := c.clock
		clock.pace.start += offset
		wall, ok := c.wallAfter(at+offset-1, min(last, floorDiv(end+offset, daySeconds)), &clock, b)
		if ok && wall < end+offset {
			return wall - offset
		}
		// However clocks are changed, up to a day before the next time of any slot they show none.
		clock.pace.every = 1
		if wall, ok = c.wallAfter(at+offset-longestChange-1, last, &clock, b); !ok {
			break
		}
		at = max(end, wall-offset-longestChange)
	}
	return endless
}

// form is the form of the rule from its second occurrence on: wherever it begins, the same form goes on alike.
func (c *recurrence) form() any {
	clock, days := c.clock, c.days
	clock.pace.start, days.base = floorMod(clock.pace.start, clock.pace.slot*clock.pace.every), floorMod(days.base, days.step)
	return []any{clock, days, c.chosen, c.free}
}

// names reports whether the rule names a wall time. A free hour has none.
func (c *recurrence) names(wall int64, b *budget) bool {
	if c.free {
		return false
	}
	next, ok := c.wallAfter(wall-1, lastDay(c.until), &c.clock, b)
	return ok && next == wall
}

func (c *recurrence) wallAfter(wall, last int64, clock *dayClock, b *budget) (int64, bool) {
	from := max(wall+1, c.dtstart)
	if len(c.chosen) > 0 {
		return c.chosen.from(from, last, &c.days, clock, b)
	}
	day, ok := c.days.from(floorDiv(from, daySeconds), last, b)
	for ok {
		if second, found := clock.from(day, max(0, from-day*daySeconds), b); found {
			return day*daySeconds + second, true
		}
		day, ok = c.days.from(floorDiv(clock.pace.from((day+1)*daySeconds), daySeconds), last, b)
	}
	return 0, false
}
