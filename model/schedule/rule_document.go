package schedule

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

var (
	foldedEnd = regexp.MustCompile(`([:;,=])\r?\n[ \t]+`) // behind what no line ends with
	folded    = regexp.MustCompile(`(?i)\r?\n[ \t]+(RRULE|RDATE|EXDATE|EXRULE|DTSTART|FREQ)?([:;=]?)`)
	startLine = regexp.MustCompile(`(?im)^[ \t]*DTSTART(?:;VALUE=DATE(?:-TIME)?)?(?:;TZID="?([^:;"]+)"?)?(?:;VALUE=DATE(?:-TIME)?)?:(\w+?)(Z?)[ \t\r]*(?:\n|$)`)
)

// readDocument takes the start from lines of RFC 5545.
func readDocument(text string) (r ParsedRule, err error) {
	r.Rule = folded.ReplaceAllStringFunc(foldedEnd.ReplaceAllString(text, "$1"), func(fold string) string {
		if found := folded.FindStringSubmatch(fold); found[1] != "" && found[2] != "" {
			return fold // an indented line
		}
		return strings.TrimLeft(fold, " \t\r\n")
	})
	start := startLine.FindStringSubmatch(r.Rule)
	if start == nil {
		return r, nil
	}
	r.Rule = strings.Replace(r.Rule, start[0], "", 1)
	if r.Timezone = start[1]; start[3] != "" {
		if r.Timezone = "UTC"; start[1] != "" {
			return r, document.Refuse("rrule", "DTSTART with a TZID or with a Z, which is UTC", "both")
		}
	}
	r.Dtstart, err = canonicalDtstart(strings.ToUpper(start[2]))
	return r, document.Place(err, "rrule")
}

// otherwise says which time a start in UTC is in a zone, and how to write it as a wall clock there: some programs put a Z behind that.
func (r *ParsedRule) otherwise(timezone, field string) string {
	z, err := loadZone(timezone)
	at, began := parseFirst(r.Dtstart, dtstartLayout)
	if field != "timezone" || r.Timezone != "UTC" || err != nil || !began {
		return ""
	}
	return fmt.Sprintf("; the start is %s there; if it is %s there, write DTSTART:%s without Z", at.In(z.loc).Format("15:04"), at.Format("15:04"), at.Format(rfcLayout))
}
