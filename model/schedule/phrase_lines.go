package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

const dayMinutes = 24 * 60

func (p *phrase) lines() (lines []rrule.ROption) {
	// A pace counts on the clock where days, months or times are named. "Every hour of every day" names none.
	eachDay := p.unit == "day" && p.interval <= 1 && p.pace != "second" && dayMinutes%p.stepMinutes() == 0
	if step := p.stepMinutes() * len(p.clocks); p.pace != "" && p.pace != "second" && p.unit == "" && step == dayMinutes && p.evenly() {
		p.pace, p.unit, p.step = "", "day", 0 // "every 12 hours at 6:00 and 18:00"
	}
	switch {
	case p.pace != "" && (p.unit == "" || eachDay) && !p.someDays() && len(p.first)+len(p.past)+len(p.between) == 0:
		o := rrule.ROption{Freq: elapsedUnits[p.pace], Interval: p.step, Until: p.until}
		if p.start != "" && len(p.clocks) == 1 { // "every 5 hours from 1 March 2030 at 6:00"
			p.start = strings.Replace(p.start, "00:00", spokenClock(p.clocks[0]), 1)
		} else if len(p.clocks) > 0 {
			p.refuse(countsFromStart)
		}
		if p.count > 1 {
			if o.Freq == rrule.SECONDLY || p.step > 0 || 60%p.count != 0 {
				p.refuse("how often in an hour is said by its minutes: every 30 minutes")
			}
			o.Freq, o.Interval = o.Freq+1, 60/p.count
		}
		return []rrule.ROption{o}
	case p.pace != "":
		p.paceClocks()
	case len(p.past)+len(p.between)+len(p.first) > 0:
		p.refuse("how often between or from these times is not said: every 30 minutes between 9:00 and 17:00")
	}
	if p.nonstop && p.pace == "" {
		p.refuse("how often all day is not said")
	}
	if p.nights && (p.someDays() || p.unit != "" && p.unit != "day") {
		p.refuse("the night of a day may be the one before it or behind it; write Sunday at 23:00 or Monday at 2:00")
	}
	days := p.days()
	p.times()
	for _, day := range days {
		day.Interval, day.Until = p.interval, p.until
		lines = append(lines, atClocks(p.without(day), p.clocks)...)
	}
	if len(lines) > maxRules {
		p.refuse("it needs more than " + strconv.Itoa(maxRules) + " RRULE lines, one for each set of hours that share their minutes")
	}
	return lines
}

var elapsedUnits = map[string]rrule.Frequency{"second": rrule.SECONDLY, "minute": rrule.MINUTELY, "hour": rrule.HOURLY}

func (p *phrase) someDays() bool {
	return len(p.ordinals)+len(p.weekdays)+len(p.months)+len(p.dates)+len(p.exceptDays)+len(p.exceptMonths) > 0
}

// evenly tells whether the times of day have the distance of the pace.
func (p *phrase) evenly() bool {
	for i, clock := range p.clocks {
		if clock != p.clocks[0]+i*p.stepMinutes() {
			return false
		}
	}
	return true
}

const countsFromStart = "hours, minutes and seconds count from the start of the schedule, without a time of day; on some days or between two times they must divide a day"

func (p *phrase) stepMinutes() int {
	if p.pace == "hour" {
		return max(1, p.step) * 60
	}
	return max(1, p.step)
}

// paceClocks turns "every 2 hours between 8:00 and 18:00" into times of day.
func (p *phrase) paceClocks() {
	step, parts := p.stepMinutes(), p.between
	if len(p.first) > 0 {
		parts = []int{p.first[0], p.first[0] + dayMinutes - 1}
	} else if len(parts) == 0 {
		parts = []int{0, dayMinutes - 1}
	}
	overnight := false
	for i := 1; i < len(parts); i += 2 {
		if parts[i] < parts[i-1] {
			parts[i] += dayMinutes
		}
		overnight = overnight || parts[i] >= dayMinutes
	}
	switch {
	case p.pace == "second" || p.count > 1 || len(p.clocks) > 0, len(p.between) == 0 && dayMinutes%step != 0, len(p.first) > 0 && len(p.between)+len(p.past) > 0,
		len(p.past) > 0 && p.pace != "hour":
		p.refuse(countsFromStart)
	case overnight && (p.someDays() || p.unit != "" && p.unit != "day"):
		p.refuse("a part of the day that passes midnight belongs to two days")
	case p.unit != "" && p.unit != "day" && len(p.weekdays)+len(p.ordinals)+len(p.months)+len(p.dates) == 0:
		p.refuse("the day is missing")
	case len(p.first) > 0 && p.unit != "":
		p.refuse("it is not said when it ends on each day: every 2 hours between 6:00 and 20:00")
	}
	for part := range slices.Chunk(parts, 2) {
		for at := part[0]; at <= part[1]; at += step {
			if len(p.past) == 0 {
				p.clocks = append(p.clocks, at%dayMinutes)
			}
			for _, minute := range p.past {
				if clock := at - at%60 + minute; clock >= part[0] && clock <= part[1] {
					p.clocks = append(p.clocks, clock%dayMinutes)
				}
			}
		}
	}
	slices.Sort(p.clocks)
	p.clocks = slices.Compact(p.clocks)
}

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
		days := 0
		for _, date := range p.dates {
			days += max(1, len(date.days))
		}
		found *= max(1, len(p.ordinals)) * max(1, len(p.weekdays)) * max(1, days)
	}
	if p.count > 0 && p.pace == "" && p.count != found {
		p.refuse(fmt.Sprintf("%q asks for %d, the rest names %d", p.counted, p.count, found))
	}
}

func (p *phrase) days() []rrule.ROption {
	var o rrule.ROption
	months, begins := p.months, p.begins()
	switch {
	case len(p.dates) > 0:
		return p.datesOfYear()
	case p.unit == "year", p.unit == "" && len(months) > 0 && (len(p.ordinals) > 0 || len(p.weekdays) == 0 && p.pace == ""):
		switch {
		case len(months) == 1 && !p.every: // "the 1st of April and October" comes again
			p.refuse(`"every year" is missing`)
		case len(months) > 0:
		case slices.Equal(p.ordinals, []int{-1}):
			months = []int{12}
		case slices.Equal(p.ordinals, []int{1}):
			months = []int{1}
		case len(p.ordinals)+len(p.weekdays) == 0 && p.every:
			months = []int{int(begins.Month())}
		default:
			p.refuse("the month is missing")
		}
		o = p.choice(rrule.YEARLY, months)
	case len(months) > 0 && p.unit == "quarter":
		p.refuse("a month is named beside " + document.Found(p.unit))
	case p.unit == "month", p.unit == "" && len(p.ordinals) > 0 && len(p.weekdays) == 0 && p.numbered:
		o = p.choice(rrule.MONTHLY, months)
	case p.unit == "quarter":
		months = quarterBegins
		if slices.Contains(p.ordinals, -1) {
			months = quarterEnds
		}
		if p.start != "" && len(p.ordinals)+len(p.weekdays) == 0 && (begins.Day() != 1 || !slices.Contains(quarterBegins, int(begins.Month()))) {
			p.refuse("quarters begin on 1 January, April, July and October; write every 3 months, or the day")
		}
		if p.interval > 1 || months[0] > 1 && len(p.ordinals) > 1 {
			p.refuse("quarters are those of the year, each of them; the first and the last month of one need an RRULE line each")
		}
		o = p.choice(rrule.YEARLY, months)
	case p.unit == "day", p.unit == "" && len(p.weekdays)+len(p.ordinals) == 0 && (p.pace != "" || !p.said && len(p.clocks) > 0 && len(p.exceptDays)+len(p.exceptMonths) == 0):
		o = rrule.ROption{Freq: rrule.DAILY, Bymonth: months}
		switch {
		case len(p.ordinals) > 0 || len(p.weekdays) > 0 && (!p.group && p.count == 0 && p.pace == "" || p.interval > 1):
			p.refuse("every day leaves no day to choose")
		case p.unit == "day" && !p.every:
			p.refuse(`"every" is missing`)
		case len(p.weekdays) > 0: // "Mon-Fri daily"
			o.Freq, o.Byweekday = rrule.WEEKLY, p.ordinalDays(0)
		}
	default:
		p.needWeekdays()
		o = rrule.ROption{Freq: rrule.WEEKLY, Bymonth: months, Byweekday: p.ordinalDays(0)}
	}
	return []rrule.ROption{o}
}

// needWeekdays refuses a phrase that does not say on which days of a week; that is the day of the start, or Monday, where it says each week alone.
func (p *phrase) needWeekdays() {
	switch {
	case len(p.ordinals) > 0 && len(p.weekdays) > 0 && p.unit == "":
		p.refuse(`"of the month" or "every 2 weeks" is missing`)
	case len(p.ordinals) > 0 && p.unit == "":
		p.refuse(`"of the month" is missing`)
	case len(p.ordinals) > 0:
		p.refuse("a week has days such as Monday")
	case len(p.weekdays) == 0 && (p.unit == "" || !p.every):
		p.refuse("how often is not said")
	case len(p.weekdays) == 0:
		p.weekdays = []int{(int(p.begins().Weekday()) + 6) % 7}
	}
}

// begins returns the start, of which a phrase that names no day takes its day; if there is none, the first Monday that is also the first of a year.
func (p *phrase) begins() time.Time {
	if begins, err := time.Parse("2006-01-02T15:04:05", p.start); err == nil {
		return begins
	}
	return time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
}

func (p *phrase) without(o rrule.ROption) rrule.ROption {
	if len(p.exceptMonths) > 0 {
		if o.Freq != rrule.DAILY && o.Freq != rrule.WEEKLY || len(o.Bymonth) > 0 || len(p.exceptMonths) == 12 {
			p.refuse("months are excepted from days of all months, and not all of them")
		}
		o.Bymonth = slices.DeleteFunc([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, func(month int) bool { return slices.Contains(p.exceptMonths, month) })
	}
	if len(p.exceptDays) == 0 {
		return o
	}
	if len(p.weekdays) == 0 {
		p.weekdays = []int{0, 1, 2, 3, 4, 5, 6}
	}
	left := slices.DeleteFunc(slices.Clone(p.weekdays), func(day int) bool { return slices.Contains(p.exceptDays, day) })
	if o.Freq != rrule.DAILY && o.Freq != rrule.WEEKLY || len(left) == 0 || len(left)+len(p.exceptDays) > len(p.weekdays) {
		p.refuse("an exception is one of the days, or of weekdays, and leaves some of them")
	}
	p.weekdays = left
	o.Byweekday = p.ordinalDays(0)
	if p.interval <= 1 {
		o.Freq = rrule.WEEKLY
	}
	return o
}

var quarterBegins, quarterEnds = []int{1, 4, 7, 10}, []int{3, 6, 9, 12}

func (p *phrase) datesOfYear() (days []rrule.ROption) {
	switch {
	case !p.every && len(p.dates) == 1, p.unit != "" && p.unit != "year":
		p.refuse(`"every year" is missing`)
	case len(p.ordinals)+len(p.weekdays)+len(p.months) > 0:
		p.refuse("days of two kinds need an RRULE line each")
	}
	for _, date := range p.dates {
		monthdays := p.daysOfMonth(date.days)
		same := slices.IndexFunc(days, func(o rrule.ROption) bool { return slices.Equal(o.Bymonthday, monthdays) })
		if same < 0 {
			same = len(days)
			days = append(days, rrule.ROption{Freq: rrule.YEARLY, Bymonthday: monthdays})
		}
		days[same].Bymonth = append(days[same].Bymonth, date.month)
		slices.Sort(days[same].Bymonth)
	}
	return days
}

// choice composes days of months: "1st and last", "first Monday", "last weekday"; the first when none is named.
func (p *phrase) choice(freq rrule.Frequency, months []int) rrule.ROption {
	ordinals := p.daysOfMonth(p.ordinals)
	switch {
	case len(p.weekdays) > 0 && len(ordinals) == 0:
		p.refuse("which of these weekdays of the month is not said: first, last")
	case p.workdays:
		return rrule.ROption{Freq: rrule.MONTHLY, Bymonth: months, Byweekday: p.ordinalDays(0), Bysetpos: ordinals}
	case len(p.weekdays) > 0 && p.group:
		p.refuse("which day of them is not said")
	case len(p.weekdays) > 0:
		return rrule.ROption{Freq: freq, Bymonth: months, Byweekday: p.ordinalDays(ordinals...)}
	case len(ordinals) == 0 && !p.every:
		p.refuse("how often is not said")
	case len(ordinals) == 0:
		if ordinals = []int{p.begins().Day()}; ordinals[0] > 28 {
			p.refuse("not every month has a day " + strconv.Itoa(ordinals[0]) + "; write on the " + words.ShortOrdinal(ordinals[0]) + ", or on the last day")
		}
	}
	return rrule.ROption{Freq: freq, Bymonth: months, Bymonthday: ordinals}
}

func (p *phrase) daysOfMonth(ordinals []int) []int {
	limit := 31
	if p.workdays {
		limit = 23
	} else if len(p.weekdays) > 0 {
		limit = 5
	}
	ordinals = slices.Clone(ordinals)
	slices.SortFunc(ordinals, func(a, b int) int { return int(uint8(a)) - int(uint8(b)) }) // -1 comes last
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
