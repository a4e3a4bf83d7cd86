package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/document"
)

func readFields(rule, timezone, dtstart string) (ParsedRule, error) {
	doc := document.Read(map[string]any{"rrule": rule, "timezone": timezone, "dtstart": dtstart}, "rrule", "timezone", "dtstart")
	r := ReadFields(doc)
	return r, doc.Err()
}

func TestADocumentOfTheSourcesSaysRuleStartAndZone(t *testing.T) {
	const rule = "RRULE:FREQ=HOURLY;INTERVAL=2"
	for _, c := range []struct {
		text, timezone, dtstart string
		want                    ParsedRule
	}{
		{"DTSTART:20261128T000000Z\n" + rule, "", "", ParsedRule{Rule: rule, Timezone: "UTC", Dtstart: "2026-11-28T00:00:00"}},
		{"DTSTART:20261128T000000Z\r\n" + rule + "\r\n", "UTC", "", ParsedRule{Rule: rule + "\r\n", Timezone: "UTC", Dtstart: "2026-11-28T00:00:00"}},
		{"DTSTART;TZID=Europe/Berlin:20261128T063000\n" + rule, "", "", ParsedRule{Rule: rule, Timezone: "Europe/Berlin", Dtstart: "2026-11-28T06:30:00"}},
		{"DTSTART;TZID=Europe/Berlin:20261128T063000\n" + rule, "Europe/Berlin", "", ParsedRule{Rule: rule, Timezone: "Europe/Berlin", Dtstart: "2026-11-28T06:30:00"}},
		{"dtstart:20261128t063000\n" + rule, "Europe/Berlin", "", ParsedRule{Rule: rule, Timezone: "Europe/Berlin", Dtstart: "2026-11-28T06:30:00"}},
		{"DTSTART:20261128T063000\n" + rule, "Europe/Berlin", "", ParsedRule{Rule: rule, Timezone: "Europe/Berlin", Dtstart: "2026-11-28T06:30:00"}},
		{"dtstart;value=date:20261128\n" + rule, "", "2026-11-28", ParsedRule{Rule: rule, Dtstart: "2026-11-28T00:00:00"}},
		{"RRULE:FREQ=HOURLY;\r\n INTERVAL=2", "", "", ParsedRule{Rule: rule}},
		{"RRULE:\n FREQ=HOURLY;\n\tINTERVAL=\n 2", "", "", ParsedRule{Rule: rule}},
		{"RRULE:FREQ=HOU\n RLY;INTERVAL=2", "", "", ParsedRule{Rule: rule}},
		{rule + "\n  EXDATE:20261128T000000", "", "", ParsedRule{Rule: rule + "\n  EXDATE:20261128T000000"}}, // indented
	} {
		got, err := readFields(c.text, c.timezone, c.dtstart)
		failIf(t, got != c.want || err != nil, "%q: got %+v, %v; want %+v", c.text, got, err, c.want)
		_, err = Parse(got.Rule, got.Timezone, got.Dtstart+strings.Repeat("2026-11-28", 1-min(1, len(got.Dtstart))))
		failIf(t, err != nil, "%q: %v", c.text, err)
	}
}

func TestAStartThatContradictsItselfIsRefusedWithWhatEachReadingIs(t *testing.T) {
	const rule = "\nRRULE:FREQ=HOURLY;INTERVAL=2"
	for _, c := range []struct{ text, timezone, dtstart, want string }{
		{"DTSTART:20261128T000000Z" + rule, "Europe/Berlin", "", "the start is 01:00 there; if it is 00:00 there, write DTSTART:20261128T000000 without Z"},
		{"DTSTART;TZID=Europe/Berlin:20261128T000000Z" + rule, "", "", "with a TZID or with a Z"},
		{"DTSTART;TZID=Europe/Berlin:20261128T000000" + rule, "Asia/Tokyo", "", `expected "Europe/Berlin", which the rule says`},
		{"DTSTART:20261128T000000" + rule, "", "2026-11-27", `expected "2026-11-28T00:00:00", which the rule says`},
		{"DTSTART:20261328T000000" + rule, "", "", "dtstart"},
	} {
		_, err := readFields(c.text, c.timezone, c.dtstart)
		failIf(t, err == nil || !strings.Contains(err.Error(), c.want), "%q in %s: got %v, want a refusal with %q", c.text, c.timezone, err, c.want)
	}
	with, err := readFields("DTSTART:20261128T000000"+rule, "Europe/Berlin", "") // what the refusal says to write
	failIf(t, err != nil || with.Dtstart != "2026-11-28T00:00:00", "got %+v, %v", with, err)
}

func TestDatesOfADocumentAreRead(t *testing.T) {
	for rule, want := range map[string]string{
		"FREQ=DAILY;BYHOUR=9;UNTIL=20260107\nEXDATE;VALUE=DATE:20260106":                                           "05T08 07T08",
		"FREQ=DAILY;BYHOUR=23;UNTIL=20260106":                                                                      "05T22 06T22",
		"FREQ=DAILY;BYHOUR=9;UNTIL=20260107\nEXDATE;TZID=Europe/Berlin:20260106T090000":                            "05T08 07T08",
		"FREQ=DAILY;BYHOUR=9;UNTIL=20260107\nEXDATE;TZID=\"Europe/Berlin\":20260105T090000,20260106T090000":        "07T08",
		"RRULE:FREQ=DAILY;BYHOUR=9;UNTIL=20260106\nRRULE:FREQ=DAILY;BYHOUR=12;COUNT=2\nEXDATE;VALUE=DATE:20260105": "06T08 06T11",
		"RRULE:FREQ=DAILY;UNTIL=20260107\nRDATE;TZID=Europe/Berlin:20260106T180000\nEXDATE;VALUE=DATE:20260106":    "05T08 06T17 07T08",
	} {
		s := check.Got(Parse(rule, "Europe/Berlin", "2026-01-05T09:00:00"))(t)
		var got []string
		for at, ok := s.Next(time.Time{}); ok; at, ok = s.Next(at) {
			got = append(got, at.Format("02T15"))
		}
		failIf(t, strings.Join(got, " ") != want, "%s: got %q, want %s", rule, got, want)
	}
	for rule, want := range map[string]string{
		"FREQ=DAILY;BYHOUR=6,16\nEXDATE;VALUE=DATE:20260106": "has not just one time a day",
		"FREQ=HOURLY;INTERVAL=5\nEXDATE;VALUE=DATE:20260106": "has not just one time a day",
		"RDATE:20260106T060000\nEXDATE;VALUE=DATE:20260106":  "has not just one time a day",
		"FREQ=DAILY\nEXDATE;VALUE=DATE:20260106T000000":      "dates such as",
		"FREQ=DAILY\nEXDATE;TZID=Asia/Tokyo:20260106T090000": "timezone field (Europe/Berlin)",
		"FREQ=DAILY;UNTIL=2026010":                           "or a date, which it includes",
		"DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY":         "in one line of its own",
		"RRULE:FREQ=DAILY;DTSTART=20260101T000000Z;BYHOUR=6": "in one line of its own",
	} {
		_, err := Parse(rule, "Europe/Berlin", "2026-01-05T09:00:00")
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "%s: got %v, want a refusal with %q", rule, err, want)
	}
}
