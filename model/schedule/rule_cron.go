package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

func onlyCron(field string) bool { return strings.Trim(field, "0123456789*/,-?LWH#~()") == "" }

const fiveFields = "five cron fields (minute, hour, day of month, month, day of week)"

func cronRule(text string) (string, error) {
	fields := strings.Fields(text)
	if strings.HasPrefix(fields[0], "@") {
		name := strings.ToLower(fields[0])
		if expression, ok := cronNicknames[name]; ok && len(fields) == 1 {
			return cronRule(expression)
		}
		want := "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually or @every with a duration"
		if name == "@reboot" {
			want += ", which are times (a start of the machine is none)"
		}
		if name == "@every" && len(fields) > 1 {
			every, err := document.ParseDuration(strings.Join(fields[1:], " "))
			if rule, ok := elapsedRule(every); ok && err == nil {
				return rule, nil
			}
			want = `@every and a duration of whole seconds such as "@every 90m", at most 1000000 of its unit`
		}
		return "", refuseRule(want, document.Found(text))
	}
	if strings.Contains(strings.ToUpper(fields[0]), "TZ=") {
		return "", refuseRule(fiveFields+"; the zone stands in the timezone field", document.Found(fields[0]))
	}
	if len(fields) != len(cronFields) {
		want := fiveFields
		if len(fields) == 6 || len(fields) == 7 {
			want += "; seconds and years need a rule such as FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=30"
		}
		return "", refuseRule(want, fmt.Sprintf("%d in %s", len(fields), document.Found(text)))
	}
	var c [5]cronSet
	for i, field := range fields {
		set, err := cronFields[i].read(field)
		if err != nil {
			return "", err
		}
		c[i] = set
	}
	return cronLines(c, fields)
}

// cronFate says what cron(8) makes of the named hours of an expression when clocks are set; empty: what we do, or the text is no cron expression.
// The crons of Debian and cronie leave a minute or an hour that begins with * to the clock, and run what was skipped as soon as that is over.
func cronFate(text string, before, behind int64) string {
	if expression, ok := cronNicknames[strings.ToLower(text)]; ok {
		text = expression
	}
	fields := strings.Fields(text)
	if len(fields) != len(cronFields) || !onlyCron(fields[0]+fields[1]) {
		return ""
	}
	switch free := fields[0][0] == '*' || fields[1][0] == '*'; {
	case free && behind < before:
		return "cron(8) runs it in both"
	case free:
		return "cron(8) does not run it"
	case behind > before:
		return "cron(8) runs it at " + timeOfDay(behind)
	}
	return ""
}

func refuseRule(want, found string) error { return document.Refuse("rrule", want, found) }

var cronNicknames = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// elapsedRule writes "so much time after the last one" in the longest unit that fits.
func elapsedRule(every time.Duration) (rule string, ok bool) {
	for _, freq := range []rrule.Frequency{rrule.HOURLY, rrule.MINUTELY, rrule.SECONDLY} {
		unit := time.Duration(slotSeconds(freq)) * time.Second
		if every > 0 && every%unit == 0 && every/unit <= maxInterval {
			return ruleOf(rrule.ROption{Freq: freq, Interval: int(every / unit)}), true
		}
	}
	return "", false
}

// cronLines composes the rule. When both kinds of day are restricted, cron means either: one line for each.
func cronLines(c [5]cronSet, fields []string) (string, error) {
	minutes, hours, days, months, onWeekdays := c[0], c[1], c[2], c[3], c[4]
	base := rrule.ROption{Bymonth: months.list(), Byhour: hours.list(), Byminute: minutes.list(), Bysecond: midnight}
	byMonthDay, byWeekday := base, base
	byMonthDay.Bymonthday = days.list()
	for i, day := range weekdays { // from Monday on; none when all are allowed
		if onWeekdays.has((i+1)%7) && !onWeekdays.full() {
			byWeekday.Byweekday = append(byWeekday.Byweekday, day)
		}
	}
	lines := []rrule.ROption{base}
	switch {
	case onWeekdays.star:
		lines[0] = byMonthDay
	case days.star:
		lines[0] = byWeekday
	case days.wild || onWeekdays.wild:
		return "", refuseRule("a list such as 1,11,21 instead of * with a step beside another day: crons disagree on whether both must hold",
			document.Found(strings.Join(fields[2:], " ")))
	case days.full() || onWeekdays.full(): // either holds on every day
	case !dateExists(months, days):
		lines[0] = byWeekday
	default:
		lines = []rrule.ROption{byMonthDay, byWeekday}
	}
	for i := range lines {
		lines[i].Freq = cronFrequency(lines[i])
	}
	return ruleOf(lines...), nil
}

// cronFrequency chooses the frequency whose BY parts then are the fields, without naming each minute of each hour.
func cronFrequency(o rrule.ROption) rrule.Frequency {
	switch {
	case len(o.Byminute) == 0:
		return rrule.MINUTELY
	case len(o.Byhour) == 0:
		return rrule.HOURLY
	case len(o.Byweekday) > 0:
		return rrule.WEEKLY
	case len(o.Bymonthday) > 0 && len(o.Bymonth) > 0:
		return rrule.YEARLY
	case len(o.Bymonthday) > 0:
		return rrule.MONTHLY
	default:
		return rrule.DAILY
	}
}

func dateExists(months, days cronSet) bool {
	for month := 1; month <= 12; month++ {
		last := time.Date(2000, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day() // a leap year
		if months.has(month) && days.bits&(1<<(last+1)-1) != 0 {
			return true
		}
	}
	return false
}

type cronField struct {
	place       int // 1 to 5
	name        string
	first, last int
	names       []string // for the numbers from first on
}

var cronFields = [5]cronField{
	{1, "minute", 0, 59, nil},
	{2, "hour", 0, 23, nil},
	{3, "day of month", 1, 31, nil},
	{4, "month", 1, 12, []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{5, "day of week", 0, 6, []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}, // and 7, Sunday again
}

type cronSet struct {
	field *cronField
	bits  uint64 // bit n is set when n is allowed
	star  bool   // the field is a * alone, which does not count as a restriction of days
	wild  bool   // the field holds a * and more
}

func (s cronSet) has(n int) bool { return s.bits>>n&1 == 1 }

func (s cronSet) full() bool { return len(s.list()) == 0 }

// list is empty when all are allowed. But 0-23 names each hour, where * leaves it free.
func (s cronSet) list() []int {
	var list []int
	for n := s.field.first; n <= s.field.last; n++ {
		if s.has(n) {
			list = append(list, n)
		}
	}
	if len(list) == s.field.last-s.field.first+1 && (s.star || s.field.place != 2) {
		return nil
	}
	return list
}

func (f *cronField) read(text string) (cronSet, error) {
	set := cronSet{field: f, star: text == "*" || text == "*/1", wild: strings.Contains(text, "*")}
	for item := range strings.SplitSeq(strings.ToUpper(text), ",") {
		bits, ok := f.item(item)
		if !ok {
			want := fmt.Sprintf("numbers from %d to %d", f.first, f.last)
			if f.names != nil {
				want += " or " + f.names[0] + " to " + f.names[len(f.names)-1]
			}
			want += fmt.Sprintf(", as 1, 1-5, */2 or 1,5, in the %s (field %d of the cron expression)", f.name, f.place)
			if hint := f.hint(item); hint != "" {
				want += "; " + hint
			}
			return set, refuseRule(want, document.Found(text))
		}
		set.bits |= bits
	}
	if f.place == 5 && set.has(7) {
		set.bits |= 1
	}
	return set, nil
}

// item reads one of a list, e.g. "*/5", "MON-FRI" or "10-50/20". Crons disagree about what a step after a single number means, so it is refused.
func (f *cronField) item(text string) (bits uint64, ok bool) {
	span, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, ok = words.Digits(stepText); !ok || step < 1 || step > f.last-f.first+1 {
			return 0, false
		}
	}
	from, to, ok := f.first, f.last, true
	if span != "*" {
		low, high, ranged := strings.Cut(span, "-")
		from, ok = f.value(low)
		if to = from; ranged {
			var toOK bool
			if to, toOK = f.value(high); f.place == 5 && high == "SUN" && from > 0 {
				to = 7
			}
			ok = ok && toOK && from <= to
		}
		ok = ok && (ranged || !stepped)
	}
	for n := from; ok && n <= to; n += step {
		bits |= 1 << n
	}
	return bits, ok
}

func (f *cronField) value(text string) (n int, ok bool) {
	if at := slices.Index(f.names, text); at >= 0 {
		return f.first + at, true
	}
	n, ok = words.Digits(text)
	return n, ok && n >= f.first && (n <= f.last || f.place == 5 && n == 7)
}

func (f *cronField) hint(item string) string {
	name, ordinal, nth := strings.Cut(item, "#") // "MON#2", the second Monday of the month
	if !nth {
		name, nth = strings.CutSuffix(item, "L") // "5L", its last Friday
		ordinal = "-1"
	}
	day, isDay := f.value(name)
	switch {
	case strings.Contains(item, "?"):
		return "* stands for ? as well"
	case strings.HasPrefix(item, "H") || strings.Contains(item, "~"):
		return "the spread of a policy keeps models apart"
	case f.place == 3 && item == "LW":
		return "the last working day is FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"
	case f.place == 3 && strings.Contains(item, "W"):
		return nearestWeekday
	case f.place == 3 && strings.HasPrefix(item, "L"):
		return "the last day of the month is FREQ=MONTHLY;BYMONTHDAY=-1"
	case f.place == 5 && nth && isDay:
		return "that day of the month is FREQ=MONTHLY;BYDAY=" + document.Shorten(ordinal, 5) + weekdays[(day+6)%7].String()
	default:
		return f.spanHint(item)
	}
}

const nearestWeekday = "there is no W; write one RRULE line each for FREQ=MONTHLY;BYMONTHDAY=15;BYDAY=MO,TU,WE,TH,FR, for BYMONTHDAY=14;BYDAY=FR and for BYMONTHDAY=16;BYDAY=MO"

// spanHint is for "5/10", "22-2" and "*/90".
func (f *cronField) spanHint(item string) string {
	span, step, stepped := strings.Cut(item, "/")
	low, high, ranged := strings.Cut(span, "-")
	from, fromOK := f.value(low)
	to, toOK := f.value(high)
	number, stepOK := words.Digits(step)
	switch {
	case stepped && !ranged && fromOK:
		return fmt.Sprintf("a step needs a range, %d-%d/%s", from, f.last, document.Shorten(step, 10))
	case ranged && fromOK && toOK && from > to:
		return fmt.Sprintf("a range rises: %d-%d,%d-%d", from, f.last, f.first, to)
	case stepOK && number > f.last && f.place <= 2:
		return fmt.Sprintf(`"every %d %ss" counts beyond the field`, number, f.name)
	default:
		return ""
	}
}
