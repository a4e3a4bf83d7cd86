package schedule

import (
	"math/bits"
	"time"

	"github.com/teambition/rrule-go"
)

type date struct {
	day         int64 // since 1970
	year, month int
	monthDay    int // from 1
	yearDay     int // from 1
	weekday     int // from Monday, 0
}

// dateOf is time.Time.Date, YearDay and Weekday in one, since most steps are this (Neri and Schneider, Euclidean affine functions, 2023).
func dateOf(day int64) date {
	const fromMarch0 = 719_468 // days from March 1 of the year 0 to 1970
	quarters := 4*uint32(day+fromMarch0) + 3
	century, rest := quarters/146_097, quarters%146_097
	year, low := bits.Mul32(2_939_745, rest|3)
	inYear := low / 2_939_745 / 4
	months := 2_141*inYear + 197_913
	d := date{
		day: day, year: int(100*century + year), month: int(months >> 16), monthDay: int(months&0xffff/2_141) + 1,
		weekday: int(uint32(day+fromMarch0+2) % 7),
	}
	if inYear >= 306 { // January or February
		d.year, d.month, d.yearDay = d.year+1, d.month-12, int(inYear)-305
	} else {
		d.yearDay = int(inYear) + 60 + leap(d.year)
	}
	return d
}

func (d *date) yearLength() int { return 365 + leap(d.year) }

func (d *date) monthLength() int {
	if d.month == 2 {
		return 28 + leap(d.year)
	}
	return 30 + (d.month+d.month/8)%2
}

func leap(year int) int {
	if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 1
	}
	return 0
}

func firstOfMonth(year, month int) int64 {
	return floorDiv(time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC).Unix(), daySeconds)
}

// numbers is a list of numbers from 1 to 366, or from -1 to -366 where they count from the end.
type numbers struct{ fromStart, fromEnd [6]uint64 }

func (n *numbers) add(number int) {
	set := &n.fromStart
	if number < 0 {
		set, number = &n.fromEnd, -number
	}
	set[number/64] |= 1 << (number % 64)
}

func has(set *[6]uint64, number int) bool { return set[number/64]>>(number%64)&1 == 1 }

// next returns the first number from another on that is in the list, when the highest number is size; else size+1.
func (n *numbers) next(number, size int) int {
	next := size + 1
	for word, low := number/64, number%64; word < len(n.fromStart); word, low = word+1, 0 {
		if set := n.fromStart[word] >> low << low; set != 0 {
			next = min(next, word*64+bits.TrailingZeros64(set))
			break
		}
	}
	last := size + 1 - number // counted from the end, the numbers fall
	for word, high := last/64, 63-last%64; word >= 0; word, high = word-1, 0 {
		if set := n.fromEnd[word] << high >> high; set != 0 {
			return min(next, size+1-(word*64+63-bits.LeadingZeros64(set)))
		}
	}
	return next
}

// dayFilter says which days of the calendar a rule names: its parts from BYMONTH to BYDAY. It gives the days that the library would.
type dayFilter struct {
	months   uint64 // bit 1 is January
	weekdays uint64 // bit 0 is Monday

	// The parts below are nil when they are absent.
	monthDays, yearDays *numbers
	weeks               *numbers
	ordinals            *[7]numbers // by weekday: the number of it in its month, or in its year

	inYear    bool // ordinals count in the year
	weekStart int  // from Monday, 0
	weekly    bool // a week belongs to the year in which it begins, as a whole
}

func newDayFilter(option *rrule.ROption) dayFilter {
	numbersOf := func(list []int) (set *numbers) {
		for i, number := range list {
			if i == 0 {
				set = new(numbers)
			}
			set.add(number)
		}
		return set
	}
	f := dayFilter{
		months: bitsOf(option.Bymonth, 13), weekdays: 1<<7 - 1, monthDays: numbersOf(option.Bymonthday), yearDays: numbersOf(option.Byyearday),
		weeks: numbersOf(option.Byweekno), weekStart: option.Wkst.Day(), weekly: option.Freq == rrule.WEEKLY,
		inYear: option.Freq == rrule.YEARLY && len(option.Bymonth) == 0,
	}
	for i, day := range option.Byweekday {
		if i == 0 {
			f.weekdays = 0
		}
		f.weekdays |= 1 << day.Day()
		if day.N() != 0 && f.ordinals == nil {
			f.ordinals = new([7]numbers)
		}
		if day.N() != 0 {
			f.ordinals[day.Day()].add(day.N())
		}
	}
	return f
}

// wait returns how many days after a day the next one comes that the rule may name; 0: the rule names this day.
func (f *dayFilter) wait(d *date) (wait int64) {
	if f.months>>d.month&1 == 0 {
		if later := f.months >> (d.month + 1); later != 0 {
			return firstOfMonth(d.year, d.month+1+bits.TrailingZeros64(later)) - d.day
		}
		return firstOfMonth(d.year+1, bits.TrailingZeros64(f.months&^1)) - d.day
	}
	if f.monthDays != nil {
		wait = int64(f.monthDays.next(d.monthDay, d.monthLength()) - d.monthDay)
	}
	if f.weekdays>>d.weekday&1 == 0 {
		wait = max(wait, int64(bits.TrailingZeros64((f.weekdays|f.weekdays<<7)>>d.weekday)))
	}
	if f.yearDays != nil {
		wait = max(wait, int64(f.yearDays.next(d.yearDay, d.yearLength())-d.yearDay))
	}
	switch {
	case f.ordinals != nil && wait == 0 && f.inYear && !f.hasOrdinal(d.weekday, d.yearDay, d.yearLength()),
		f.ordinals != nil && wait == 0 && !f.inYear && !f.hasOrdinal(d.weekday, d.monthDay, d.monthLength()):
		return 1
	case f.weeks != nil && !f.inWeeks(d):
		return max(wait, f.waitForWeek(d))
	default:
		return wait
	}
}

// waitForWeek returns how many days after one in no week of BYWEEKNO the next one may come. The days of a week that lie in one year go together.
// The number of a week differs by one at most from the one that the day of the year gives it.
func (f *dayFilter) waitForWeek(d *date) int64 {
	toNext := 7 - floorMod(int64(d.weekday-f.weekStart), 7)
	for week := (d.yearDay+6)/7 + 1; week < 50 && min(f.weeks.next(week-1, 52), f.weeks.next(week-1, 53)) > week+1; week++ {
		toNext += 7
	}
	return min(toNext, int64(d.yearLength()-d.yearDay+1))
}

func (f *dayFilter) hasOrdinal(weekday, number, length int) bool {
	list := &f.ordinals[weekday]
	return has(&list.fromStart, (number+6)/7) || has(&list.fromEnd, (length-number)/7+1)
}

// inWeeks reports whether the day lies in a week of BYWEEKNO. Week 1 is the first with four days in the year.
func (f *dayFilter) inWeeks(d *date) bool {
	year, index := d.year, d.yearDay-1
	if f.weekly {
		if back := int(floorMod(int64(d.weekday-f.weekStart), 7)); back > index {
			year--
			index += 365 + leap(year)
		}
	}
	length := 365 + leap(year)
	firstWeekday := int(floorMod(int64(d.weekday-index), 7))   // of the year
	early := int(floorMod(int64(f.weekStart-firstWeekday), 7)) // days before the first week that begins in the year
	weeks, first := (length-early)/7+(length-early)%7/4, early // first is the index at which week 1 begins
	if early >= 4 {
		first = early - 7
		weeks = (length-first)/7 + (length-first)%7/4
	}
	week := int(floorDiv(int64(index-first), 7)) + 1
	switch {
	case week > weeks: // the first of the next year
		return has(&f.weeks.fromStart, 1)
	case week >= 1:
		return has(&f.weeks.fromStart, week) || has(&f.weeks.fromEnd, weeks+1-week)
	case has(&f.weeks.fromEnd, 1): // the last of the year before
		return true
	}
	// In the year before, which counts as the library does: it calls some 52nd weeks the 53rd.
	before, last := 365+leap(year-1), 52+(length-first)%7/4
	since := int(floorMod(int64(firstWeekday-before-f.weekStart), 7)) // days from the beginning of the week to the first day of the year before
	if since >= 1 && since <= 3 {
		last = 52 + (before+since)%7/4
	}
	return has(&f.weeks.fromStart, last)
}
