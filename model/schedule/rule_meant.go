package schedule

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/teambition/rrule-go"
)

// linesOf reads the RRULE lines of a rule. One that is refused has none.
func linesOf(rule string) []*ruleLine {
	set, err := readRuleSet(rule, zone{time.UTC})
	if err != nil {
		return nil
	}
	return set.rules
}

// Remarks list the parts of a rule that people read in several ways, and what to write for another reading. A rule that is refused has none.
func Remarks(rule string) (remarks []string) {
	for _, line := range linesOf(rule) {
		if len(line.Byweekno) > 0 && len(line.Byweekday)+len(line.Bymonthday)+len(line.Byyearday) == 0 {
			remarks = append(remarks, "BYWEEKNO without a day is all seven days of its weeks; BYDAY=MO is one of them")
		}
		if line.untilDate != "" {
			remarks = append(remarks, "UNTIL="+line.untilDate+" includes that day: it is "+line.untilDate+"T235959 in the zone of the rule")
		}
	}
	return remarks
}

// Sentence says how a rule was read, in English if there are words for it. Empty: there are none. Of a cron expression that names days of the month
// and weekdays it says how to write days that are both, as other schedulers read it.
func Sentence(rule string) string {
	text, _ := RuleEnglish(rule)
	lines := linesOf(rule)
	if both := bothDays(lines); both != "" {
		text = cmp.Or(speak(lines), "on days of the month and on weekdays") + "; if you mean days that are both: " + strconv.Quote(both)
	}
	return text
}

// bothDays asks of each day what two lines ask of one each. Empty: they differ in more.
func bothDays(lines []*ruleLine) string {
	if len(lines) != 2 {
		return ""
	}
	first, second := lines[0].ROption, lines[1].ROption
	o := first
	o.Byweekday, second.Bymonthday, first.Freq, second.Freq = second.Byweekday, first.Bymonthday, 0, 0
	first.Byweekday = second.Byweekday
	if len(o.Bymonthday) == 0 || len(o.Byweekday) == 0 || len(lines[0].Byweekday)+len(lines[1].Bymonthday) > 0 || !reflect.DeepEqual(first, second) {
		return ""
	}
	return ruleOf(o)
}

// Alternatives are rules that other systems mean by the text of a rule: for either kind of day those that are both, and for hours that are counted
// from the start those that are counted from each midnight.
func Alternatives(rule string) (rules []string) {
	lines := linesOf(rule)
	if both := bothDays(lines); both != "" {
		rules = append(rules, both)
	}
	if len(lines) != 1 || lines[0].Freq != rrule.HOURLY || filtersDays(&lines[0].ROption) || filtersTimes(&lines[0].ROption) {
		return rules
	}
	daily := rrule.ROption{Freq: rrule.DAILY, Byminute: midnight, Bysecond: midnight}
	for hour := 0; hour < 24; hour += lines[0].Interval {
		daily.Byhour = append(daily.Byhour, hour)
	}
	return append(rules, ruleOf(daily))
}

// SameAfter reports whether a schedule, perhaps of another dtstart, surely has the same occurrences after an instant.
func (s *Schedule) SameAfter(other *Schedule, at time.Time) bool {
	b := budget(maxSteps)
	return s.zone.loc.String() == other.zone.loc.String() && slices.Equal(s.dates, other.dates) && slices.Equal(s.except, other.except) &&
		slices.EqualFunc(s.rules, other.rules, func(one, two *recurrence) bool {
			return one.until == two.until && one.next(at.Unix(), endless, &b) == two.next(at.Unix(), endless, &b) && !b.cut() && reflect.DeepEqual(one.form(), two.form())
		})
}
