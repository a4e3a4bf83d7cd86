package schedule

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
)

// The rules of a row stand between bars.
func TestAHostileRuleIsRefusedWithItsReason(t *testing.T) {
	minutes := "0"
	for n := 1; n < 60; n++ {
		minutes += "," + strconv.Itoa(n)
	}
	hours, _, _ := strings.Cut(minutes, ",24")
	for _, c := range []struct{ rules, field, reason string }{
		// Days that do not exist: 2026 + 4k is no leap year, and 2026-01-01 a Thursday
		{"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30|FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30|FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "rrule", "never"},
		{"FREQ=SECONDLY;BYMONTH=3;BYYEARDAY=167;BYHOUR=6,1|FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29|FREQ=DAILY;INTERVAL=7;BYDAY=MO", "rrule", "never"},
		{"FREQ=DAILY;UNTIL=20251231T235959Z|FREQ=DAILY;BYHOUR=6,16;BYSETPOS=3|FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6", "rrule", "never"},

		// An INTERVAL that steps over what the rule waits for
		{"FREQ=HOURLY;INTERVAL=2;BYHOUR=3|FREQ=MINUTELY;INTERVAL=60;BYMINUTE=5|FREQ=SECONDLY;INTERVAL=60;BYSECOND=30", "rrule INTERVAL", "never"},

		// BYSETPOS of nothing, or in a period finer than a day
		{"FREQ=HOURLY;BYSETPOS=2", "rrule BYSETPOS", "FREQ=DAILY or longer"},
		{"FREQ=DAILY;BYSETPOS=1", "rrule BYSETPOS", "another BY part"},
		{"FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "rrule BYSETPOS", "numbers from 1"},

		// What makes the library panic
		{"FREQ=MONTHLY;BYDAY=53MO|FREQ=YEARLY;BYMONTH=12;BYDAY=10MO", "rrule BYDAY", "1 to 5"},
		{"FREQ=YEARLY;BYDAY=54MO|FREQ=YEARLY;BYDAY=-9223372036854775808MO", "rrule BYDAY", "1 to 53"},
		{"FREQ=YEARLY;BYEASTER=1000|FREQ=DAILY;X-FOO=1", "rrule", "one of FREQ, INTERVAL"},
		{"ȿȿȿȿ:|FREQ=DAILY\x00", "rrule", "ASCII"},

		// Numbers out of range
		{"FREQ=DAILY;INTERVAL=9223372036854775807|FREQ=DAILY;INTERVAL=1000001|FREQ=DAILY;INTERVAL=0", "rrule INTERVAL", "1 to 1000000"},
		{"FREQ=DAILY;COUNT=0|FREQ=DAILY;COUNT=10001", "rrule COUNT", "1 to 10000"},
		{"FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z", "rrule", "both"},
		{"FREQ=DAILY;BYHOUR=24|FREQ=DAILY;BYHOUR=-1", "rrule BYHOUR", "0 to 23"},
		{"FREQ=DAILY;BYMINUTE=60", "rrule BYMINUTE", "0 to 59"},
		{"FREQ=DAILY;BYSECOND=60", "rrule BYSECOND", "0 to 59"},
		{"FREQ=DAILY;BYMONTH=13", "rrule BYMONTH", "1 to 12"},
		{"FREQ=DAILY;BYMONTHDAY=0|FREQ=DAILY;BYMONTHDAY=-32", "rrule BYMONTHDAY", "1 to 31 or from -31 to -1"},
		{"FREQ=DAILY;BYYEARDAY=367", "rrule BYYEARDAY", "1 to 366"},
		{"FREQ=YEARLY;BYWEEKNO=54", "rrule BYWEEKNO", "1 to 53"},

		// Too much text or too many times
		{strings.Repeat("A", 1<<20), "rrule", "at most 4096 bytes"},
		{strings.Repeat("\n", 65) + "FREQ=DAILY" + strings.Repeat("\n", 65), "rrule", "at most 64 lines"},
		{strings.Repeat("FREQ=DAILY\n", 9), "rrule line 9", "at most 8 RRULE lines"},
		{"FREQ=DAILY;BYHOUR=" + hours + ";BYMINUTE=" + minutes + ";BYSECOND=" + minutes, "rrule", "at most 1440"},
		{"FREQ=DAILY;BYHOUR=" + strings.Repeat("6,", 199) + "6", "rrule BYHOUR", "each once"},

		// Parts twice, unknown, empty or without sense
		{"FREQ=DAILY;FREQ=HOURLY", "rrule FREQ", "each part once"},
		{"FREQ=DAILY;BYDAY=MO,MO|FREQ=MONTHLY;BYDAY=0MO", "rrule BYDAY", "weekdays such as MO or -1FR, each once"},
		{"FREQ=WEEKLY;BYDAY=2MO|FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "rrule BYDAY", "FREQ=MONTHLY, or FREQ=YEARLY without BYWEEKNO"},
		{"FREQ=MONTHLY;BYDAY=MO,2TU", "rrule BYDAY", "two RRULE lines"},
		{"FREQ=WEEKLY;WKST=2MO", "rrule WKST", "one weekday"},
		{"FREQ=DAILY;BYHOUR|FREQ=DAILY;INTERVAL=|every day at six|RRULE;X=1:FREQ=DAILY", "rrule", "parts such as"},
		{"FREQ=FORTNIGHTLY", "rrule FREQ", "YEARLY, MONTHLY"},
		{"INTERVAL=2", "rrule FREQ", "none"},
		{"", "rrule", "a rule such as"},

		// Other lines
		{"DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY", "rrule line 1", "dtstart field"},
		{"FREQ=DAILY;DTSTART=20260101T000000Z", "rrule DTSTART", "dtstart field"},
		{"RRULE:FREQ=DAILY\nEXRULE:FREQ=DAILY;BYDAY=SA,SU", "rrule line 2", "RRULE, RDATE or EXDATE"},
		{"RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY;BYHOUR=24", "rrule line 2 BYHOUR", "0 to 23"},
		{"RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "rrule line 2", "never"},
		{"EXDATE:20260101T000000", "rrule", "at least one RRULE or RDATE"},
		{"RDATE:20260101T000000\nEXDATE:20260101T000000", "rrule", "EXDATE for each"},

		// Dates
		{"RDATE:20260101|RDATE:|RDATE:20260230T000000|RDATE:20260101T000000.5|RDATE:23000101T000000|RDATE:19691231T235959", "rrule", "a time such as 20261231T235959"},
		{"RDATE;VALUE=DATE:20260101", "rrule", "timezone field"},
		{"FREQ=DAILY;UNTIL=20261231", "rrule UNTIL", "20261231T235959"},
	} {
		for rule := range strings.SplitSeq(c.rules, "|") {
			_, err := Parse(rule, "", "2026-01-01")
			if refusedField(err) != c.field || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%.80q: got %v; want a refusal of %s with %q", rule, err, c.field, c.reason)
			}
		}
	}
}

func TestTheZoneAndTheStartAreRefusedWithTheirName(t *testing.T) {
	for _, zone := range []string{
		"Local", "local", "localtime", "posixrules", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "America", " ", "Europe/Berlin ", "+02:00",
	} {
		if _, err := Parse("FREQ=DAILY", zone, "2026-01-01"); refusedField(err) != "timezone" {
			t.Errorf("%q: got %v, want a refusal of timezone", zone, err)
		}
	}
	for _, dtstart := range []string{
		"", "now", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.5", "2026-02-30", "1969-12-31T23:59:59", "2201-01-01", "0001-01-01",
		"1700-01-01", "2026-01-01T24:00:00", "20260101T000000Z",
	} {
		if _, err := Parse("FREQ=DAILY", "", dtstart); refusedField(err) != "dtstart" {
			t.Errorf("%q: got %v, want a refusal of dtstart", dtstart, err)
		}
	}
}

// refusedField is the field that an error names; "-" when it is no refusal.
func refusedField(err error) string {
	var refused *document.Error
	if !errors.As(err, &refused) {
		return "-"
	}
	return refused.Field
}
