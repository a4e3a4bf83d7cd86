package schedule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
)

func onlyCron(field string) bool { return strings.Trim(field, "0123456789*/,-?LWH#~()") == "" }

const fiveFields = "five cron fields (minute, hour, day of month, month, day of week)"

// exactCron reads expressions with exactly one meaning.
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
	ours := dialect{fields: [5]string(strings.Fields(strings.ToUpper(text)))}
	for i := range cronFields {
		if ours.numbers(&cronFields[i], strings.Split(ours.fields[i], ",")); ours.wrong || ours.loose {
			return "", refuseRule(cronFields[i].want(), document.Found(fields[i]))
		}
	}
	if days, ofWeek := fields[2], fields[4]; !star(days) && !star(ofWeek) && strings.Contains(days+ofWeek, "*") {
		return "", refuseRule("a list such as 1,11,21 instead of * with a step beside another day: crons disagree on whether both must hold",
			document.Found(strings.Join(fields[2:], " ")))
	}
	return ruleOf(ours.lines()...), nil
}

// cronFate says what cron(8) makes of the named hours of an expression when clocks are set; empty: what we do, or the text is no cron expression.
// The crons of Debian and cronie leave a minute or an hour that begins with * to the clock, and run all that was skipped as soon as that is over.
func (s *Schedule) cronFate(text string, change time.Time, before, behind int64) string {
	if expression, ok := cronNicknames[strings.ToLower(text)]; ok {
		text = expression
	}
	fields := strings.Fields(text)
	if len(fields) != len(cronFields) || !onlyCron(fields[0]+fields[1]) {
		return ""
	}
	free := fields[0][0] == '*' || fields[1][0] == '*'
	if free && behind < before {
		return "cron(8) runs it in both"
	}
	it := "it" // the first skipped time, which a text before this one tells
	for wall := before; wall < behind; wall += 60 {
		if !s.names(wall, change.Unix()) {
			continue
		}
		name := cmp.Or(it, "that of "+timeOfDay(wall))
		it = ""
		switch again := s.names(wall+behind-before, change.Unix()); {
		case free && !again:
			return "cron(8) does not run " + name
		case !free && wall > before:
			return "cron(8) runs " + name + " at " + timeOfDay(behind)
		case !free && again:
			return "cron(8) runs it at " + timeOfDay(behind) + ", twice"
		}
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

func (f *cronField) want() string {
	want := fmt.Sprintf("numbers from %d to %d", f.first, f.last)
	if f.names != nil {
		want += " or " + f.names[0] + " to " + f.names[len(f.names)-1]
	}
	return want + fmt.Sprintf(", as 1, 1-5, */2 or 1,5, in the %s (field %d of the cron expression)", f.name, f.place)
}
