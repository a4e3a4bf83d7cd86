package schedule

import (
	"math/bits"
	"slices"
	"time"

	"github.com/teambition/rrule-go"
)

// dayRule yields the days of a rule, in each INTERVALth period from dtstart on. The library cannot be interrupted, so the calendar is searched
// here.
type dayRule struct {
	filter dayFilter
	months bool  // base, step and span are in months since year 0, else in days since 1970
	base   int64 // the beginning of one period
	step   int64 // from one period to the next
	span   int64 // the length of a period
}

const (
	// horizon is the instant at which all rules end, 2300-01-01T00:00:00Z. Past it nothing is planned.
	horizon     = 10_413_792_000
	horizonYear = 2300
)

func newDayRule(option *rrule.ROption, dtstart int64) dayRule {
	d := dayRule{filter: newDayFilter(option), base: floorDiv(dtstart, daySeconds), step: int64(option.Interval), span: 1}
	year, month, _ := time.Unix(dtstart, 0).UTC().Date()
	switch option.Freq {
	case rrule.WEEKLY:
		d.base -= floorMod(d.base+3-int64(option.Wkst.Day()), 7) // day 0 was a Thursday
		d.step, d.span = d.step*7, 7
	case rrule.MONTHLY:
		d.months, d.base = true, int64(year*12+int(month)-1)
	case rrule.YEARLY:
		d.months, d.base, d.step, d.span = true, int64(year*12), d.step*12, 12
	case rrule.DAILY:
	default: // finer than a day: the INTERVAL is the clock's business
		d.step = 1
	}
	return d
}

// lastDay returns the last day that clocks can show at an instant: none is a day ahead.
func lastDay(at int64) int64 { return floorDiv(at, daySeconds) + 1 }

func (d *dayRule) from(day, last int64, b *budget) (int64, bool) {
	for day <= last && b.step() {
		at := dateOf(day)
		if d.step > d.span { // behind a period it goes on with the next one
			now := d.unit(&at)
			if gone := floorMod(now-d.base, d.step); gone >= d.span {
				day = d.dayOf(now - gone + d.step)
				continue
			}
		}
		wait := d.filter.wait(&at)
		if wait == 0 {
			return day, true
		}
		day += wait
	}
	return 0, false
}

func (d *dayRule) unit(at *date) int64 {
	if d.months {
		return int64(at.year*12 + at.month - 1)
	}
	return at.day
}

func (d *dayRule) dayOf(unit int64) int64 {
	if d.months {
		return firstOfMonth(0, int(unit)+1)
	}
	return unit
}

// positions are the numbers of BYSETPOS. They choose among the times of one period, whose days are seen as a whole.
type positions []int

const longestPeriod = 366

// from returns the first wall time, not before another, that the positions choose; the search ends with the period of the last day.
func (p positions) from(wall, last int64, days *dayRule, clock *dayClock, b *budget) (int64, bool) {
	day, ok := days.from(floorDiv(wall, daySeconds), last, b)
	for ok {
		at := dateOf(day)
		now := days.unit(&at)
		now -= floorMod(now-days.base, days.step)
		begin, end := days.dayOf(now), days.dayOf(now+days.span)-1
		if chosen, found := p.choose(begin, end, wall, days, clock, b); found {
			return chosen, true
		}
		day, ok = days.from(end+1, last, b)
	}
	return 0, false
}

func (p positions) choose(begin, end, wall int64, days *dayRule, clock *dayClock, b *budget) (int64, bool) {
	b.take(len(p))
	var list [longestPeriod]int64
	best, times := int64(endless), clock.count()
	first := days.first(list[:0], begin, end, daysOf(slices.Max(p), times), b)
	last := days.last(first[len(first):], begin, end, daysOf(-slices.Min(p), times), b)
	for _, position := range p {
		set, index := first, position-1
		if position < 0 {
			set, index = last, len(last)*times+position
		}
		if index < 0 || index >= len(set)*times {
			continue
		}
		if at := set[index/times]*daySeconds + clock.at(index%times); at >= wall {
			best = min(best, at)
		}
	}
	return best, best != endless
}

func daysOf(wanted, times int) int { return (max(wanted, 0) + times - 1) / times }

func (d *dayRule) first(to []int64, begin, end int64, most int, b *budget) []int64 {
	for len(to) < most {
		day, ok := d.from(begin, end, b)
		if !ok {
			break
		}
		to, begin = append(to, day), day+1
	}
	return to
}

// last appends the last ones, and perhaps some before them. It looks farther and farther back, as they mostly are among the last days.
func (d *dayRule) last(to []int64, begin, end int64, want int, b *budget) []int64 {
	if want == 0 {
		return to
	}
	for from := end - int64(8*want); ; from = end - 4*(end-from) {
		found := d.first(to, max(from, begin), end, longestPeriod, b)
		if from <= begin || len(found) >= want {
			return found
		}
	}
}

// pace is the slots in which a rule finer than a day may occur: every so many, counted from one.
type pace struct {
	slot  int64 // seconds in a slot
	every int64 // slots from one that counts to the next; 1 when the INTERVAL is not the clock's business
	start int64 // the beginning of one that counts
}

// from returns the first second, not before another, in a slot that counts.
func (p *pace) from(at int64) int64 {
	if gone := floorMod(at-p.start, p.slot*p.every); gone >= p.slot {
		return at - gone + p.slot*p.every
	}
	return at
}

// dayClock says at which seconds of a day a rule occurs. The INTERVAL of rules finer than a day counts on from day to day.
type dayClock struct {
	hours, minutes, seconds uint64 // bit n is set when n is allowed

	pace pace // on the wall clock
}

func newDayClock(option *rrule.ROption, dtstart int64) dayClock {
	c := dayClock{
		hours: bitsOf(option.Byhour, 24), minutes: bitsOf(option.Byminute, 60), seconds: bitsOf(option.Bysecond, 60),
		pace: pace{slotSeconds(option.Freq), 1, dtstart},
	}
	if option.Freq > rrule.DAILY {
		c.pace.every = int64(option.Interval)
	}
	c.pace.start -= floorMod(dtstart, c.pace.slot)
	return c
}

var midnight = []int{0}

func slotSeconds(freq rrule.Frequency) int64 {
	switch freq {
	case rrule.HOURLY:
		return hourSeconds
	case rrule.MINUTELY:
		return int64(time.Minute / time.Second)
	default:
		return 1
	}
}

// bitsOf sets the bits of a list; an empty list allows everything below limit.
func bitsOf(list []int, limit int) uint64 {
	if len(list) == 0 {
		return 1<<limit - 1
	}
	set := uint64(0)
	for _, n := range list {
		set |= 1 << n
	}
	return set
}

// from returns the first second of the day, not before second, at which the rule occurs. day counts since 1970.
func (c *dayClock) from(day, second int64, b *budget) (int64, bool) {
	for second < daySeconds {
		hour, minute := second/hourSeconds, second/60%60
		switch {
		case c.hours>>hour&1 == 0:
			second = ahead(c.hours, hour) * hourSeconds
		case c.minutes>>minute&1 == 0:
			second = hour*hourSeconds + min(ahead(c.minutes, minute), 60)*60
		case c.seconds>>(second%60)&1 == 0:
			second += min(ahead(c.seconds, second%60), 60) - second%60
		case !b.step():
			return 0, false
		default:
			at := day*daySeconds + second
			counts := c.pace.from(at)
			if counts == at {
				return second, true
			}
			second += counts - at
		}
	}
	return 0, false
}

func (c *dayClock) count() int {
	return bits.OnesCount64(c.hours) * bits.OnesCount64(c.minutes) * bits.OnesCount64(c.seconds)
}

func (c *dayClock) at(number int) int64 {
	seconds := bits.OnesCount64(c.seconds)
	minutes := bits.OnesCount64(c.minutes) * seconds
	return member(c.hours, number/minutes)*hourSeconds + member(c.minutes, number%minutes/seconds)*60 + member(c.seconds, number%seconds)
}

func member(set uint64, place int) int64 {
	for range place {
		set &= set - 1
	}
	return int64(bits.TrailingZeros64(set))
}

// ahead returns the first number from n on that is allowed, or at least 60.
func ahead(set uint64, n int64) int64 {
	return n + int64(bits.TrailingZeros64(set>>n))
}

// meets reports whether the INTERVAL ever falls into the allowed times. What it has in common with a length decides that: of a day, or of what
// clocks are changed by when they move against the INTERVAL.
func (c *dayClock) meets(length int64, b *budget) bool {
	common := *c
	for rest := max(1, length/c.pace.slot); rest != 0; {
		common.pace.every, rest = rest, common.pace.every%rest
	}
	_, ok := common.from(0, 0, b)
	return ok
}
