package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
)

func onlyCron(field string) bool { return strings.Trim(field, "0123456789*/,-?LWH#~()") == "" }

const fiveFields = "five cron fields (minute, hour, day of month, month, day of week)"

// exactCron reads what has exactly one meaning.
func exactCron(text string) (string, error) {
	fields := strings.Fields(text)
	if strings.HasPrefix(fields[0], "@") {
		name := strings.ToLower(fields[0])
		if expression, ok := cronNicknames[name]; ok && len(fields) == 1 {
			return exactCron(expression)
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
		return "", refuseRule(fiveFields, fmt.Sprintf("%d in %s", len(fields), document.Found(text)))
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
	byWeekday.Byweekday = onWeekdays.weekdays()
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
	case len(o.Bysecond) == 0:
		return rrule.SECONDLY
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

// weekdays are none when all are allowed.
func (s cronSet) weekdays() (list []rrule.Weekday) {
	for i, day := range weekdays { // from Monday on
		if s.has((i+1)%7) && !s.full() {
			list = append(list, day)
		}
	}
	return list
}

func (f *cronField) read(text string) (cronSet, error) {
	var ours dialect
	set := cronSet{field: f, star: text == "*" || text == "*/1", wild: strings.Contains(text, "*")}
	for item := range strings.SplitSeq(strings.ToUpper(text), ",") {
		bits, ok := ours.item(f, item)
		if !ok || ours.loose {
			want := fmt.Sprintf("numbers from %d to %d", f.first, f.last)
			if f.names != nil {
				want += " or " + f.names[0] + " to " + f.names[len(f.names)-1]
			}
			want += fmt.Sprintf(", as 1, 1-5, */2 or 1,5, in the %s (field %d of the cron expression)", f.name, f.place)
			return set, refuseRule(want, document.Found(text))
		}
		set.bits |= bits
	}
	return set, nil
}
