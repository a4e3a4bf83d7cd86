package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"

	"github.com/teambition/rrule-go"
)

// Reading is what a text says of a schedule.
type Reading struct {
	Rule     string        // RRULE text
	Timezone string        // of its wall clocks; empty: not said
	Dtstart  string        // where it begins, in canonical form; empty: not said
	Spread   time.Duration // "twice a day" leaves to each model when: within this, from each time of the rule; 0: the times are said
}

// Read returns what a schedule says in any of the ways in which people write one:
//
//   - RRULE, RDATE and EXDATE lines pass unchanged, for Parse to judge;
//   - cron: five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @midnight, @weekly, @monthly,
//     @yearly, @annually, and "@every 90m". It means what cron means, or it is refused with what to write instead;
//   - English: "every 2 hours", "twice per day at 6 AM and 4 PM", "on the last Friday of the month at 18:00". Without a time
//     of day it is 00:00; without a day it is the Monday of a week, the first of a month or quarter, January 1 of a year. Every word
//     is understood, or the whole is refused.
//
// Cron fields and times of day name wall clocks, on whole minutes. "every 2 hours" and "@every 2h" are elapsed time from
// dtstart. Every refusal is a *document.Error of the field rrule. That a rule never occurs is for Parse to notice.
func Read(text string) (Reading, error) {
	if LooksLikeRule(text) {
		return Reading{Rule: text}, nil
	}
	text = strings.NewReplacer("–", "-", "—", "-").Replace(text)
	if err := checkRuleText(text); err != nil {
		return Reading{}, err
	}
	if looksLikeCron(text) {
		rule, err := cronRule(text)
		return Reading{Rule: rule}, err
	}
	return readEnglish(text)
}

// RuleText is Read of a text that says nothing but a rule.
func RuleText(text string) (string, error) {
	r, err := Read(text)
	if err == nil && r.Timezone+r.Dtstart != "" {
		return "", refuseRule("a rule without a zone and a start, which have the fields timezone and dtstart", document.Found(text))
	}
	return r.Rule, err
}

// LooksLikeRule recognizes RRULE lines, also where it is wrong, so that its own reader can say what is wrong with it.
func LooksLikeRule(text string) bool {
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
		until := line.Until
		line.Until = time.Time{}
		texts[i] = strings.ReplaceAll(line.RRuleString(), "+", "") // the library writes +1MO
		if !until.IsZero() {                                       // and a Z behind a wall clock
			texts[i] += ";UNTIL=" + until.Format(rfcLayout)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "RRULE:" + strings.Join(texts, "\nRRULE:")
}

// ReadFields returns the fields rrule, timezone and dtstart of a document; absent and null are "". A rule in English may say all three.
func ReadFields(d document.Object) (r Reading, err error) {
	text, err := d.Text("rrule")
	if err == nil && text != "" {
		r, err = Read(text)
	}
	for _, part := range []struct {
		field string
		said  *string
	}{{"timezone", &r.Timezone}, {"dtstart", &r.Dtstart}} {
		value := ""
		if err == nil {
			value, err = d.Text(part.field)
		}
		if err == nil && part.field == "dtstart" && value != "" {
			value, err = CanonicalDtstart(value)
		}
		if err == nil && value != "" && *part.said != "" && value != *part.said {
			err = document.Refuse(part.field, document.Found(*part.said)+", which the rule says, or none", document.Found(value))
		}
		*part.said = cmp.Or(*part.said, value)
	}
	return r, err
}
