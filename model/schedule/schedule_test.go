package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/document"
)

func TestARuleIsReadLeniently(t *testing.T) {
	want := []string{"01-01T06:00:00+00:00", "01-01T16:00:00+00:00", "01-02T06:00:00+00:00"}
	for _, rule := range []string{
		"FREQ=DAILY;BYHOUR=6,16", "RRULE:FREQ=DAILY;BYHOUR=6,16", "freq=daily;byhour=6,16", "rrule:Freq=Daily;ByHour=6,16", "FREQ=DAILY;BYHOUR=6,16;",
		"FREQ=DAILY;BYHOUR=6, 16", " FREQ = DAILY ; BYHOUR = 16 , 6 ", "BYHOUR=6,16;FREQ=DAILY", "\r\nRRULE:FREQ=DAILY;BYHOUR=6,16\r\n\r\n",
		"FREQ=DAILY;BYHOUR=6,16;UNTIL=99991231T235959Z", "FREQ=DAILY;BYHOUR=6\r\nFREQ=DAILY;BYHOUR=16", "FREQ=DAILY;BYHOUR=6\n\nRDATE:20260101T160000Z",
		"FREQ=DAILY;BYHOUR=6\nRDATE;VALUE=DATE-TIME:20260101T160000, 20260101T060000", "FREQ=DAILY;BYHOUR=6\nRDATE:2026-01-01T17:00:00+01:00",
		"FREQ=DAILY;BYHOUR=6,16,20\nEXDATE:20260101T200000,20260102T200000",
	} {
		zoneCase{"UTC", rule, "2026-01-01", "2025-01-01T00:00:00Z", want}.check(t)
	}
}

func TestTheUnionOfLinesOccursOnceAndWithoutItsExceptions(t *testing.T) {
	for _, c := range []zoneCase{
		// The same instant in two lines, or in a line and a date
		{"", "FREQ=DAILY;COUNT=2\nFREQ=HOURLY;INTERVAL=12;COUNT=4", "2026-01-01", "2025-01-01T00:00:00Z",
			[]string{"01-01T00:00:00+00:00", "01-01T12:00:00+00:00", "01-02T00:00:00+00:00", "01-02T12:00:00+00:00"}},
		{"", "FREQ=DAILY;COUNT=1\nRDATE:20260101T000000Z,20260101T000000,20260101T000001", "2026-01-01", "2025-01-01T00:00:00Z", []string{"01-01T00:00:00+00:00", "01-01T00:00:01+00:00"}},

		// Dates alone, also before dtstart
		{"", "RDATE:20260105T000000,20260101T000000", "2026-01-03", "2025-01-01T00:00:00Z", []string{"01-01T00:00:00+00:00", "01-05T00:00:00+00:00"}},

		// Exceptions: by instant, in any notation, wherever the occurrence comes from
		{"America/New_York", "FREQ=DAILY\nEXDATE:20260102T050000Z,20260103T000000", "2026-01-01", "2026-01-01T00:00:00Z", []string{"01-01T00:00:00-05:00", "01-04T00:00:00-05:00"}},
		{"", "RDATE:20260101T000000,20260102T000000\nEXDATE:20260101T000000", "2026-01-01", "2025-01-01T00:00:00Z", []string{"01-02T00:00:00+00:00"}},

		// COUNT counts before EXDATE
		{"", "FREQ=DAILY;COUNT=3\nEXDATE:20260102T000000", "2026-01-01", "2025-01-01T00:00:00Z", []string{"01-01T00:00:00+00:00", "01-03T00:00:00+00:00"}},
	} {
		c.check(t)
	}
}

func TestAnEndIsInclusive(t *testing.T) {
	for _, c := range []zoneCase{
		// With Z an instant, without Z wall clock: 09:00 in New York is 14:00Z
		{"America/New_York", "FREQ=DAILY;UNTIL=20260102T140000Z", "2026-01-01T09:00:00", "2025-01-01T00:00:00Z", []string{"01-01T09:00:00-05:00", "01-02T09:00:00-05:00"}},
		{"America/New_York", "FREQ=DAILY;UNTIL=20260102T135959Z", "2026-01-01T09:00:00", "2025-01-01T00:00:00Z", []string{"01-01T09:00:00-05:00"}},
		{"America/New_York", "FREQ=DAILY;UNTIL=20260102T090000", "2026-01-01T09:00:00", "2025-01-01T00:00:00Z", []string{"01-01T09:00:00-05:00", "01-02T09:00:00-05:00"}},
		{"America/New_York", "FREQ=DAILY;UNTIL=20260102T085959", "2026-01-01T09:00:00", "2025-01-01T00:00:00Z", []string{"01-01T09:00:00-05:00"}},
		{"America/New_York", "FREQ=HOURLY;UNTIL=20260101T100000", "2026-01-01T09:00:00", "2025-01-01T00:00:00Z", []string{"01-01T09:00:00-05:00", "01-01T10:00:00-05:00"}},

		// COUNT: that many distinct instants, also where two wall times fall on one
		{"America/New_York", "FREQ=HOURLY;COUNT=3", "2026-03-08T01:00:00", "2025-01-01T00:00:00Z", []string{"03-08T01:00:00-05:00", "03-08T03:00:00-04:00", "03-08T04:00:00-04:00"}},
		{"America/New_York", "FREQ=HOURLY;BYMINUTE=0;COUNT=3", "2026-03-08T01:00:00", "2025-01-01T00:00:00Z", []string{"03-08T01:00:00-05:00", "03-08T03:00:00-04:00", "03-08T04:00:00-04:00"}},
		{"America/New_York", "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,15;BYSETPOS=2,3;COUNT=3", "2026-03-08", "2025-01-01T00:00:00Z",
			[]string{"03-08T03:00:00-04:00", "03-08T03:15:00-04:00", "03-09T02:15:00-04:00"}},
		{"", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=2", "2026-01-01", "2025-01-01T00:00:00Z", []string{"02-13T00:00:00+00:00", "03-13T00:00:00+00:00"}},
	} {
		got := occurrences(t, c.rule, c.zone, c.dtstart, c.after, len(c.want)+5)
		failIf(t, fmt.Sprint(got) != fmt.Sprint(c.want), "%s, %s:\ngot  %v\nwant %v", c.zone, c.rule, got, c.want)
	}
}

func TestARuleIsCountedFromItsStartAndTakesFromItWhatItLeavesOpen(t *testing.T) {
	for _, c := range []zoneCase{
		// The INTERVAL does not begin anew each day
		{"", "FREQ=HOURLY;INTERVAL=5", "2026-01-01", "2026-01-01T19:00:00Z", []string{"01-01T20:00:00+00:00", "01-02T01:00:00+00:00", "01-02T06:00:00+00:00"}},
		{"", "FREQ=DAILY;INTERVAL=2", "2026-01-01", "2026-01-30T19:00:00Z", []string{"01-31T00:00:00+00:00", "02-02T00:00:00+00:00"}},
		{"", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH", "2026-01-01", "2026-01-01T01:00:00Z", []string{"01-12T00:00:00+00:00", "01-15T00:00:00+00:00", "01-26T00:00:00+00:00"}},

		// Minute, second, weekday and day
		{"", "FREQ=DAILY;BYHOUR=6,16", "2026-01-01T01:23:45", "2026-01-01T00:00:00Z", []string{"01-01T06:23:45+00:00", "01-01T16:23:45+00:00"}},
		{"", "FREQ=WEEKLY", "2026-01-01T08:00:00", "2026-01-01T09:00:00Z", []string{"01-08T08:00:00+00:00"}},
		{"", "FREQ=MONTHLY", "2026-01-31", "2026-01-31T00:00:00Z", []string{"03-31T00:00:00+00:00", "05-31T00:00:00+00:00"}},
		{"", "FREQ=YEARLY", "2024-02-29", "2024-03-01T00:00:00Z", []string{"02-29T00:00:00+00:00"}},

		// dtstart is no occurrence unless the rule says so, and nothing comes before it
		{"", "FREQ=WEEKLY;BYDAY=MO", "2026-01-01", "2020-01-01T00:00:00Z", []string{"01-05T00:00:00+00:00"}},
		{"", "FREQ=DAILY;BYHOUR=6", "2026-01-01T07:00:00", "2020-01-01T00:00:00Z", []string{"01-02T06:00:00+00:00"}},

		// BYSETPOS counts whole weeks: Thursday is third of Monday, Tuesday, Thursday
		{"", "FREQ=WEEKLY;BYDAY=MO,TU,TH;BYSETPOS=1,3", "2026-01-01", "2020-01-01T00:00:00Z", []string{"01-01T00:00:00+00:00", "01-05T00:00:00+00:00", "01-08T00:00:00+00:00"}},
	} {
		c.check(t)
	}
}

func TestFarFromItsStartAScheduleAnswersAtOnce(t *testing.T) {
	for _, rule := range []string{
		"FREQ=SECONDLY", "FREQ=MINUTELY;BYDAY=MO", "FREQ=DAILY", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "FREQ=WEEKLY;INTERVAL=1000000", "FREQ=MONTHLY;INTERVAL=1000000",
		"FREQ=YEARLY;INTERVAL=1000000;BYDAY=MO", "FREQ=DAILY;INTERVAL=1000000;BYDAY=TH", "FREQ=HOURLY;INTERVAL=1000000", "RDATE:20260101T000000",
	} {
		for _, zone := range []string{"", "America/New_York"} {
			s := check.Got(Parse(rule, zone, "2026-01-01"))(t)
			for _, year := range []int{-290_000_000, -1, 1, 1970, 2025} {
				next, ok := s.Next(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
				failIf(t, !ok || next.Year() != 2026 && !strings.Contains(rule, "29"), "%s: after the year %d: %s, %v", rule, year, next, ok)
			}
			for _, year := range []int{2300, 9000, 9999, 10_000, 290_000_000} {
				next, ok := s.Next(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
				failIf(t, ok, "%s: after the year %d: %s", rule, year, next)
			}
		}
	}
}

func TestNothingIsPlannedPastTheHorizon(t *testing.T) {
	for _, rule := range []string{"FREQ=SECONDLY", "FREQ=HOURLY;BYMINUTE=0", "FREQ=DAILY", "FREQ=YEARLY;BYDAY=-1MO", "FREQ=DAILY;BYHOUR=0,12;BYSETPOS=-1",
		"FREQ=DAILY;UNTIL=99991231T235959Z", "FREQ=SECONDLY;UNTIL=99991231T235959Z"} {
		for _, zone := range []string{"", "Pacific/Kiritimati", "Pacific/Pago_Pago"} {
			s := check.Got(Parse(rule, zone, "2200-12-31"))(t)
			last := time.Unix(horizon-1, 0)
			next, ok := s.Next(last)
			failIf(t, ok, "%s in %q: %s", rule, zone, next)
			next, ok = s.Next(last.AddDate(0, -2, 0))
			failIf(t, !ok && strings.Contains(rule, "DAILY") || ok && next.Year() >= horizonYear, "%s in %q: %s, %v", rule, zone, next, ok)
		}
	}
}

func TestAScheduleAndTheirCacheMayBeAskedByManyAtOnce(t *testing.T) {
	const rule = "FREQ=DAILY;BYDAY=MO,TU;COUNT=500\nFREQ=MONTHLY;BYDAY=-1FR;UNTIL=20280101T000000Z\nRDATE:20260103T000000\nEXDATE:20260106T000000"
	s := check.Got(Parse(rule, "America/New_York", "2026-01-01"))(t)
	walk := func() (all []time.Time) {
		for at, ok := s.Next(time.Unix(0, 0)); ok; at, ok = s.Next(at) {
			all = append(all, at)
		}
		return all
	}
	want, group, c := walk(), sync.WaitGroup{}, Cache{}
	for range 8 {
		group.Go(func() {
			failIf(t, fmt.Sprint(walk()) != fmt.Sprint(want), "another walk gave another sequence")
			for i := range 200 {
				s, err := c.Get(fmt.Sprintf("FREQ=DAILY;BYHOUR=%d", i%24), "Europe/Berlin", "2026-01-01")
				if err != nil {
					t.Error(err)
					return
				}
				_, ok := s.Next(time.Unix(0, 0))
				failIf(t, !ok, "no occurrence")
			}
		})
	}
	group.Wait()
}

func TestTheDefaultStartIsMidnightOfTheDayInTheZone(t *testing.T) {
	now := time.Date(2026, 7, 1, 2, 30, 0, 0, time.UTC)
	for zone, want := range map[string]string{
		"": "2026-07-01T00:00:00", "UTC": "2026-07-01T00:00:00", "America/New_York": "2026-06-30T00:00:00", "Asia/Tokyo": "2026-07-01T00:00:00", "Pacific/Kiritimati": "2026-07-01T00:00:00",
	} {
		got, err := Midnight(now, zone)
		failIf(t, err != nil || got != want, "Midnight in %q = %q, %v, want %q", zone, got, err, want)
	}
	for zone, at := range map[string]time.Time{"Nowhere": now, "Local": now, "": time.Unix(-1, 0)} {
		got, err := Midnight(at, zone)
		failIf(t, !errors.As(err, new(*document.Error)) || got != "", "Midnight in %q = %q, %v, want a refusal", zone, got, err)
	}
}

func TestADtstartHasOneCanonicalForm(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-31T06:07:08": "2026-01-31T06:07:08", "2026-01-31": "2026-01-31T00:00:00", "20260131T060708": "2026-01-31T06:07:08", "1970-01-01": "1970-01-01T00:00:00", "2200-12-31": "2200-12-31T00:00:00",
	} {
		got, err := canonicalDtstart(text)
		failIf(t, err != nil || got != want, "%q: %q, %v", text, got, err)
	}
}

// The first of January, however many of the last days of the month are between it and the end.
func TestAPositionFromTheEndIsFoundHoweverFarAwayItIs(t *testing.T) {
	days := "1"
	for n := 2; n <= 31; n++ {
		days += "," + strconv.Itoa(33-n)
		rule := "FREQ=MONTHLY;BYMONTH=1;BYMONTHDAY=" + days + ";BYSETPOS=-" + strconv.Itoa(n)
		s := check.Got(Parse(rule, "", "2026-01-01"))(t)
		next, _ := s.Next(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
		want := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		failIf(t, !next.Equal(want), "%s: %s, want %s", rule, next, want)
	}
}

func TestACachedScheduleIsCompiledOnceAndTheCacheIsBounded(t *testing.T) {
	var c Cache
	get := func(minute int) *Schedule {
		s := check.Got(c.Get("FREQ=DAILY", "", time.Unix(int64(minute)*60, 0).UTC().Format(dtstartLayout)))(t)
		return s
	}
	first := get(0)
	for i := range 5 * maxGeneration {
		get(i)
		stopIf(t, i%1000 == 0 && get(0) != first, "a schedule in use was compiled again after %d others", i)
	}
	n := len(c.recent) + len(c.previous)
	failIf(t, n > 2*maxGeneration, "the cache holds %d schedules", n)
	failIf(t, get(1) == nil || len(c.previous) == 0, "the cache has no second generation")
	if _, err := c.Get("FREQ=NEVER", "", "2026-01-01"); err == nil {
		t.Error("a bad rule was cached as a good one")
	}
}

// Bars separate the rules of a row.
func TestAHostileRuleIsRefusedWithItsReason(t *testing.T) {
	minutes := "0"
	for n := 1; n < 60; n++ {
		minutes += "," + strconv.Itoa(n)
	}
	hours, _, _ := strings.Cut(minutes, ",24")
	for _, c := range []struct{ rules, field, reason string }{
		// Days that do not exist: 2026 + 4k is no leap year, and 2026-01-01 a Thursday
		{"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30|FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30|FREQ=WEEKLY;BYMONTH=2;BYMONTHDAY=30", "rrule", "never"},
		{"FREQ=DAILY;BYMONTH=3;BYYEARDAY=167;BYHOUR=6,1|FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29|FREQ=DAILY;INTERVAL=7;BYDAY=MO", "rrule", "never"},
		{"FREQ=DAILY;UNTIL=20251231T235959Z|FREQ=DAILY;BYHOUR=6,16;BYSETPOS=3|FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6", "rrule", "never"},

		// BYSETPOS of nothing, or in a period finer than a day
		{"FREQ=HOURLY;BYMINUTE=0,30;BYSETPOS=2", "rrule BYSETPOS", "FREQ=DAILY or longer"},
		{"FREQ=DAILY;BYSETPOS=1", "rrule BYSETPOS", "another BY part"},
		{"FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "rrule BYSETPOS", "numbers from 1"},

		// Weeks and parts that do not exist
		{"FREQ=MONTHLY;BYDAY=6MO|FREQ=YEARLY;BYMONTH=12;BYDAY=6MO", "rrule BYDAY", "1 to 5"},
		{"FREQ=YEARLY;BYDAY=54MO|FREQ=YEARLY;BYDAY=-54MO", "rrule BYDAY", "1 to 53"},
		{"FREQ=YEARLY;BYEASTER=1", "rrule", "one of FREQ, INTERVAL"}, {"FREQ=DAILY;X-FOO=1", "rrule", `"X-FOO"`},
		{"ȿȿȿȿ:|FREQ=DAILY\x00", "rrule", "ASCII"},

		// Numbers out of range
		{"FREQ=DAILY;INTERVAL=9223372036854775807|FREQ=DAILY;INTERVAL=1000001|FREQ=DAILY;INTERVAL=0", "rrule INTERVAL", "1 to 1000000"},
		{"FREQ=DAILY;COUNT=0|FREQ=DAILY;COUNT=10001", "rrule COUNT", "1 to 10000"},
		{"FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z", "rrule", "both"},
		{"FREQ=DAILY;BYHOUR=24|FREQ=DAILY;BYHOUR=-1", "rrule BYHOUR", "0 to 23"},
		{"FREQ=DAILY;BYMINUTE=60", "rrule BYMINUTE", "0 to 59"}, {"FREQ=DAILY;BYSECOND=60", "rrule BYSECOND", "0 to 59"},
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
		{"FREQ=FORTNIGHTLY", "rrule FREQ", "YEARLY, MONTHLY"}, {"INTERVAL=2", "rrule FREQ", "none"}, {"", "rrule", "a rule such as"},

		// Other lines
		{"DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY", "rrule line 1", "dtstart field"},
		{"FREQ=DAILY;DTSTART=20260101T000000Z", "rrule DTSTART", "dtstart field"},
		{"RRULE:FREQ=DAILY\nEXRULE:FREQ=DAILY;BYDAY=SA,SU", "rrule line 2", "RRULE, RDATE or EXDATE"},
		{"RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY;BYHOUR=24", "rrule line 2 BYHOUR", "0 to 23"},
		{"RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "rrule line 2", "never"},
		{"EXDATE:20260101T000000", "rrule", "at least one RRULE or RDATE"},
		{"RDATE:20260101T000000\nEXDATE:20260101T000000", "rrule", "EXDATE for each"},

		// Dates
		{"RDATE:20260101|RDATE:|RDATE:20260230T000000|RDATE:20260101T000000.5", "rrule", "a time such as 20261231T235959"},
		{"RDATE:23000101T000000", "rrule", "to 2299"}, {"RDATE:19691231T235959", "rrule", "from 1970"},
		{"RDATE;VALUE=DATE:20260101", "rrule", "timezone field"},
		{"FREQ=DAILY;UNTIL=20261331", "rrule UNTIL", "20261231T235959"},
	} {
		for rule := range strings.SplitSeq(c.rules, "|") {
			_, err := Parse(rule, "", "2026-01-01")
			failIf(t, refusedField(err) != c.field || !strings.Contains(err.Error(), c.reason),
				"%.80q: got %v; want a refusal of %s with %q", rule, err, c.field, c.reason)
		}
	}
}

// Each rule occurs if it is counted from the first start. From the second one its INTERVAL steps over what it waits for.
func TestAnIntervalThatStepsOverWhatARuleWaitsForIsRefused(t *testing.T) {
	for rule, starts := range map[string][2]string{
		"FREQ=HOURLY;INTERVAL=2;BYHOUR=3":      {"2026-01-01T01:00:00", "2026-01-01T02:00:00"},
		"FREQ=MINUTELY;INTERVAL=60;BYMINUTE=5": {"2026-01-01T00:05:00", "2026-01-01T00:06:00"},
		"FREQ=SECONDLY;INTERVAL=60;BYSECOND=7": {"2026-01-01T00:00:07", "2026-01-01T00:00:08"},
	} {
		_, meets := Parse(rule, "", starts[0])
		_, misses := Parse(rule, "", starts[1])
		failIf(t, meets != nil || refusedField(misses) != "rrule INTERVAL", "%s: got %v and %v; want a refusal of INTERVAL for the second start", rule, meets, misses)
	}
}

func TestTheZoneAndTheStartAreRefusedWithTheirName(t *testing.T) {
	for _, zone := range []string{
		"Local", "local", "localtime", "posixrules", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "America", " ", "Europe/Berlin ", "+02:00",
	} {
		_, err := Parse("FREQ=DAILY", zone, "2026-01-01")
		failIf(t, refusedField(err) != "timezone", "%q: got %v, want a refusal of timezone", zone, err)
	}
	for _, dtstart := range []string{
		"", "now", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.5", "2026-02-30", "1969-12-31T23:59:59", "2201-01-01", "0001-01-01",
		"1700-01-01", "2026-01-01T24:00:00", "20260101T000000Z",
	} {
		_, err := Parse("FREQ=DAILY", "", dtstart)
		failIf(t, refusedField(err) != "dtstart", "%q: got %v, want a refusal of dtstart", dtstart, err)
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
