package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

const dayMinutes = 24 * 60

func (p *phrase) lines() (lines []rrule.ROption) {
	switch {
	case p.once && p.anyDay() && p.unit+p.pace == "" && len(p.clocks) == p.count:
		p.startAt(p.clocks[0])
		return []rrule.ROption{{Freq: rrule.DAILY, Count: 1}}
	case p.once:
		p.refuse("a refresh that comes once has a date and a time, such as once on 1 March 2030 at 6:00")
	case p.pace == "" && (p.nonstop || len(p.past)+len(p.between)+len(p.first) > 0):
		p.refuse("how often between or from these times is not said: every 30 minutes between 9:00 and 17:00")
	case p.pace != "" && p.isElapsed():
		return []rrule.ROption{p.elapsed()}
	case p.pace != "":
		p.paceClocks()
	}
	p.refuseIf((p.nights || p.falls) && !p.anyDay(), "the night of a day may be the one before it or behind it; write Sunday at 23:00 or Monday at 2:00")
	p.refuseIf(p.count > 0 && p.unit+p.pace == "" && !p.everyUnit, document.Found(p.counted)+" is per day, week or month") // "once at 9:00"
	days := p.days()
	if begins := p.begins(); !p.start.IsZero() && p.interval > 1 && (p.unit == "week" && !slices.Contains(p.weekdays, weekdayOf(begins)) ||
		p.unit == "month" && len(p.ordinals) > 0 && !slices.Contains(p.ordinals, begins.Day())) {
		p.refuse("it starts on another day than those named, so that it is not clear from when the interval counts")
	}
	p.times()
	for _, day := range days {
		day.Interval, day.Until = p.interval, p.until
		lines = append(lines, atClocks(p.without(day), p.clocks)...)
	}
	p.refuseIf(len(lines) > maxRules, "it needs more than "+strconv.Itoa(maxRules)+" RRULE lines, one for each set of hours that share their minutes")
	return lines
}

var elapsedUnits = map[string]rrule.Frequency{"second": rrule.SECONDLY, "minute": rrule.MINUTELY, "hour": rrule.HOURLY}

const countsFromStart = "hours, minutes and seconds count from the start of the schedule, without a time of day; on some days or between two times they must divide a day"

// anyDay reports whether a phrase holds for each day.
func (p *phrase) anyDay() bool {
	return (p.unit == "" || p.unit == "day") && len(p.ordinals)+len(p.weekdays)+len(p.months)+len(p.dates)+len(p.exceptDays)+len(p.exceptMonths) == 0
}

func (p *phrase) stepMinutes() int {
	if p.pace == "hour" {
		return max(1, p.step) * 60
	}
	return max(1, p.step)
}

// isElapsed reports whether a pace is elapsed time. It counts on the clock where days, months or times are named. "Every hour of every day" names none.
func (p *phrase) isElapsed() bool {
	divides := p.interval <= 1 && p.pace != "second" && dayMinutes%p.stepMinutes() == 0
	return p.anyDay() && (p.unit == "" || divides) && len(p.first)+len(p.past)+len(p.between) == 0 && !p.evenly()
}

// evenly reports whether the times of day have the distance of the pace, all day long: "every 12 hours at 6:00 and 18:00".
func (p *phrase) evenly() bool {
	for i, clock := range p.clocks {
		if clock != p.clocks[0]+i*p.stepMinutes() {
			return false
		}
	}
	return p.pace != "second" && len(p.clocks)*p.stepMinutes() == dayMinutes
}

func (p *phrase) elapsed() rrule.ROption {
	o := rrule.ROption{Freq: elapsedUnits[p.pace], Interval: p.step, Until: p.until}
	switch {
	case !p.start.IsZero() && len(p.clocks) == 1: // "every 5 hours from 1 March 2030 at 6:00"
		p.startAt(p.clocks[0])
	case len(p.clocks) > 0:
		p.refuse(countsFromStart)
	case p.count > 1 && (o.Freq == rrule.SECONDLY || p.step > 0 || 60%p.count != 0):
		p.refuse("how often in an hour is said by its minutes: every 30 minutes")
	case p.count > 1:
		o.Freq, o.Interval = o.Freq+1, 60/p.count
	}
	return o
}

func (p *phrase) startAt(clock int) { p.start = p.start.Add(time.Duration(clock) * time.Minute) }

// paceClocks turns "every 2 hours between 8:00 and 18:00" into times of day.
func (p *phrase) paceClocks() {
	if p.evenly() {
		p.pace, p.unit = "", "day"
		return
	}
	step, parts := p.stepMinutes(), p.between
	if len(p.first) > 0 {
		parts = []int{p.first[0], p.first[0] + dayMinutes - 1}
	} else if len(parts) == 0 {
		parts = []int{0, dayMinutes - 1}
	}
	if p.pace == "second" || p.count > 1 || len(p.clocks) > 0 || len(p.between) == 0 && dayMinutes%step != 0 || len(p.first) > 0 && (len(p.between)+len(p.past) > 0 || p.unit != "" || p.first[0] > 0 && step < 180) ||
		len(p.past) > 0 && p.pace != "hour" || p.unit != "" && p.unit != "day" && len(p.weekdays)+len(p.ordinals)+len(p.months)+len(p.dates) == 0 {
		p.refuse(countsFromStart)
	}
	for part := range slices.Chunk(parts, 2) {
		from, to := part[0], part[1]
		if to < from {
			to += dayMinutes
		}
		p.refuseIf(to >= dayMinutes && !p.anyDay(), "a part of the day that passes midnight belongs to two days")
		for at := from; at <= to; at += step {
			if len(p.past) == 0 {
				p.clocks = append(p.clocks, at%dayMinutes)
			}
			for _, minute := range p.past {
				if clock := at - at%60 + minute; clock >= from && clock <= to {
					p.clocks = append(p.clocks, clock%dayMinutes)
				}
			}
		}
	}
	slices.Sort(p.clocks)
	p.clocks = slices.Compact(p.clocks)
}

// times completes the times of day, and compares their number with "twice per day".
func (p *phrase) times() {
	if len(p.clocks) == 0 {
		p.clocks = midnight
		if p.unit == "day" && p.count > 1 && dayMinutes%p.count == 0 {
			p.spread = time.Duration(dayMinutes/p.count) * time.Minute
			for p.clocks = nil; len(p.clocks) < p.count; {
				p.clocks = append(p.clocks, len(p.clocks)*dayMinutes/p.count)
			}
		}
	}
	found := len(p.clocks)
	if p.unit != "day" {
		dates := 0
		for _, date := range p.dates {
			dates += len(date.days) * len(date.months)
		}
		found *= max(1, len(p.ordinals)) * max(1, len(p.weekdays)) * max(1, len(p.months)) * max(1, dates)
	}
	p.refuseIf(p.count > 0 && p.pace == "" && p.count != found, fmt.Sprintf("%q asks for %d, the rest names %d", p.counted, p.count, found))
}

// unitOfDays returns the unit that a phrase says, or that its days have.
func (p *phrase) unitOfDays() string {
	switch {
	case p.unit != "":
		return p.unit
	case len(p.months) > 0 && len(p.weekdays) > 0 && p.every && slices.ContainsFunc(p.ordinals, func(n int) bool { return n > 1 }): // "every second Monday in July"
		p.refuse(`"every 2 weeks" or "every year" is missing`)
	case len(p.dates) > 0, len(p.months) > 0 && (len(p.ordinals) > 0 || len(p.weekdays) == 0 && p.pace == ""):
		return "year"
	case len(p.ordinals) > 0 && len(p.weekdays) > 0:
		p.refuse(`"of the month" or "every 2 weeks" is missing`)
	case len(p.ordinals) > 0 && !p.numbered:
		p.refuse(`"of the month" is missing`)
	case len(p.ordinals) > 0:
		return "month"
	case len(p.weekdays) > 0:
		return "week"
	case p.pace == "" && (p.everyUnit || len(p.clocks) == 0 || len(p.exceptDays)+len(p.exceptMonths) > 0):
		p.refuse("how often is not said")
	}
	return "day"
}

func (p *phrase) days() (days []rrule.ROption) {
	o := rrule.ROption{Bymonth: p.months}
	switch unit := p.unitOfDays(); {
	case len(p.dates) > 0 && unit != "year" || len(p.months) > 0 && unit == "quarter":
		p.refuse("a month is named beside " + document.Found(unit))
	case unit == "year" && (!p.span || p.unit == "" || len(p.ordinals)+len(p.weekdays) > 0):
		return p.datesOfYear()
	case unit == "quarter":
		o = p.choice(rrule.YEARLY, p.ordinals, p.quarter())
	case unit == "year", unit == "month" && len(p.months) > 0 && (p.interval > 1 || p.everyUnit && len(p.months) == 1):
		p.refuse("the months leave it open how often")
	case unit == "month":
		o = p.choice(rrule.MONTHLY, p.ordinals, p.months)
	case unit == "week" && len(p.ordinals) > 0:
		p.refuse("a week has days such as Monday")
	case unit == "week":
		if len(p.weekdays) == 0 {
			p.weekdays = []int{weekdayOf(p.begins())}
		}
		o.Freq, o.Byweekday = rrule.WEEKLY, p.ordinalDays(0)
	case len(p.ordinals) > 0 || len(p.weekdays) > 0 && (!p.group && p.count == 0 && p.pace == "" || p.interval > 1 || p.behind && len(p.clocks) > 1 && len(p.clocks) != p.count):
		p.refuse("every day leaves no day to choose")
	case len(p.weekdays) > 0: // "Mon-Fri daily"
		o.Freq, o.Byweekday = rrule.WEEKLY, p.ordinalDays(0)
	default:
		o.Freq = rrule.DAILY
	}
	return []rrule.ROption{o}
}

// begins returns the start, whose day a phrase without a day takes; if there is none, the first Monday that is also the first of a year.
func (p *phrase) begins() time.Time {
	if p.start.IsZero() {
		return time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return p.start
}

var quarterBegins, quarterEnds = []int{1, 4, 7, 10}, []int{3, 6, 9, 12}

// quarter returns the months of quarters that have the days of a phrase.
func (p *phrase) quarter() []int {
	begins, last := p.begins(), slices.ContainsFunc(p.ordinals, func(n int) bool { return n < 0 })
	switch {
	case len(p.ordinals)+len(p.weekdays) == 0 && (begins.Day() != 1 || !slices.Contains(quarterBegins, int(begins.Month()))):
		p.refuse("quarters begin on 1 January, April, July and October; write every 3 months, or the day")
	case p.interval > 1, last && len(p.ordinals) > 1:
		p.refuse("quarters are those of the year, each of them; the first and the last month of one need an RRULE line each")
	case last:
		return quarterEnds
	}
	return quarterBegins
}

// datesOfYear composes "March 1 and July 15", "the last Friday of May", "every year".
func (p *phrase) datesOfYear() (days []rrule.ROption) {
	dates := p.dates
	switch {
	case len(dates) == 0:
		dates = []phraseDates{{p.ordinals, p.months}}
	case len(p.ordinals)+len(p.weekdays)+len(p.months) > 0:
		p.refuse(twoKinds)
	}
	p.refuseIf(!p.every && len(dates) == 1 && len(dates[0].months) == 1, `"every year" is missing`) // "the 1st of April and October" comes again
	for _, date := range dates {
		o := p.choice(rrule.YEARLY, date.days, date.months)
		switch {
		case len(o.Bymonth) > 0:
		case slices.Equal(date.days, []int{-1}):
			o.Bymonth = []int{12}
		case slices.Equal(date.days, []int{1}):
			o.Bymonth = []int{1}
		case len(p.ordinals)+len(p.weekdays) == 0 && p.every:
			o.Bymonth = []int{int(p.begins().Month())}
		default:
			p.refuse("the month is missing")
		}
		same := slices.IndexFunc(days, func(before rrule.ROption) bool { return slices.Equal(before.Bymonthday, o.Bymonthday) })
		if same >= 0 {
			days[same].Bymonth = append(days[same].Bymonth, o.Bymonth...)
			slices.Sort(days[same].Bymonth)
			continue
		}
		days = append(days, o)
	}
	return days
}

// choice composes days of months: "1st and last", "first Monday", "last weekday"; the day of the start when none is named.
func (p *phrase) choice(freq rrule.Frequency, ordinals, months []int) rrule.ROption {
	ordinals = p.daysOfMonth(ordinals)
	o := rrule.ROption{Freq: freq, Bymonth: months, Bymonthday: ordinals}
	switch {
	case len(p.weekdays) > 0 && len(ordinals) == 0:
		p.refuse("which of these weekdays of the month is not said: first, last")
	case p.workdays:
		return rrule.ROption{Freq: rrule.MONTHLY, Bymonth: months, Byweekday: p.ordinalDays(0), Bysetpos: ordinals}
	case len(p.weekdays) > 0 && p.group:
		p.refuse("which day of them is not said")
	case len(p.weekdays) > 0:
		return rrule.ROption{Freq: freq, Bymonth: months, Byweekday: p.ordinalDays(ordinals...)}
	case len(ordinals) == 0:
		day := p.begins().Day()
		p.refuseIf(day > 28, "not every month has a day "+strconv.Itoa(day)+"; write on the "+words.ShortOrdinal(day)+", or on the last day")
		o.Bymonthday = []int{day}
	}
	return o
}

func (p *phrase) daysOfMonth(ordinals []int) []int {
	limit := 31
	if p.workdays {
		limit = 23
	} else if len(p.weekdays) > 0 {
		limit = 5
	}
	ordinals = slices.Clone(ordinals)
	slices.SortFunc(ordinals, func(a, b int) int { return int(uint8(a)) - int(uint8(b)) }) // -1 comes last, behind -2
	for i, n := range ordinals {
		if n == 0 || n > limit || i > 0 && n == ordinals[i-1] {
			p.refuse(strconv.Itoa(n) + " is no number from 1 to " + strconv.Itoa(limit) + ", or stands there twice")
		}
	}
	return ordinals
}

func (p *phrase) ordinalDays(ordinals ...int) (days []rrule.Weekday) {
	for _, n := range ordinals {
		for _, day := range p.weekdays {
			days = append(days, weekdays[day].Nth(n))
		}
	}
	return days
}

// without leaves out the days and months that are excepted.
func (p *phrase) without(o rrule.ROption) rrule.ROption {
	if len(p.exceptMonths) > 0 {
		if o.Bymonth = allBut([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, p.exceptMonths); len(p.months)+len(p.dates) > 0 || o.Freq == rrule.YEARLY || len(o.Bymonth) == 0 {
			p.refuse("months are excepted from days of all months, and not all of them")
		}
	}
	if len(p.exceptDays) == 0 {
		return o
	}
	if len(p.weekdays) == 0 {
		p.weekdays = []int{0, 1, 2, 3, 4, 5, 6}
	}
	left := allBut(p.weekdays, p.exceptDays)
	if o.Freq < rrule.WEEKLY || len(left) == 0 || len(left)+len(p.exceptDays) > len(p.weekdays) {
		p.refuse("an exception is one of the days, or of weekdays, and leaves some of them")
	}
	p.weekdays = left
	o.Byweekday = p.ordinalDays(0)
	if p.interval <= 1 {
		o.Freq = rrule.WEEKLY
	}
	return o
}

func allBut(all, excepted []int) []int {
	return slices.DeleteFunc(slices.Clone(all), func(n int) bool { return slices.Contains(excepted, n) })
}

// atClocks adds the times of day, with one line for each group of hours that share their minutes. BYSETPOS would choose among the times too.
func atClocks(day rrule.ROption, clocks []int) (lines []rrule.ROption) {
	if len(day.Bysetpos) > 0 && len(clocks) > 1 {
		for i := range clocks {
			lines = append(lines, atClocks(day, clocks[i:i+1])...)
		}
		return lines
	}
	hours := map[int][]int{}
	var minutes []int // by their first hour
	for _, clock := range clocks {
		minute := clock % 60
		if hours[minute] == nil {
			minutes = append(minutes, minute)
		}
		hours[minute] = append(hours[minute], clock/60)
	}
	for _, minute := range minutes {
		line := slices.IndexFunc(lines, func(o rrule.ROption) bool { return slices.Equal(o.Byhour, hours[minute]) })
		if line < 0 {
			line = len(lines)
			o := day
			o.Byhour, o.Bysecond = hours[minute], midnight
			lines = append(lines, o)
		}
		lines[line].Byminute = append(lines[line].Byminute, minute)
	}
	for i := range lines {
		if o := &lines[i]; len(o.Byhour) == 24 && o.Interval <= 1 && (o.Freq == rrule.DAILY || o.Freq == rrule.WEEKLY) {
			o.Freq, o.Byhour = rrule.HOURLY, nil
		}
	}
	return lines
}
