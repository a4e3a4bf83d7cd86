package schedule

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/words"
)

var (
	cronSecond = cronField{name: "second", last: 59}

	hashed   = regexp.MustCompile(`^H(?:\((\d+)-(\d+)\))?(?:/(\d+))?$|^(\d*)~(\d*)$`)
	yearSpan = regexp.MustCompile(`^([12]\d{3})(?:-([12]\d{3}))?$`)
	dayOfEnd = regexp.MustCompile(`^L(?:-(\d|1\d|2[0-6]))?(W?)$|^([1-9]|1\d|2[0-7])W$`) // behind 27W the month may end first
	inMonth  = regexp.MustCompile(`^(\w+)#([1-5])$|^(\w+?)#?L$|^L([0-7])$`)
)

// offer writes the rule of a dialect: five fields that mean the same, or else RRULE lines. ok is false if it never occurs, or there is none.
func (d *dialect) offer() (rule string, ok bool) {
	lines, years := d.lines(), yearSpan.FindStringSubmatch(d.years)
	if d.wrong || len(lines) > maxRules || years == nil && strings.Trim(d.years, "*") != "" {
		return "", false
	}
	if years != nil {
		last, _ := strconv.Atoi(cmp.Or(years[2], years[1]))
		for i := range lines {
			lines[i].Until = time.Date(last, 12, 31, 23, 59, 59, 0, time.UTC)
		}
	}
	rule = ruleOf(lines...)
	if _, err := Parse(rule, "", DefaultDtstart); err != nil {
		return "", false
	}
	if years != nil {
		return "DTSTART:" + years[1] + "0101T000000\nRRULE:" + strings.TrimPrefix(rule, "RRULE:"), true
	}
	five := strings.ReplaceAll(strings.Join(d.fields[:], " "), "?", "*")
	named := d.differs == "" || !strings.ContainsAny(d.fields[4], "01234567")
	if _, err := exactCron(five); err == nil && named && !d.both && slices.Equal(lines[0].Bysecond, midnight) {
		return five, true
	}
	return rule, true
}

// lines composes the rule, with a line for each part of the days.
func (d *dialect) lines() []rrule.ROption {
	times := rrule.ROption{
		Bymonth: d.numbers(&cronFields[3], strings.Split(d.fields[3], ",")), Byhour: d.numbers(&cronFields[1], strings.Split(d.fields[1], ",")),
		Byminute: d.numbers(&cronFields[0], strings.Split(d.fields[0], ",")), Bysecond: d.numbers(&cronSecond, strings.Split(cmp.Or(d.seconds, "0"), ",")),
	}
	lines := d.days(&times)
	for i, days := range lines {
		lines[i] = times
		lines[i].Bymonthday, lines[i].Byweekday = days.Bymonthday, days.Byweekday
		lines[i].Freq = cronFrequency(&lines[i])
	}
	if len(lines) > 1 { // no rule may have a line that never occurs
		lines = slices.DeleteFunc(lines, func(line rrule.ROption) bool { return !dateExists(&line) })
	}
	return lines
}

// cronFrequency chooses the frequency whose BY parts then are the fields, without naming each minute of each hour.
func cronFrequency(o *rrule.ROption) rrule.Frequency {
	switch {
	case len(o.Bysecond) == 0:
		return rrule.SECONDLY
	case len(o.Byminute) == 0:
		return rrule.MINUTELY
	case len(o.Byhour) == 0:
		return rrule.HOURLY
	case len(o.Byweekday) > 0 && len(o.Bymonthday) == 0 && o.Byweekday[0].N() == 0:
		return rrule.WEEKLY
	case len(o.Bymonthday) > 0 && len(o.Bymonth) > 0 && len(o.Byweekday) == 0:
		return rrule.YEARLY
	case len(o.Bymonthday)+len(o.Byweekday) > 0:
		return rrule.MONTHLY
	default:
		return rrule.DAILY
	}
}

func dateExists(o *rrule.ROption) bool {
	return len(o.Bymonth) == 0 || len(o.Bymonthday) == 0 || slices.ContainsFunc(o.Bymonth, func(month int) bool {
		last := time.Date(2000, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day() // a leap year
		return slices.Min(o.Bymonthday) <= last
	})
}

// numbers are those that a field allows, nil for all. But 0-23 names each hour, where * leaves it free.
func (d *dialect) numbers(f *cronField, items []string) (list []int) {
	var set uint64
	for _, item := range items {
		set |= d.item(f, item)
	}
	for n := f.first; n <= f.last; n++ {
		if set>>n&1 == 1 {
			list = append(list, n)
		}
	}
	if all := len(list) == f.last-f.first+1; all && (f.place != 2 || len(items) == 1 && star(items[0])) {
		return nil
	}
	return list
}

// item reads one of a list, e.g. "*/5", "MON-FRI" or "10-50/20", and as generously as any scheduler does.
func (d *dialect) item(f *cronField, text string) (set uint64) {
	size := f.last - f.first + 1
	if found := hashed.FindStringSubmatch(text); found != nil && (f.place == 1 || f.place == 2) {
		low, high, step := cmp.Or(found[1]+found[4], "0"), cmp.Or(found[2]+found[5], strconv.Itoa(f.last)), found[3]
		slots := d.digits(high) - d.digits(low) + 1
		d.wrong = d.wrong || slots < 1
		if text, d.loose = low, true; step != "" {
			slots, text = d.digits(step), low+"-"+high+"/"+step
		}
		d.spread = max(d.spread, time.Duration(slots)*[]time.Duration{time.Minute, time.Hour}[f.place-1])
	}
	span, stepText, stepped := strings.Cut(strings.TrimPrefix(text, "+"), "/")
	low, high, ranged := strings.Cut(span, "-")
	from, to, step := f.first, f.last, 1
	if stepped {
		step = d.digits(stepText)
		d.wrong = d.wrong || step == 0
	}
	all := span == "*" || span == "?" && (f.place == 3 || f.place == 5)
	if !all {
		from = d.value(f, low)
	}
	switch {
	case ranged:
		to = d.value(f, high)
	case !all && !stepped, !all && d.alone:
		to = from
	}
	d.loose = d.loose || span == "?" || text[:min(1, len(text))] == "+" || step > size || stepped && !all && !ranged || to < from && high != "SUN"
	if to < from {
		to += size
	}
	for n := from; !d.wrong && n <= to; n += step {
		set |= 1 << (f.first + (n-f.first)%size)
	}
	return set
}

func (d *dialect) digits(text string) int {
	n, ok := words.Digits(text)
	d.wrong = d.wrong || !ok
	return n
}

// value reads a number, or a name that is at least three letters long.
func (d *dialect) value(f *cronField, text string) int {
	for i, name := range f.names {
		full := monthNames[i]
		if f.place == 5 {
			full = weekdayNames[(i+6)%7]
		}
		if strings.HasPrefix(text, name) && strings.HasPrefix(strings.ToUpper(full), text) {
			d.loose = d.loose || text != name
			return f.first + i
		}
	}
	n, first, last := d.digits(text), f.first, f.last
	if f.place == 5 {
		n, last = n-d.sunday, 7-d.sunday
	}
	d.wrong = d.wrong || n < first || n > last
	return n
}

// days returns the fields of days, each part for a line of its own.
func (d *dialect) days(times *rrule.ROption) (parts []rrule.ROption) {
	ofMonth, ofWeek := d.monthDays(), d.weekDays(times)
	switch {
	case ofMonth == nil && ofWeek == nil, !d.both && (ofMonth == nil && !star(d.fields[2]) || ofWeek == nil && !star(d.fields[4])): // either holds on every day
		return make([]rrule.ROption, 1)
	case ofMonth == nil || ofWeek == nil || !d.both && d.fields[4][0] != '+':
		return append(ofMonth, ofWeek...)
	}
	for _, one := range ofMonth {
		d.wrong = d.wrong || one.Byweekday != nil
		for _, other := range ofWeek {
			one.Byweekday = other.Byweekday
			parts = append(parts, one)
		}
	}
	return parts
}

// monthDays returns nothing for all days.
func (d *dialect) monthDays() (parts []rrule.ROption) {
	var list []int
	var items []string
	for item := range strings.SplitSeq(d.fields[2], ",") {
		found := dayOfEnd.FindStringSubmatch(item)
		if found == nil {
			items = append(items, item)
			continue
		}
		back, _ := strconv.Atoi(found[1]) // 0 for nothing
		near, _ := strconv.Atoi(found[3])
		switch {
		case near > 0:
			parts = append(parts, workdayNear(near)...)
		case found[2] != "":
			parts = append(parts, workdayNear(-1-back)...)
		default:
			list = append(list, -1-back)
		}
	}
	if list = append(d.numbers(&cronFields[2], items), list...); len(list) > 0 {
		parts = append([]rrule.ROption{{Bymonthday: list}}, parts...)
	}
	return parts
}

// workdayNear is the day that W names. It does not leave the month.
func workdayNear(day int) []rrule.ROption {
	before, after := []int{day - 1}, []int{day + 1}
	switch day {
	case -1:
		before, after = []int{-2, -3}, nil
	case 1:
		before, after = nil, []int{2, 3}
	}
	return slices.DeleteFunc([]rrule.ROption{
		{Bymonthday: []int{day}, Byweekday: weekdays[:5]}, {Bymonthday: before, Byweekday: weekdays[4:5]}, {Bymonthday: after, Byweekday: weekdays[:1]},
	}, func(part rrule.ROption) bool { return part.Bymonthday == nil })
}

// weekDays returns nothing for all days.
func (d *dialect) weekDays(times *rrule.ROption) (parts []rrule.ROption) {
	var items []string
	var numbered, list []rrule.Weekday
	for item := range strings.SplitSeq(d.fields[4], ",") {
		found := inMonth.FindStringSubmatch(item)
		switch {
		case item == "L" && d.sunday == 1:
			items = append(items, "7")
		case found == nil:
			items = append(items, item)
		default:
			day := weekdays[(d.value(&cronFields[4], found[1]+found[3]+found[4])+6)%7]
			nth, _ := strconv.Atoi(cmp.Or(found[2], "-1"))
			numbered = append(numbered, day.Nth(nth))
		}
	}
	for _, n := range d.numbers(&cronFields[4], items) {
		list = append(list, weekdays[(n+6)%7])
	}
	if slices.SortFunc(list, func(a, b rrule.Weekday) int { return a.Day() - b.Day() }); list != nil {
		parts = append(parts, rrule.ROption{Byweekday: list})
	}
	if numbered != nil { // which rules finer than a day cannot have
		parts = append(parts, rrule.ROption{Byweekday: numbered})
		times.Byhour, times.Byminute = orAll(times.Byhour, 24), orAll(times.Byminute, 60)
	}
	return parts
}

func orAll(list []int, size int) []int {
	for n := 0; n < size && len(list) <= n; n++ {
		list = append(list, n)
	}
	return list
}
