package schedule

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// RuleEnglish says a rule in English that RuleText turns into the same text again, to the letter. ok is false for all other
// rules: those that English has no words for here, and those that are written in another order.
func RuleEnglish(rule string) (text string, ok bool) {
	lines := linesOf(rule)
	if len(lines) == 0 {
		return "", false
	}
	text = speak(lines)
	if again, err := RuleText(text); err != nil || again != rule {
		return "", false
	}
	return text, true
}

const maxSpokenClocks = 24

// speak is wrong or empty for lines that do not end together.
func speak(lines []*ruleLine) string {
	var parts []string
	times := map[string][]int{} // by their days
	for _, line := range lines {
		if max(1, len(line.Byhour))*len(line.Byminute) > maxSpokenClocks {
			return ""
		}
		days := speakDays(&line.ROption)
		if times[days] == nil {
			parts = append(parts, days)
		}
		for _, hour := range orDefault(line.Byhour, 0) {
			for _, minute := range line.Byminute {
				times[days] = append(times[days], hour*60+minute)
			}
		}
	}
	for i, days := range parts {
		slices.Sort(times[days])
		clocks := words.ListOf(times[days], func(clock int) string {
			if strings.HasPrefix(days, "every hour") {
				return spokenClock(clock)[2:]
			}
			return spokenClock(clock)
		})
		parts[i] = strings.TrimSuffix(days+" at "+clocks, " at ")
	}
	text := strings.Join(parts, " and ")
	if lines[0].hasUntil {
		text += " until " + time.Unix(lines[0].until, 0).UTC().Format("2 January 2006")
	}
	return text
}

func spokenEvery(interval int, unit string) string {
	if interval <= 1 {
		return "every " + unit
	}
	return "every " + strconv.Itoa(interval) + " " + unit + "s"
}

var unitNames = map[rrule.Frequency]string{rrule.SECONDLY: "second", rrule.MINUTELY: "minute", rrule.HOURLY: "hour", rrule.DAILY: "day", rrule.WEEKLY: "week"}

func speakDays(o *rrule.ROption) string {
	in, on := "", " on "+spokenWeekdays(o.Byweekday)
	if len(o.Bymonth) > 0 {
		in = " in " + spokenMonths(o)
	}
	if len(o.Byweekday) == 0 {
		on = ""
	} else if strings.HasPrefix(on, " on week") {
		on += "s"
	}
	switch {
	case o.Freq >= rrule.DAILY, o.Freq == rrule.WEEKLY && o.Interval > 1:
		return spokenEvery(o.Interval, unitNames[o.Freq]) + on + in
	case o.Freq == rrule.WEEKLY:
		return "every " + spokenWeekdays(o.Byweekday) + in
	case o.Freq == rrule.YEARLY, in != "":
		return speakYear(o)
	case o.Interval > 1:
		return spokenEvery(o.Interval, "month") + " on the " + spokenChoice(o)
	default:
		return "on the " + spokenChoice(o) + " of the month"
	}
}

// speakYear says "every quarter on the 1st", "every year on March 1" or "every year on the last Friday of May".
func speakYear(o *rrule.ROption) string {
	choice := spokenChoice(o)
	last := strings.Contains(choice, "last")
	var dates []string
	for _, month := range o.Bymonth {
		for i, day := range o.Bymonthday {
			date := strconv.Itoa(day)
			if i == 0 {
				date = monthNames[month-1] + " " + date
			}
			dates = append(dates, date)
		}
	}
	switch {
	case o.Interval == 1 && !last && slices.Equal(o.Bymonth, quarterBegins),
		o.Interval == 1 && strings.HasPrefix(choice, "last") && slices.Equal(o.Bymonth, quarterEnds):
		return "every quarter on the " + choice
	case len(o.Byweekday) == 0 && !last:
		return spokenEvery(o.Interval, "year") + " on " + words.List(dates)
	default:
		return spokenEvery(o.Interval, "year") + " on the " + choice + " of " + spokenMonths(o)
	}
}

func spokenMonths(o *rrule.ROption) string {
	return words.ListOf(o.Bymonth, func(month int) string { return monthNames[month-1] })
}

func spokenWeekdays(days []rrule.Weekday) string {
	switch {
	case slices.Equal(days, weekdays[:5]):
		return "weekday"
	case slices.Equal(days, weekdays[5:]):
		return "weekend"
	}
	return words.ListOf(days, func(day rrule.Weekday) string { return weekdayNames[day.Day()] })
}

// splitDays splits "1MO" and "3MO" into ordinals and names.
func splitDays(days []rrule.Weekday) (ordinals, names []string) {
	for _, day := range days {
		ordinal := spokenOrdinal(day.N())
		name := weekdayNames[day.Day()]
		if !slices.Contains(ordinals, ordinal) {
			ordinals = append(ordinals, ordinal)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return ordinals, names
}

func spokenOrdinal(n int) string {
	if n < 0 {
		return map[int]string{-1: "last", -2: "penultimate"}[n]
	}
	return words.FormatOrdinal(n)
}

// spokenChoice says "1st and 15th", "last day" or "first and third Monday".
func spokenChoice(o *rrule.ROption) string {
	switch {
	case len(o.Bysetpos) > 0:
		return words.ListOf(o.Bysetpos, spokenOrdinal) + " weekday"
	case len(o.Byweekday) > 0:
		ordinals, names := splitDays(o.Byweekday)
		return words.List(ordinals) + " " + words.List(names)
	}
	return words.ListOf(o.Bymonthday, func(n int) string {
		if n > 0 {
			return words.ShortOrdinal(n)
		}
		return spokenOrdinal(n) + " day"
	})
}

// ParsedAs is how a schedule was read, for those who wrote it in their own words.
type ParsedAs struct {
	Sentence string   `json:"sentence"`           // one sentence, or the rule where English has no words for it
	Timezone string   `json:"timezone,omitempty"` // of the wall clocks in both; empty: there is no rule
	Next     []string `json:"next,omitempty"`     // the next three occurrences, such as "Tue 2026-11-24 06:00"; fewer when it ends
}

const shownNext = 3

// Sentence is the rule in English, with its start and its spread; empty where English has no words for the rule.
func (r ParsedRule) Sentence() string {
	text := cmp.Or(spokenSteps(r.Rule), Sentence(r.Rule))
	if text == "" {
		return ""
	}
	if text += spokenStart(r.Dtstart); r.Spread > 0 {
		text += ", spread over " + document.FormatDurationInWords(r.Spread)
	}
	return text
}

// spokenSteps says "every 5 minutes" of a rule that lists as many minutes of each hour. It is empty for other rules.
func spokenSteps(rule string) string {
	lines := linesOf(rule)
	if len(lines) != 1 || lines[0].Freq != rrule.HOURLY || len(lines[0].Byminute) < 3 {
		return ""
	}
	o := lines[0].ROption
	step := 60 / len(o.Byminute)
	for i, minute := range o.Byminute {
		if minute != i*step || 60%len(o.Byminute) > 0 {
			return ""
		}
	}
	o.Byminute = o.Byminute[:1]
	once, _ := RuleEnglish(ruleOf(o)) // of one time, it has words for all the rest
	return strings.Replace(strings.Replace(once, " at :00", "", 1), "every hour", spokenEvery(step, "minute"), 1)
}

func spokenStart(dtstart string) string {
	at, err := parseDtstart(dtstart)
	if err != nil || dtstart == "" {
		return ""
	}
	start := time.Unix(at, 0).UTC()
	if at%daySeconds == 0 {
		return start.Format(" starting 2 January 2006")
	}
	return start.Format(" starting 2 January 2006 at 15:04")
}

// ReadAs describes a rule, and its occurrences after an instant. An empty dtstart is midnight of the day of that instant. Errors come from Parse.
func ReadAs(rule, timezone, dtstart string, after time.Time) (u ParsedAs, err error) {
	today, err := Midnight(after, timezone)
	if err != nil {
		return u, err
	}
	starting := ""
	if dtstart = cmp.Or(dtstart, today); dtstart != today { // the default of all who say none
		starting = spokenStart(dtstart)
	}
	compiled, err := Parse(rule, timezone, dtstart)
	if err != nil {
		return u, err
	}
	text := cmp.Or(Sentence(rule), "by the rule "+strings.Join(strings.Fields(rule), " ")) + starting
	u = ParsedAs{Sentence: text, Timezone: compiled.zone.loc.String()}
	for len(u.Next) < shownNext {
		next, ok, err := compiled.Evaluate(after)
		if err != nil || !ok {
			return u, err
		}
		layout := "Mon 2006-01-02 15:04"
		if next.Second() != 0 {
			layout += ":05"
		}
		u.Next, after = append(u.Next, next.In(compiled.zone.loc).Format(layout)), next
	}
	return u, nil
}

func (u ParsedAs) String() string {
	if u.Timezone == "" {
		return u.Sentence
	}
	return u.Sentence + " (" + u.Timezone + "); next: " + cmp.Or(words.List(u.Next), "never again")
}
