package schedule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// RuleText returns the RRULE text of a schedule in any of the ways in which people write one:
//
//   - RRULE, RDATE and EXDATE lines pass unchanged, for Parse to judge;
//   - cron: five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @midnight, @weekly, @monthly,
//     @yearly, @annually, and "@every 90m". It means what cron means, or it is refused with what to write instead;
//   - English: "every 2 hours", "twice per day at 6 AM and 4 PM", "on the last Friday of the month at 18:00". Without a time
//     of day it is 00:00; without a day it is the Monday of a week, the first of a month or quarter, January 1 of a year.
//
// Cron fields and times of day name wall clocks, on whole minutes. "every 2 hours" and "@every 2h" are elapsed time from
// dtstart. Every refusal is a *document.Error of the field rrule. That a rule never occurs is for Parse to notice.
func RuleText(text string) (string, error) {
	if looksLikeRule(text) {
		return text, nil
	}
	if err := checkRuleText(text); err != nil {
		return "", err
	}
	if looksLikeCron(text) {
		return cronRule(text)
	}
	return phraseRule(text)
}

// looksLikeRule recognizes RFC 5545, also where it is wrong, so that its own reader can say what is wrong with it.
func looksLikeRule(text string) bool {
	upper := strings.ToUpper(strings.TrimSpace(text))
	if strings.Contains(upper, "FREQ=") {
		return true
	}
	for _, name := range []string{"RRULE", "RDATE", "EXDATE", "EXRULE", "DTSTART", "BEGIN:"} {
		if strings.HasPrefix(upper, name) {
			return true
		}
	}
	first, _, _ := strings.Cut(upper, " ")
	return strings.Contains(first, "=") && !strings.Contains(first, "TZ=")
}

// outline is one RRULE line in the making, of those that cron and English need. An empty list leaves its part out.
type outline struct {
	freq                    string
	interval                int // 0 and 1 are left out
	months, monthDays       []int
	days                    []string // "MO" or "-1FR"
	hours, minutes, seconds []int
}

// numbers returns the list of a part that lists numbers; nil for every other part.
func (o *outline) numbers(part string) *[]int {
	switch part {
	case "BYMONTH":
		return &o.months
	case "BYMONTHDAY":
		return &o.monthDays
	case "BYHOUR":
		return &o.hours
	case "BYMINUTE":
		return &o.minutes
	case "BYSECOND":
		return &o.seconds
	default:
		return nil
	}
}

func (o outline) String() string {
	text := "FREQ=" + o.freq
	if o.interval > 1 {
		text += ";INTERVAL=" + strconv.Itoa(o.interval)
	}
	for _, part := range []string{"BYMONTH", "BYMONTHDAY", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND"} {
		list := o.days
		if numbers := o.numbers(part); numbers != nil {
			list = numerals(*numbers)
		}
		if len(list) > 0 {
			text += ";" + part + "=" + strings.Join(list, ",")
		}
	}
	return text
}

func numerals(list []int) []string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return texts
}

// ruleOf writes one line as it is and several with their names.
func ruleOf(lines []outline) string {
	if len(lines) == 1 {
		return lines[0].String()
	}
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = "RRULE:" + line.String()
	}
	return strings.Join(texts, "\n")
}

// outlinesOf reads lines that ruleOf may have written. ok is false for all that an outline cannot hold.
func outlinesOf(rule string) (lines []outline, ok bool) {
	for text := range strings.SplitSeq(rule, "\n") {
		var line outline
		for part := range strings.SplitSeq(strings.TrimPrefix(text, "RRULE:"), ";") {
			name, value, _ := strings.Cut(part, "=")
			if !line.take(name, strings.Split(value, ",")) {
				return nil, false
			}
		}
		lines = append(lines, line)
	}
	return lines, true
}

// take reads one part, if an outline can hold it.
func (o *outline) take(part string, list []string) (ok bool) {
	switch part {
	case "FREQ":
		o.freq = list[0]
		return true
	case "BYDAY":
		o.days = list
		return !slices.ContainsFunc(list, func(text string) bool { _, ok := readDay(text); return !ok })
	case "INTERVAL":
		n, err := strconv.Atoi(list[0])
		o.interval = n
		return err == nil
	}
	bounds, to := intLists[part], o.numbers(part)
	if to == nil {
		return false
	}
	for _, text := range list {
		n, err := strconv.Atoi(text)
		if err != nil || n > bounds.last || n < bounds.first && (!bounds.fromEnd || n != -1) {
			return false
		}
		*to = append(*to, n)
	}
	return true
}

// ReadRuleField returns the field rrule of a document, in whatever way of RuleText it is written, as RRULE text; absent and null are "".
func ReadRuleField(d document.Object) (string, error) {
	text, err := d.Text("rrule")
	if err != nil || text == "" {
		return "", err
	}
	return RuleText(text)
}
