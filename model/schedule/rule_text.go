package schedule

import (
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"

	"github.com/teambition/rrule-go"
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
	first, _, _ := strings.Cut(upper, " ")
	names := []string{"RRULE", "RDATE", "EXDATE", "EXRULE", "DTSTART", "BEGIN:"}
	return strings.Contains(upper, "FREQ=") || strings.Contains(first, "=") && !strings.Contains(first, "TZ=") ||
		slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(upper, name) })
}

// ruleOf writes one line as it is and several with their names. An INTERVAL of 0 or 1 is left out.
func ruleOf(lines ...rrule.ROption) string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		if line.Interval == 1 {
			line.Interval = 0
		}
		texts[i] = strings.ReplaceAll(line.RRuleString(), "+", "") // the library writes +1MO
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "RRULE:" + strings.Join(texts, "\nRRULE:")
}

// ReadRuleField returns the field rrule of a document, in whatever way of RuleText it is written, as RRULE text; absent and null are "".
func ReadRuleField(d document.Object) (string, error) {
	text, err := d.Text("rrule")
	if err != nil || text == "" {
		return "", err
	}
	return RuleText(text)
}
