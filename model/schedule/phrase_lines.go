package schedule

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/model/document"

	"github.com/teambition/rrule-go"
)

// lines composes the rule of a phrase. It returns the reason of a refusal, or "".
func (p *phrase) lines() (lines []rrule.ROption, reason string) {
	if freq, elapsed := elapsedUnits[p.unit]; elapsed {
		return p.elapsedLine(freq)
	}
	day, reason := p.days()
	if reason != "" {
		return nil, reason
	}
	if len(p.clocks) == 0 {
		p.clocks = midnight
	}
	found := len(p.clocks) * max(1, len(day.Byweekday)) * max(1, len(day.Bymonthday)) * max(1, len(p.dates))
	if p.count > 0 && p.count != found {
		return nil, fmt.Sprintf("%q asks for %d, the rest names %d", p.counted, p.count, found)
	}
	day.Interval = p.interval
	return atClocks(day, p.clocks)
}

var elapsedUnits = map[string]rrule.Frequency{"second": rrule.SECONDLY, "minute": rrule.MINUTELY, "hour": rrule.HOURLY}

func (p *phrase) elapsedLine(freq rrule.Frequency) (lines []rrule.ROption, reason string) {
	switch {
	case len(p.clocks)+len(p.ordinals)+len(p.weekdays)+len(p.dates) > 0:
		return nil, "hours, minutes and seconds count from the start of the schedule, without a day or a time of day"
	case p.count > 1:
		return nil, "how often in an hour is said by its minutes: every 30 minutes"
	case !p.every:
		return nil, `"every" is missing`
	default:
		return []rrule.ROption{{Freq: freq, Interval: p.interval}}, ""
	}
}

// days composes the part of the rule that chooses days.
func (p *phrase) days() (o rrule.ROption, reason string) {
	switch {
	case p.unit == "" && len(p.dates) > 0, p.unit == "year":
		return p.year()
	case len(p.dates) > 0:
		return o, "a month is named beside " + document.Found(p.unit)
	case p.unit == "", p.unit == "week":
		return p.week()
	case p.unit == "month":
		return p.choice(rrule.MONTHLY, nil)
	case p.unit == "quarter":
		return p.quarter()
	case len(p.ordinals)+len(p.weekdays) > 0:
		return o, "every day leaves no day to choose"
	case !p.every:
		return o, `"every" is missing`
	default:
		return rrule.ROption{Freq: rrule.DAILY}, ""
	}
}

func (p *phrase) week() (o rrule.ROption, reason string) {
	switch {
	case len(p.ordinals) > 0 && len(p.weekdays) > 0 && p.unit == "":
		return o, `"of the month" or "every 2 weeks" is missing`
	case len(p.ordinals) > 0 && p.unit == "":
		return o, `"of the month" is missing`
	case len(p.ordinals) > 0:
		return o, "a week has days such as Monday"
	case len(p.weekdays) == 0 && (p.unit == "" || !p.every):
		return o, "how often is not said"
	}
	if len(p.weekdays) == 0 {
		p.weekdays = []int{0}
	}
	return rrule.ROption{Freq: rrule.WEEKLY, Byweekday: p.ordinalDays(0)}, ""
}

func (p *phrase) quarter() (o rrule.ROption, reason string) {
	if p.interval > 1 {
		return o, "quarters are those of the year, each of them"
	}
	last := slices.Contains(p.ordinals, -1)
	if last && len(p.ordinals) > 1 {
		return o, "the first and the last month of a quarter need an RRULE line each"
	}
	if last {
		return p.choice(rrule.YEARLY, quarterEnds)
	}
	return p.choice(rrule.YEARLY, quarterBegins)
}

var quarterBegins, quarterEnds = []int{1, 4, 7, 10}, []int{3, 6, 9, 12}

func (p *phrase) year() (o rrule.ROption, reason string) {
	if !p.every {
		return o, `"every year" is missing`
	}
	if len(p.dates) == 0 {
		if len(p.ordinals)+len(p.weekdays) > 0 {
			return o, "the month is missing"
		}
		p.dates = []phraseDate{{month: 1}}
	}
	var months []int
	for _, date := range p.dates {
		if !slices.Equal(date.days, p.dates[0].days) {
			return o, "dates on different days of their months need an RRULE line each"
		}
		months = append(months, date.month)
	}
	slices.Sort(months)
	if days := p.dates[0].days; len(days) > 0 {
		if len(p.ordinals)+len(p.weekdays) > 0 {
			return o, "days of two kinds need an RRULE line each"
		}
		p.ordinals = days
	}
	return p.choice(rrule.YEARLY, slices.Compact(months))
}

// choice composes days of months: "1st and last", "first Monday"; the first when none is named.
func (p *phrase) choice(freq rrule.Frequency, months []int) (o rrule.ROption, reason string) {
	o = rrule.ROption{Freq: freq, Bymonth: months}
	ordinals := slices.Clone(p.ordinals)
	limit := 31
	switch {
	case len(p.weekdays) > 0 && len(ordinals) == 0:
		return o, "which of these weekdays of the month is not said: first, last"
	case len(p.weekdays) > 0:
		limit = 5
	case len(ordinals) == 0 && !p.every:
		return o, "how often is not said"
	case len(ordinals) == 0:
		ordinals = []int{1}
	}
	slices.SortFunc(ordinals, func(a, b int) int { return int(uint8(a)) - int(uint8(b)) }) // -1 comes last
	ordinals = slices.Compact(ordinals)
	for _, n := range ordinals {
		if n == 0 || n > limit {
			return o, strconv.Itoa(n) + " is no number from 1 to " + strconv.Itoa(limit)
		}
	}
	if len(p.weekdays) > 0 {
		o.Byweekday = p.ordinalDays(ordinals...)
	} else {
		o.Bymonthday = ordinals
	}
	return o, ""
}

// ordinalDays writes each weekday with each number; 0 is none.
func (p *phrase) ordinalDays(ordinals ...int) (days []rrule.Weekday) {
	for _, n := range ordinals {
		for _, day := range p.weekdays {
			days = append(days, weekdays[day].Nth(n))
		}
	}
	return days
}

// atClocks adds the times of day, with one line for each group of hours that share their minutes.
func atClocks(day rrule.ROption, clocks []int) (lines []rrule.ROption, reason string) {
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
	if len(lines) > maxRules {
		return nil, "times of day with more than " + strconv.Itoa(maxRules) + " different minutes"
	}
	return lines, ""
}
