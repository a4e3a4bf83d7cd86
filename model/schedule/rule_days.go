package schedule

import (
	"math/bits"
	"time"

	"github.com/teambition/rrule-go"
)

// dayRule yields the days of a rule: those that its BY parts name, in each INTERVALth day, week, month or year from dtstart on. The
// library can neither be interrupted nor counted while it searches, so it is not asked: the calendar is looked at directly, in steps.
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

// newDayRule takes the options of a rule with its defaults filled in, and the wall time of dtstart.
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

// from returns the first day of the rule that is neither before a day nor after the last.
func (d *dayRule) from(day, last int64, b *budget) (int64, bool) {
	for day <= last && b.step() {
		at := dateOf(day)
		if begin := d.begin(&at); begin > day {
			day = begin
			continue
		}
		wait := d.filter.wait(&at)
		if wait == 0 {
			return day, true
		}
		day += wait
	}
	return 0, false
}

// begin returns the day itself when it lies in a period, or else the first day of the next one.
func (d *dayRule) begin(at *date) int64 {
	if d.step == d.span {
		return at.day
	}
	now := d.unit(at)
	gone := floorMod(now-d.base, d.step)
	if gone < d.span {
		return at.day
	}
	return d.dayOf(now - gone + d.step)
}

// period returns the first and the last day of the period of a day. It must lie in one.
func (d *dayRule) period(day int64) (first, last int64) {
	at := dateOf(day)
	now := d.unit(&at)
	begin := now - floorMod(now-d.base, d.step)
	return d.dayOf(begin), d.dayOf(begin+d.span) - 1
}

// most returns a number of days that no period has more of.
func (d *dayRule) most() int {
	if d.months {
		return int(d.span) * 31
	}
	return min(int(d.span), bits.OnesCount64(d.filter.weekdays))
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
