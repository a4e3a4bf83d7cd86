package schedule

import (
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/model/document"
)

// lines composes the rule of a phrase. It returns the reason of a refusal, or "".
func (p *phrase) lines() (lines []outline, reason string) {
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
	if found := len(p.clocks) * p.perPeriod(day); p.count > 0 && p.count != found {
		return nil, p.wrongCount(found)
	}
	if p.interval > 1 {
		day.interval = p.interval
	}
	return atClocks(day, p.clocks)
}

var elapsedUnits = map[string]string{"second": "SECONDLY", "minute": "MINUTELY", "hour": "HOURLY"}

func (p *phrase) elapsedLine(freq string) (lines []outline, reason string) {
	switch {
	case len(p.clocks)+len(p.ordinals)+len(p.weekdays)+len(p.dates) > 0:
		return nil, "hours, minutes and seconds count from the start of the schedule, without a day or a time of day"
	case p.count > 1:
		return nil, "how often in an hour is said by its minutes: every 30 minutes"
	case !p.every:
		return nil, `"every" is missing`
	default:
		return []outline{{freq: freq, interval: p.interval}}, ""
	}
}

// perPeriod is how many days a period has that "twice" may count.
func (p *phrase) perPeriod(o outline) int {
	return max(1, len(o.days)) * max(1, len(o.monthDays)) * max(1, len(p.dates))
}

// days composes the part of the rule that chooses days.
func (p *phrase) days() (o outline, reason string) {
	switch {
	case p.unit == "" && len(p.dates) > 0, p.unit == "year":
		return p.year()
	case len(p.dates) > 0:
		return o, "a month is named beside " + document.Found(p.unit)
	case p.unit == "", p.unit == "week":
		return p.week()
	case p.unit == "month":
		return p.choice("MONTHLY", nil)
	case p.unit == "quarter":
		return p.quarter()
	case len(p.ordinals)+len(p.weekdays) > 0:
		return o, "every day leaves no day to choose"
	case !p.every:
		return o, `"every" is missing`
	default:
		return outline{freq: "DAILY"}, ""
	}
}

func (p *phrase) week() (o outline, reason string) {
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
	o = outline{freq: "WEEKLY", days: []string{"MO"}}
	if len(p.weekdays) > 0 {
		o.days = p.ordinalDays([]int{0})
	}
	return o, ""
}

func (p *phrase) quarter() (o outline, reason string) {
	if p.interval > 1 {
		return o, "quarters are those of the year, each of them"
	}
	last := slices.Contains(p.ordinals, -1)
	if last && len(p.ordinals) > 1 {
		return o, "the first and the last month of a quarter need an RRULE line each"
	}
	if last {
		return p.choice("YEARLY", []int{3, 6, 9, 12})
	}
	return p.choice("YEARLY", []int{1, 4, 7, 10})
}

func (p *phrase) year() (o outline, reason string) {
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
	return p.choice("YEARLY", slices.Compact(months))
}

// choice composes days of months: "1st and last", "first Monday"; the first when none is named.
func (p *phrase) choice(freq string, months []int) (o outline, reason string) {
	o = outline{freq: freq, months: months}
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
		o.days = p.ordinalDays(ordinals)
	} else {
		o.monthDays = ordinals
	}
	return o, ""
}

// ordinalDays writes each weekday with each number; 0 is none.
func (p *phrase) ordinalDays(ordinals []int) []string {
	var days []string
	for _, n := range ordinals {
		for _, day := range p.weekdays {
			name := weekdays[day].String()
			if n != 0 {
				name = strconv.Itoa(n) + name
			}
			days = append(days, name)
		}
	}
	return days
}

// atClocks adds the times of day, with one line for each group of hours that share their minutes.
func atClocks(day outline, clocks []int) (lines []outline, reason string) {
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
		line := slices.IndexFunc(lines, func(o outline) bool { return slices.Equal(o.hours, hours[minute]) })
		if line < 0 {
			line = len(lines)
			o := day
			o.hours, o.seconds = hours[minute], midnight
			lines = append(lines, o)
		}
		lines[line].minutes = append(lines[line].minutes, minute)
	}
	if len(lines) > maxRules {
		return nil, "times of day with more than " + strconv.Itoa(maxRules) + " different minutes"
	}
	return lines, ""
}
