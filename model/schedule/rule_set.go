package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/refreshd/refreshd/model/document"
)

const (
	maxRuleBytes = 4096
	maxRuleLines = 64
	maxRules     = 8
)

type ruleSet struct {
	rules         []*ruleLine
	dates, except []int64 // instants
	exceptDays    []int64 // days since 1970, on which nothing of the rules occurs
	zone          zone
}

// readRuleSet reads all lines. Lines of other kinds are refused, never ignored: a dropped EXRULE would run excluded times.
func readRuleSet(text string, z zone) (*ruleSet, error) {
	if err := checkRuleText(text); err != nil {
		return nil, err
	}
	set, lines := &ruleSet{zone: z}, strings.Split(strings.ToUpper(strings.TrimSpace(text)), "\n")
	for i, line := range lines {
		field := "rrule"
		if len(lines) > 1 {
			field += " line " + strconv.Itoa(i+1)
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, rest := "RRULE", line
		if end := strings.IndexAny(line, ":;="); end >= 0 && line[end] != '=' {
			name, rest = line[:end], line[end:]
		}
		var err error
		switch {
		case name == "RRULE" && len(set.rules) == maxRules:
			err = document.Refuse(field, fmt.Sprintf("at most %d RRULE lines", maxRules), "more")
		case name == "RRULE":
			rule := &ruleLine{field: field, zone: z}
			rule.Interval = 1
			for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(rest, ":"), ";"), ";") {
				if err = rule.read(part); err != nil {
					return nil, err
				}
			}
			set.rules, err = append(set.rules, rule), rule.check()
		case name == "RDATE":
			err = set.readDates(field, rest, &set.dates)
		case name == "EXDATE" && strings.HasPrefix(rest, ";VALUE=DATE:"):
			err = set.readExceptDays(field, rest[len(";VALUE=DATE:"):])
		case name == "EXDATE":
			err = set.readDates(field, rest, &set.except)
		case name == "DTSTART":
			err = document.Refuse(field, dtstartElsewhere, document.Found(line))
		default:
			err = document.Refuse(field, "an RRULE, RDATE or EXDATE line", document.Found(line))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(set.rules)+len(set.dates) == 0 {
		return nil, refuseRule("at least one RRULE or RDATE line", document.Found(text))
	}
	if len(set.rules) == 0 {
		return set, set.exclude(nil)
	}
	return set, nil
}

// checkRuleText comes before everything else, so that a hostile text costs next to nothing.
func checkRuleText(text string) error {
	switch lines := strings.Count(text, "\n") + 1; {
	case strings.TrimSpace(text) == "":
		return refuseRule(`a rule such as "FREQ=DAILY;BYHOUR=6"`, document.Found(text))
	case len(text) > maxRuleBytes:
		return refuseRule(fmt.Sprintf("at most %d bytes", maxRuleBytes), strconv.Itoa(len(text)))
	case lines > maxRuleLines:
		return refuseRule(fmt.Sprintf("at most %d lines", maxRuleLines), strconv.Itoa(lines))
	case strings.ContainsFunc(text, func(r rune) bool { return (r < ' ' || r > '~') && r != '\n' && r != '\r' && r != '\t' }):
		return refuseRule("plain ASCII characters", document.Found(text))
	default:
		return nil
	}
}

func (s *ruleSet) readDates(field, text string, to *[]int64) error {
	parameter, list, ok := strings.Cut(text, ":")
	name := s.zone.loc.String()
	if !ok || parameter != "" && parameter != ";VALUE=DATE-TIME" && !strings.EqualFold(strings.ReplaceAll(parameter, `"`, ""), ";TZID="+name) {
		return &document.Error{Field: field, Want: "a colon and a list of times, whose zone is the timezone field (" + name + ")", Found: document.Found(text)}
	}
	for item := range strings.SplitSeq(list, ",") {
		at, ok := readMoment(strings.TrimSpace(item), s.zone, horizonYear-1)
		if !ok {
			return &document.Error{Field: field, Want: wantMoment(horizonYear - 1), Found: document.Found(item)}
		}
		*to = append(*to, at)
	}
	return nil
}

func (s *ruleSet) readExceptDays(field, list string) error {
	for item := range strings.SplitSeq(list, ",") {
		day, ok := parseFirst(strings.TrimSpace(item), rfcDate)
		if !ok {
			return document.Refuse(field, "dates such as 20261231", document.Found(item))
		}
		s.exceptDays = append(s.exceptDays, day.Unix()/daySeconds)
	}
	return nil
}

// exclude leaves out the occurrences of a rule of one time a day on the days of EXDATE.
func (s *ruleSet) exclude(rule *recurrence) error {
	if len(s.exceptDays) > 0 && (rule == nil || rule.clock.count() != 1) {
		return document.Refuse("rrule", "EXDATE with times, such as EXDATE:20261231T060000, as the rule has not just one time a day", "EXDATE;VALUE=DATE")
	}
	for _, day := range s.exceptDays {
		at, _, _ := rule.zone.resolve(day*daySeconds + rule.clock.at(0))
		s.except = append(s.except, at)
	}
	return nil
}

// Layouts of a time in a rule. A Z makes it UTC; without, it is wall clock.
const (
	rfcLayout    = "20060102T150405"
	rfcLayoutUTC = "20060102T150405Z"
	rfcDate      = "20060102"
)

// readMoment accepts no date alone: people mean its beginning as often as its end.
func readMoment(text string, z zone, lastYear int) (at int64, ok bool) {
	t, utc := parseFirst(text, rfcLayoutUTC, time.RFC3339)
	if !utc {
		t, ok = parseFirst(text, rfcLayout, dtstartLayout)
	}
	if !utc && !ok || t.Year() < 1970 || t.Year() > lastYear {
		return 0, false
	}
	if utc {
		return t.Unix(), true
	}
	at, _, _ = z.resolve(t.Unix())
	return at, true
}

func wantMoment(lastYear int) string {
	return "a time such as 20261231T235959, or 20261231T235959Z for UTC, from 1970 to " + strconv.Itoa(lastYear)
}

// parseFirst reads text in the first layout that fits. It refuses fractions of a second, which time.Parse lets pass.
func parseFirst(text string, layouts ...string) (time.Time, bool) {
	if strings.ContainsAny(text, ".,") {
		return time.Time{}, false
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// ParsedRule is the schedule that a text describes.
type ParsedRule struct {
	Rule     string        // RRULE text
	Timezone string        // of its wall clocks; empty: not said
	Dtstart  string        // where it begins, in canonical form; empty: not said
	Spread   time.Duration // "twice a day" leaves to each model when: within this, from each time of the rule; 0: the times are said
}

// Read returns a schedule written in any of the ways of people:
//
//   - RRULE, RDATE and EXDATE lines pass unchanged, for Parse to judge. A DTSTART line before them says the start, and by its TZID or Z the zone;
//     lines may be folded as in RFC 5545;
//   - cron: five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @midnight, @weekly, @monthly,
//     @yearly, @annually, and "@every 90m". It means what cron means, or it is refused with what to write instead;
//   - English: "every 2 hours", "twice per day at 6 AM and 4 PM", "on the last Friday of the month at 18:00". Without a time
//     of day it is 00:00; without a day it is the Monday of a week, the first of a month or quarter, January 1 of a year. Every word
//     is understood, or the whole is refused.
//
// Cron fields and times of day name wall clocks, on whole minutes. "every 2 hours" and "@every 2h" are elapsed time from
// dtstart. Every refusal is a *document.Error of the field rrule. That a rule never occurs is for Parse to notice.
func Read(text string) (ParsedRule, error) {
	if LooksLikeRule(text) {
		return readDocument(text)
	}
	text = strings.NewReplacer("–", "-", "—", "-", "’", "'").Replace(text)
	if err := checkRuleText(text); err != nil {
		return ParsedRule{}, err
	}
	// A cron expression, right or wrong, differs from English: "5 4 * * *", but not "3 times per day".
	var r ParsedRule
	var err error
	fields := strings.Fields(strings.ToUpper(text))
	if fields[0][0] == '@' || strings.Contains(strings.Join(fields, " "), "TZ=") ||
		onlyCron(fields[0]) && (len(fields) == 1 || onlyCron(fields[1]) || slices.Contains(fields, "*")) {
		r.Rule, err = exactCron(text)
	} else {
		r, err = readEnglish(text)
	}
	if refused, is := errors.AsType[*document.Error](err); is {
		refused.Want += advise(text)
	}
	return r, err
}

// RuleText is Read of a text that says nothing but a rule.
func RuleText(text string) (string, error) {
	r, err := Read(text)
	if err == nil && r.Timezone+r.Dtstart != "" {
		return "", refuseRule("a rule without a zone and a start, which have the fields timezone and dtstart", document.Found(text))
	}
	return r.Rule, err
}

// LooksLikeRule recognizes RRULE lines, also wrong ones, so that their own reader can explain the error.
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
func ReadFields(d *document.Reader) (r ParsedRule) {
	if text := d.Text("rrule"); text != "" {
		read, err := Read(text)
		d.Fail(err)
		r = read
	}
	for _, part := range []struct {
		field string
		said  *string
	}{{"timezone", &r.Timezone}, {"dtstart", &r.Dtstart}} {
		value := d.Text(part.field)
		if part.field == "dtstart" && value != "" {
			canonical, err := canonicalDtstart(value)
			d.Fail(err)
			value = canonical
		}
		if value != "" && *part.said != "" && value != *part.said {
			d.Refuse(part.field, document.Found(*part.said)+", which the rule says, or none"+r.otherwise(value, part.field), document.Found(value))
		}
		*part.said = cmp.Or(*part.said, value)
	}
	return r
}
