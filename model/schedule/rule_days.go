package schedule

import (
	"time"

	"github.com/teambition/rrule-go"
)

// dayRule yields the days of a rule: everything but its times of the day. The library walks from DTSTART on and knows no
// other bound than its last year, 9999. Therefore it is given a DTSTART that was moved to the period in question, and all of
// it takes place era seconds later, close to that year, so that a search for a day that never comes ends after some
// hundred years. The calendar repeats after 400 years, weekdays included.
type dayRule struct {
	option rrule.ROption // without Dtstart; read only, shared
	plain  bool          // every step days, no filter: needs no library
	months bool          // base and step are in months since year 0, else in days since 1970
	base   int64         // the first period
	step   int64
	unit   int64 // seconds in a tick: a day, or 1 when BYSETPOS chooses among the times of days, which the library then walks
}

const (
	era = 19 * 146_097 * daySeconds // 7600 years

	// horizon is the instant at which all rules end, 2300-01-01T00:00:00Z. Past it nothing is planned.
	horizon     = 10_413_792_000
	horizonYear = 2300
)

// newDayRule takes the options of a rule with its defaults filled in, and the wall time of dtstart.
func newDayRule(option rrule.ROption, dtstart int64) dayRule {
	d := dayRule{option: option, base: floorDiv(dtstart, daySeconds), step: int64(option.Interval), unit: daySeconds}
	if option.Freq > rrule.DAILY {
		d.option.Freq, d.option.Interval, d.step = rrule.DAILY, 1, 1
	}
	if len(option.Bysetpos) > 0 {
		d.unit = 1
	} else {
		d.option.Byhour, d.option.Byminute, d.option.Bysecond = midnight, midnight, midnight
	}
	d.plain = d.option.Freq == rrule.DAILY && !filtersDays(&option) && len(option.Bysetpos) == 0
	d.setPeriod(dtstart)
	d.option.Count = 0 // counted from the moved DTSTART it would end too early
	d.option.Until = time.Unix(horizon+era+daySeconds, 0).UTC()
	return d
}

var midnight = []int{0}

// setPeriod puts base at the beginning of the period of dtstart. A period must be seen as a whole, because BYSETPOS counts
// in it and because the 31st cannot be moved by a month.
func (d *dayRule) setPeriod(dtstart int64) {
	year, month, _ := time.Unix(dtstart, 0).UTC().Date()
	switch {
	case d.option.Freq == rrule.WEEKLY:
		d.base -= floorMod(d.base+3-int64(d.option.Wkst.Day()), 7) // day 0 was a Thursday
		d.step *= 7
	case d.option.Freq == rrule.YEARLY && len(d.option.Bymonth) == 1:
		// The same days as a month every so many years, without the library's look at 365 days a year.
		d.option.Freq, d.option.Interval = rrule.MONTHLY, d.option.Interval*12
		d.months, d.base, d.step = true, int64(year*12+d.option.Bymonth[0]-1), d.step*12
	case d.option.Freq == rrule.YEARLY:
		d.months, d.base, d.step = true, int64(year*12), d.step*12
	case d.option.Freq == rrule.MONTHLY:
		d.months, d.base = true, int64(year*12+int(month)-1)
	}
}

// period returns the beginning of the last period that does not begin after wall.
func (d *dayRule) period(wall int64) time.Time {
	now := floorDiv(wall, daySeconds)
	if d.months {
		year, month, _ := time.Unix(wall, 0).UTC().Date()
		now = int64(year*12 + int(month) - 1)
	}
	at := d.base + max(0, floorDiv(now-d.base, d.step))*d.step
	if d.months {
		return time.Unix(time.Date(int(at/12), time.Month(at%12+1), 1, 0, 0, 0, 0, time.UTC).Unix()+era, 0).UTC()
	}
	return time.Unix(at*daySeconds+era, 0).UTC()
}

// walk starts the library at the period of wall. Each walk builds a rule of its own: a built one is not safe to share.
func (d *dayRule) walk(wall int64) rrule.Next {
	option := d.option
	option.Dtstart = d.period(wall)
	rule, err := rrule.NewRRule(option)
	if err != nil {
		panic(err) // the reader of rules lets nothing pass that the library refuses
	}
	return rule.Iterator()
}

// ticks reads the ticks of a dayRule in rising order: numbers of days since 1970, or wall times when the unit is a second.
// The zero value is at the beginning. It remembers its place, so that a run of calls is cheap.
type ticks struct {
	next  rrule.Next
	asked int64
	tick  int64
	ok    bool
}

// from returns the first tick that is not before at.
func (t *ticks) from(d *dayRule, at int64) (int64, bool) {
	if d.plain {
		return d.base + max(0, -floorDiv(d.base-at, d.step))*d.step, true
	}
	if t.next == nil || at < t.asked {
		t.next = d.walk(at * d.unit)
		t.pull(d)
	}
	for t.ok && t.tick < at {
		t.pull(d)
	}
	t.asked = at
	return t.tick, t.ok
}

func (t *ticks) pull(d *dayRule) {
	var at time.Time
	if at, t.ok = t.next(); t.ok {
		t.tick = floorDiv(at.Unix()-era, d.unit)
	}
}
