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
	fromEnd  = regexp.MustCompile(`^L(?:-(\d|1\d|2[0-6]))?(W?)$`)
	nearest  = regexp.MustCompile(`^([1-9]|1\d|2[0-7])W$`) // behind that the month may end first
	inMonth  = regexp.MustCompile(`^(\w+)#([1-5])$|^(\w+?)#?L$|^L([0-7])$`)
)

// offer writes the rule of a dialect: five fields that mean the same, or else RRULE lines. ok is false if it never occurs, or there is none.
func (d *dialect) offer() (rule string, ok bool) {
	var times [4]cronSet
	for i, field := range []*cronField{&cronFields[0], &cronFields[1], &cronFields[3], &cronSecond} {
		text := []string{d.fields[0], d.fields[1], d.fields[3], cmp.Or(d.seconds, "0")}[i]
		if times[i], ok = d.set(field, strings.Split(text, ",")); !ok {
			return "", false
		}
	}
	base := rrule.ROption{Byminute: times[0].list(), Byhour: times[1].list(), Bymonth: times[2].list(), Bysecond: times[3].list()}
	lines := d.days(&base)
	years := yearSpan.FindStringSubmatch(d.years)
	if len(lines) == 0 || len(lines) > maxRules || years == nil && strings.Trim(d.years, "*") != "" {
		return "", false
	}
	text := strings.ReplaceAll(strings.Join(d.fields[:], " "), "?", "*")
	own, err := exactCron(text)
	five := err == nil && !d.both && years == nil && slices.Equal(base.Bysecond, midnight) && (d.told == "" || !strings.ContainsAny(d.fields[4], "01234567"))
	for i := range lines {
		line := base
		line.Bymonthday, line.Byweekday = lines[i].Bymonthday, lines[i].Byweekday
		if line.Freq = cronFrequency(line); line.Freq == rrule.WEEKLY && (len(line.Bymonthday) > 0 || line.Byweekday[0].N() != 0) {
			line.Freq = rrule.MONTHLY
		}
		if years != nil {
			last, _ := strconv.Atoi(cmp.Or(years[2], years[1]))
			line.Until = time.Date(last, 12, 31, 23, 59, 59, 0, time.UTC)
		}
		lines[i] = line
	}
	if rule = ruleOf(lines...); five {
		rule = own
	}
	if _, err = Parse(rule, "", DefaultDtstart); five {
		rule = text
	}
	if years != nil {
		rule = "DTSTART:" + years[1] + "0101T000000\nRRULE:" + strings.TrimPrefix(rule, "RRULE:")
	}
	return rule, err == nil
}

func (d *dialect) set(f *cronField, items []string) (set cronSet, ok bool) {
	set.field, set.star, ok = f, len(items) == 1 && star(items[0]), true
	for i := 0; ok && i < len(items); i++ {
		var more uint64
		more, ok = d.item(f, items[i])
		set.bits |= more
	}
	return set, ok
}

// item reads one of a list, e.g. "*/5", "MON-FRI" or "10-50/20", and as generously as any scheduler does.
func (d *dialect) item(f *cronField, text string) (set uint64, ok bool) {
	size := f.last - f.first + 1
	if found := hashed.FindStringSubmatch(text); found != nil && (f.place == 1 || f.place == 2) {
		low, high := cmp.Or(found[1]+found[4], "0"), cmp.Or(found[2]+found[5], strconv.Itoa(f.last))
		from, _ := words.Digits(low)
		slots, _ := words.Digits(high)
		slots, text, d.loose = slots-from+1, low, true
		if slots < 1 {
			return 0, false
		}
		if found[3] != "" {
			slots, _ = words.Digits(found[3])
			text = low + "-" + high + "/" + found[3]
		}
		d.spread = max(d.spread, time.Duration(slots)*[]time.Duration{time.Minute, time.Hour}[f.place-1])
	}
	span, stepText, stepped := strings.Cut(strings.TrimPrefix(text, "+"), "/")
	low, high, ranged := strings.Cut(span, "-")
	from, to, step, ok := f.first, f.last, 1, true
	if stepped {
		step, ok = words.Digits(stepText)
		ok = ok && step > 0
	}
	all := span == "*" || span == "?" && (f.place == 3 || f.place == 5)
	if !all {
		var fromOK, toOK bool
		from, fromOK = d.value(f, low)
		if to, toOK = d.value(f, high); !ranged {
			to, toOK = from, true
		}
		if !ranged && stepped && !d.alone {
			to = f.last
		}
		ok = ok && fromOK && toOK
	}
	d.loose = d.loose || span == "?" || text[:min(1, len(text))] == "+" || step > size || stepped && !all && !ranged || to < from && high != "SUN"
	if to < from {
		to += size
	}
	for n := from; ok && n <= to; n += step {
		set |= 1 << (f.first + (n-f.first)%size)
	}
	return set, ok
}

// value reads a number, or a name that is at least three letters long.
func (d *dialect) value(f *cronField, text string) (n int, ok bool) {
	for i, name := range f.names {
		full := monthNames[i]
		if f.place == 5 {
			full = weekdayNames[(i+6)%7]
		}
		if strings.HasPrefix(text, name) && strings.HasPrefix(strings.ToUpper(full), text) {
			d.loose = d.loose || text != name
			return f.first + i, true
		}
	}
	n, ok = words.Digits(text)
	if f.place == 5 {
		n -= d.sunday
		return n, ok && n >= 0 && n <= 7-d.sunday
	}
	return n, ok && n >= f.first && n <= f.last
}

// days returns what the fields of days say, each part for a line of its own; none: nothing that we know.
func (d *dialect) days(times *rrule.ROption) (parts []rrule.ROption) {
	ofMonth, ok := d.monthDays()
	ofWeek, also := d.weekDays(times)
	switch {
	case !ok || !also:
	case ofMonth == nil && ofWeek == nil, !d.both && (ofMonth == nil && !star(d.fields[2]) || ofWeek == nil && !star(d.fields[4])): // either holds on every day
		parts = make([]rrule.ROption, 1)
	case ofMonth == nil || ofWeek == nil || !d.both && d.fields[4][0] != '+':
		parts = append(ofMonth, ofWeek...)
	default:
		for _, one := range ofMonth {
			if one.Byweekday != nil {
				return nil
			}
			for _, other := range ofWeek {
				one.Byweekday = other.Byweekday
				parts = append(parts, one)
			}
		}
	}
	return parts
}

// monthDays returns nothing for all days.
func (d *dialect) monthDays() (parts []rrule.ROption, ok bool) {
	var list []int
	var items []string
	for item := range strings.SplitSeq(d.fields[2], ",") {
		end, near := fromEnd.FindStringSubmatch(item), nearest.FindStringSubmatch(item)
		day := 0
		switch {
		case end != nil:
			day, _ = words.Digits(cmp.Or(end[1], "0"))
			day = -1 - day
		case near != nil:
			day, _ = words.Digits(near[1])
		default:
			items = append(items, item)
			continue
		}
		if near != nil || end[2] != "" {
			parts = append(parts, workdayNear(day)...)
		} else {
			list = append(list, day)
		}
	}
	set, ok := d.set(&cronFields[2], items)
	if list = append(set.list(), list...); len(list) > 0 {
		parts = append([]rrule.ROption{{Bymonthday: list}}, parts...)
	}
	return parts, ok
}

// workdayNear is the day that W stands for. It does not leave the month.
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
func (d *dialect) weekDays(times *rrule.ROption) (parts []rrule.ROption, ok bool) {
	var items []string
	var numbered []rrule.Weekday
	for item := range strings.SplitSeq(d.fields[4], ",") {
		found := inMonth.FindStringSubmatch(item)
		if item == "L" && d.sunday == 1 {
			item = "7"
		}
		if found == nil {
			items = append(items, item)
			continue
		}
		day, ok := d.value(&cronFields[4], found[1]+found[3]+found[4])
		if !ok {
			return nil, false
		}
		nth, _ := strconv.Atoi(cmp.Or(found[2], "-1"))
		numbered = append(numbered, weekdays[(day+6)%7].Nth(nth))
	}
	set, ok := d.set(&cronFields[4], items)
	if list := set.weekdays(); list != nil {
		parts = append(parts, rrule.ROption{Byweekday: list})
	}
	if numbered != nil { // which rules finer than a day cannot have
		parts = append(parts, rrule.ROption{Byweekday: numbered})
		times.Byhour, times.Byminute = orAll(times.Byhour, 24), orAll(times.Byminute, 60)
	}
	return parts, ok
}

func orAll(list []int, size int) []int {
	for n := 0; n < size && len(list) <= n; n++ {
		list = append(list, n)
	}
	return list
}
