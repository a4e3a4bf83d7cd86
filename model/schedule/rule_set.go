package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Bounds of the text of a rule.
const (
	maxRuleBytes = 4096
	maxRuleLines = 64
	maxRules     = 8
)

// ruleSet is the text of a schedule, read but not yet bound to a dtstart.
type ruleSet struct {
	rules         []*ruleLine
	dates, except []int64 // instants
	zone          zone
}

// readRuleSet reads all lines. Lines of other kinds are refused, never ignored: a dropped EXRULE would run what it excludes.
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
		if err := set.readLine(field, line); err != nil {
			return nil, err
		}
	}
	if len(set.rules)+len(set.dates) == 0 {
		return nil, &document.Error{Field: "rrule", Want: "at least one RRULE or RDATE line", Found: document.Found(text)}
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
	case strings.ContainsFunc(text, notInRules):
		return refuseRule("plain ASCII characters", document.Found(text))
	default:
		return nil
	}
}

func notInRules(r rune) bool { return (r < ' ' || r > '~') && r != '\n' && r != '\r' && r != '\t' }

func (s *ruleSet) readLine(field, line string) error {
	name, rest := "RRULE", line
	if end := strings.IndexAny(line, ":;="); end >= 0 && line[end] != '=' {
		name, rest = line[:end], line[end:]
	}
	switch name {
	case "RRULE":
		return s.readRRule(field, strings.TrimPrefix(rest, ":"))
	case "RDATE":
		return s.readDates(field, rest, &s.dates)
	case "EXDATE":
		return s.readDates(field, rest, &s.except)
	case "DTSTART":
		return &document.Error{Field: field, Want: dtstartElsewhere, Found: document.Found(line)}
	default:
		return &document.Error{Field: field, Want: "an RRULE, RDATE or EXDATE line", Found: document.Found(line)}
	}
}

func (s *ruleSet) readRRule(field, text string) error {
	if len(s.rules) == maxRules {
		return &document.Error{Field: field, Want: fmt.Sprintf("at most %d RRULE lines", maxRules), Found: "more"}
	}
	rule, err := readRule(field, text, s.zone)
	if err != nil {
		return err
	}
	s.rules = append(s.rules, rule)
	return nil
}

// readDates reads what follows the name RDATE or EXDATE: an optional parameter, a colon, and a list.
func (s *ruleSet) readDates(field, text string, to *[]int64) error {
	parameter, list, ok := strings.Cut(text, ":")
	if !ok || parameter != "" && parameter != ";VALUE=DATE-TIME" {
		return &document.Error{Field: field, Want: "a colon and a list of times; their zone is the timezone field", Found: document.Found(text)}
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

// Layouts of a time in a rule. A Z makes it UTC; without, it is wall clock.
const (
	rfcLayout    = "20060102T150405"
	rfcLayoutUTC = "20060102T150405Z"
)

// readMoment reads a time in RRULE, RDATE or EXDATE and returns its instant. A date alone is not accepted, because people
// mean the beginning of that day as often as its end.
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
