package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
)

func numbersTo(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return strings.Join(list, ",")
}

func TestAHostileRuleIsRefusedWithItsReason(t *testing.T) {
	huge, all := strings.Repeat("A", 1<<20), "BYHOUR="+numbersTo(24)+";BYMINUTE="+numbersTo(60)+";BYSECOND="+numbersTo(60)
	for _, c := range []struct{ rule, field, reason string }{
		// Days that do not exist
		{"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "rrule", "never"},
		{"FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "rrule", "never"},
		{"FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "rrule", "never"},
		{"FREQ=SECONDLY;BYMONTH=3;BYYEARDAY=167;BYHOUR=6,1", "rrule", "never"},
		{"FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29", "rrule", "never"}, // 2026 + 4k is no leap year
		{"FREQ=DAILY;INTERVAL=7;BYDAY=MO", "rrule", "never"},                 // 2026-01-01 is a Thursday
		{"FREQ=DAILY;UNTIL=20251231T235959Z", "rrule", "never"},

		// An INTERVAL that steps over what the rule waits for
		{"FREQ=HOURLY;INTERVAL=2;BYHOUR=3", "rrule INTERVAL", "never"},
		{"FREQ=MINUTELY;INTERVAL=60;BYMINUTE=5", "rrule INTERVAL", "never"},
		{"FREQ=SECONDLY;INTERVAL=60;BYSECOND=30", "rrule INTERVAL", "never"},

		// BYSETPOS beyond its set, of nothing, or in a period finer than a day
		{"FREQ=HOURLY;BYSETPOS=2", "rrule BYSETPOS", "FREQ=DAILY or longer"},
		{"FREQ=DAILY;BYSETPOS=1", "rrule BYSETPOS", "another BY part"},
		{"FREQ=DAILY;BYHOUR=6,16;BYSETPOS=3", "rrule", "never"},
		{"FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6", "rrule", "never"},
		{"FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "rrule BYSETPOS", "numbers from 1"},

		// What makes the library panic
		{"FREQ=MONTHLY;BYDAY=53MO", "rrule BYDAY", "1 to 5"},
		{"FREQ=YEARLY;BYMONTH=12;BYDAY=10MO", "rrule BYDAY", "1 to 5"},
		{"FREQ=YEARLY;BYDAY=54MO", "rrule BYDAY", "1 to 53"},
		{"FREQ=YEARLY;BYDAY=-9223372036854775808MO", "rrule BYDAY", "1 to 53"},
		{"FREQ=YEARLY;BYEASTER=1000", "rrule", `"BYEASTER"`},
		{"ȿȿȿȿ:", "rrule", "ASCII"},

		// Numbers out of range
		{"FREQ=DAILY;INTERVAL=9223372036854775807", "rrule INTERVAL", "1 to 1000000"},
		{"FREQ=DAILY;INTERVAL=1000001", "rrule INTERVAL", "1 to 1000000"},
		{"FREQ=DAILY;INTERVAL=0", "rrule INTERVAL", "1 to 1000000"},
		{"FREQ=DAILY;INTERVAL=", "rrule", "parts such as"},
		{"FREQ=DAILY;COUNT=0", "rrule COUNT", "1 to 10000"},
		{"FREQ=DAILY;COUNT=10001", "rrule COUNT", "1 to 10000"},
		{"FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z", "rrule", "both"},
		{"FREQ=DAILY;BYHOUR=24", "rrule BYHOUR", "0 to 23"},
		{"FREQ=DAILY;BYHOUR=-1", "rrule BYHOUR", "0 to 23"},
		{"FREQ=DAILY;BYMINUTE=60", "rrule BYMINUTE", "0 to 59"},
		{"FREQ=DAILY;BYSECOND=60", "rrule BYSECOND", "0 to 59"},
		{"FREQ=DAILY;BYMONTH=13", "rrule BYMONTH", "1 to 12"},
		{"FREQ=DAILY;BYMONTHDAY=0", "rrule BYMONTHDAY", "1 to 31"},
		{"FREQ=DAILY;BYMONTHDAY=-32", "rrule BYMONTHDAY", "-31 to -1"},
		{"FREQ=DAILY;BYYEARDAY=367", "rrule BYYEARDAY", "1 to 366"},
		{"FREQ=YEARLY;BYWEEKNO=54", "rrule BYWEEKNO", "1 to 53"},

		// Too much text or too many times
		{huge, "rrule", "at most 4096 bytes"},
		{strings.Repeat("\n", 65) + "FREQ=DAILY" + strings.Repeat("\n", 65), "rrule", "at most 64 lines"},
		{strings.Repeat("FREQ=DAILY\n", 9), "rrule line 9", "at most 8 RRULE lines"},
		{"FREQ=DAILY;" + all, "rrule", "at most 1440"},
		{"FREQ=DAILY;BYHOUR=" + strings.Repeat("6,", 199) + "6", "rrule BYHOUR", "each once"},

		// Parts twice, unknown, empty or without sense
		{"FREQ=DAILY;FREQ=HOURLY", "rrule FREQ", "each part once"},
		{"FREQ=DAILY;BYDAY=MO,MO", "rrule BYDAY", "each once"},
		{"FREQ=WEEKLY;BYDAY=2MO", "rrule BYDAY", "FREQ=MONTHLY"},
		{"FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "rrule BYDAY", "without BYWEEKNO"},
		{"FREQ=MONTHLY;BYDAY=MO,2TU", "rrule BYDAY", "two RRULE lines"},
		{"FREQ=MONTHLY;BYDAY=0MO", "rrule BYDAY", "weekdays such as"},
		{"FREQ=WEEKLY;WKST=2MO", "rrule WKST", "one weekday"},
		{"FREQ=DAILY;X-FOO=1", "rrule", `"X-FOO"`},
		{"FREQ=DAILY;BYHOUR", "rrule", "parts such as"},
		{"FREQ=FORTNIGHTLY", "rrule FREQ", "YEARLY, MONTHLY"},
		{"INTERVAL=2", "rrule FREQ", "none"},
		{"every day at six", "rrule", "parts such as"},
		{"", "rrule", "a rule such as"},
		{"FREQ=DAILY\x00", "rrule", "ASCII"},

		// Other lines
		{"DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY", "rrule line 1", "dtstart field"},
		{"FREQ=DAILY;DTSTART=20260101T000000Z", "rrule DTSTART", "dtstart field"},
		{"RRULE:FREQ=DAILY\nEXRULE:FREQ=DAILY;BYDAY=SA,SU", "rrule line 2", "RRULE, RDATE or EXDATE"},
		{"RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY;BYHOUR=24", "rrule line 2 BYHOUR", "0 to 23"},
		{"RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "rrule line 2", "never"},
		{"RRULE;X=1:FREQ=DAILY", "rrule", "parts such as"},
		{"EXDATE:20260101T000000", "rrule", "at least one RRULE or RDATE"},
		{"RDATE:20260101T000000\nEXDATE:20260101T000000", "rrule", "EXDATE for each"},

		// Dates
		{"RDATE:20260101", "rrule", "a time such as"},
		{"RDATE;VALUE=DATE:20260101", "rrule", "timezone field"},
		{"RDATE:", "rrule", "a time such as"},
		{"RDATE:20260230T000000", "rrule", "a time such as"},
		{"RDATE:20260101T000000.5", "rrule", "a time such as"},
		{"RDATE:23000101T000000", "rrule", "to 2299"},
		{"RDATE:19691231T235959", "rrule", "from 1970"},
		{"FREQ=DAILY;UNTIL=20261231", "rrule UNTIL", "20261231T235959"},
	} {
		_, err := Parse(c.rule, "", "2026-01-01")
		field := (*document.Error)(nil)
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%.80q: got %v; want a refusal of %s with %q", c.rule, err, c.field, c.reason)
		}
	}
}

func TestTheZoneAndTheStartAreRefusedWithTheirName(t *testing.T) {
	for _, c := range []struct{ zone, dtstart, field string }{
		{"Local", "2026-01-01", "timezone"}, {"local", "2026-01-01", "timezone"}, {"localtime", "2026-01-01", "timezone"}, {"posixrules", "2026-01-01", "timezone"},
		{"Mars/Olympus", "2026-01-01", "timezone"}, {"../../etc/passwd", "2026-01-01", "timezone"}, {"/etc/localtime", "2026-01-01", "timezone"},
		{"America", "2026-01-01", "timezone"}, {" ", "2026-01-01", "timezone"}, {"Europe/Berlin ", "2026-01-01", "timezone"}, {"+02:00", "2026-01-01", "timezone"},

		{"", "", "dtstart"}, {"", "now", "dtstart"}, {"", "2026-01-01T00:00:00Z", "dtstart"}, {"", "2026-01-01T00:00:00+01:00", "dtstart"},
		{"", "2026-01-01T00:00:00.5", "dtstart"}, {"", "2026-02-30", "dtstart"}, {"", "1969-12-31T23:59:59", "dtstart"}, {"", "2201-01-01", "dtstart"},
		{"", "0001-01-01", "dtstart"}, {"", "1700-01-01", "dtstart"}, {"", "2026-01-01T24:00:00", "dtstart"}, {"", "20260101T000000Z", "dtstart"},
	} {
		_, err := Parse("FREQ=DAILY", c.zone, c.dtstart)
		field := (*document.Error)(nil)
		if !errors.As(err, &field) || field.Field != c.field {
			t.Errorf("zone %q, dtstart %q: got %v, want a refusal of %s", c.zone, c.dtstart, err, c.field)
		}
	}
}
