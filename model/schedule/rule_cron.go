package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// looksLikeCron tells a cron expression, right or wrong, from English: "5 4 * * *", but not "3 times per day".
func looksLikeCron(text string) bool {
	text = strings.ToUpper(strings.TrimSpace(text))
	if strings.HasPrefix(text, "@") || strings.Contains(text, "TZ=") {
		return true
	}
	fields := strings.Fields(text)
	if !onlyCron(fields[0]) {
		return false
	}
	return len(fields) == 1 || onlyCron(fields[1]) || slices.Contains(fields, "*")
}

// onlyCron tells whether a field has only characters of cron, apart from names.
func onlyCron(field string) bool { return strings.Trim(field, "0123456789*/,-?LWH#~()") == "" }

const fiveFields = "five cron fields (minute, hour, day of month, month, day of week)"

// cronRule converts a cron expression.
func cronRule(text string) (string, error) {
	fields := strings.Fields(text)
	if strings.HasPrefix(fields[0], "@") {
		return cronNickname(text, fields)
	}
	if strings.Contains(strings.ToUpper(fields[0]), "TZ=") {
		return "", refuseRule(fiveFields+"; the zone stands in the timezone field", document.Found(fields[0]))
	}
	if len(fields) != len(cronFields) {
		return "", refuseCount(text, len(fields))
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

func refuseRule(want, found string) error {
	return &document.Error{Field: "rrule", Want: want, Found: found}
}

func refuseCount(text string, n int) error {
	want := fiveFields
	if n == 6 || n == 7 {
		want += "; seconds and years need a rule such as FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=30"
	}
	return refuseRule(want, fmt.Sprintf("%d in %s", n, document.Found(text)))
}

var cronNicknames = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

func cronNickname(text string, fields []string) (string, error) {
	name := strings.ToLower(fields[0])
	if expression, ok := cronNicknames[name]; ok && len(fields) == 1 {
		return cronRule(expression)
	}
	if name == "@every" && len(fields) > 1 {
		every, err := document.ParseDuration(strings.Join(fields[1:], " "))
		if rule, ok := elapsedRule(every); ok && err == nil {
			return rule, nil
		}
		return "", refuseRule(`@every and a duration of whole seconds such as "@every 90m", at most 1000000 of its unit`, document.Found(text))
	}
	want := "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually or @every with a duration"
	if name == "@reboot" {
		want += ", which are times (a start of the machine is none)"
	}
	return "", refuseRule(want, document.Found(text))
}

// elapsedRule writes "so much time after the last one" in the longest unit that fits.
func elapsedRule(every time.Duration) (rule string, ok bool) {
	for _, unit := range []struct {
		freq   string
		length time.Duration
	}{{"HOURLY", time.Hour}, {"MINUTELY", time.Minute}, {"SECONDLY", time.Second}} {
		if every > 0 && every%unit.length == 0 && every/unit.length <= maxInterval {
			return outline{freq: unit.freq, interval: int(every / unit.length)}.String(), true
		}
	}
	return "", false
}

// The places of the fields.
const (
	cronMinute = iota
	cronHour
	cronMonthDay
	cronMonth
	cronWeekday
)

// cronLines composes the rule. When both kinds of day are restricted, cron means either: one line for each.
func cronLines(c [5]cronSet, fields []string) (string, error) {
	days, weekdays := c[cronMonthDay], c[cronWeekday]
	base := outline{months: c[cronMonth].list(), hours: c[cronHour].list(), minutes: c[cronMinute].list(), seconds: midnight}
	byMonthDay, byWeekday := base, base
	byMonthDay.monthDays, byWeekday.days = days.list(), weekdays.weekdays()
	lines := []outline{base}
	switch {
	case weekdays.star:
		lines[0] = byMonthDay
	case days.star:
		lines[0] = byWeekday
	case days.wild || weekdays.wild:
		return "", refuseRule("a list such as 1,11,21 instead of * with a step beside another day: crons disagree on whether both must hold",
			document.Found(fields[cronMonthDay]+" "+fields[cronMonth]+" "+fields[cronWeekday]))
	case days.full() || weekdays.full(): // either holds on every day
	case !dateExists(c[cronMonth], days):
		lines[0] = byWeekday
	default:
		lines = []outline{byMonthDay, byWeekday}
	}
	for i := range lines {
		lines[i].freq = cronFrequency(lines[i])
	}
	return ruleOf(lines), nil
}

// cronFrequency chooses the frequency whose BY parts then are the fields, without naming each minute of each hour.
func cronFrequency(o outline) string {
	switch {
	case len(o.minutes) == 0:
		return "MINUTELY"
	case len(o.hours) == 0:
		return "HOURLY"
	case len(o.days) > 0:
		return "WEEKLY"
	case len(o.monthDays) > 0 && len(o.months) > 0:
		return "YEARLY"
	case len(o.monthDays) > 0:
		return "MONTHLY"
	default:
		return "DAILY"
	}
}

// dateExists tells whether one of the months ever has one of the days.
func dateExists(months, days cronSet) bool {
	for month := 1; month <= 12; month++ {
		last := time.Date(2000, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day() // a leap year
		if months.has(month) && days.bits&(1<<(last+1)-1) != 0 {
			return true
		}
	}
	return false
}
