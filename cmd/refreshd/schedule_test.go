package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheTableOfOccurrencesTellsWhatTheClocksDo(t *testing.T) {
	c := &console{t: t}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"English, across a gap": {
			[]string{"every day at 2:30", "--timezone", "Europe/Berlin", "--after", "2026-03-28T00:00:00Z", "-n", "3"},
			`rule: FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0
read: every day at 02:30
TIME                       DAY  NOTE
2026-03-28T02:30:00+01:00  Sat
2026-03-29T03:30:00+02:00  Sun  02:30 does not exist on that day, runs at 03:30
2026-03-30T02:30:00+02:00  Mon
`},
		"cron, two lines": {
			[]string{"--rule", "0 6 13 * FRI", "--after", "2026-02-07", "--count", "2"},
			`rule: RRULE:FREQ=MONTHLY;BYMONTHDAY=13;BYHOUR=6;BYMINUTE=0;BYSECOND=0
      RRULE:FREQ=WEEKLY;BYDAY=FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0
TIME                  DAY  NOTE
2026-02-13T06:00:00Z  Fri
2026-02-20T06:00:00Z  Fri
`},
		"a start, and an end": {
			[]string{"--rule", "FREQ=HOURLY;INTERVAL=2;COUNT=3", "--dtstart", "2026-01-01T00:30:00", "--after", "2026-01-01T00:30:00Z"},
			`rule: FREQ=HOURLY;INTERVAL=2;COUNT=3
TIME                  DAY  NOTE
2026-01-01T02:30:00Z  Thu
2026-01-01T04:30:00Z  Thu
no more
`},
		"nothing left": {
			[]string{"--rule", "RDATE:20260101T000000\nEXDATE:20260102T000000", "--after", "2026-01-01T00:00:00Z"},
			`rule: RDATE:20260101T000000
      EXDATE:20260102T000000
no more
`},
		"the midnight of the day of --after": {
			[]string{"--rule", "every 7 hours", "--timezone", "America/New_York", "--after", "2026-07-01T13:00:00", "-n", "1"},
			`rule: FREQ=HOURLY;INTERVAL=7
read: every 7 hours
TIME                       DAY  NOTE
2026-07-01T14:00:00-04:00  Wed
`},
	} {
		t.Run(name, func(t *testing.T) {
			c := *c
			c.t = t
			if got := c.do(append([]string{"schedule", "next"}, test.args...)...); got != test.want {
				t.Errorf("found\n%s\nexpected\n%s", got, test.want)
			}
		})
	}
}

// array runs schedule next and reads the array of times.
func (c *console) array(args ...string) (times []string) {
	c.t.Helper()
	text := c.do(append([]string{"schedule", "next", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &times); err != nil || times == nil {
		c.t.Fatalf("expected an array of times, found %s", text)
	}
	return times
}

func TestOccurrencesAreAnArrayOfTimesInUTC(t *testing.T) {
	c := &console{t: t}
	got := c.array("--rule", "30 2 * * *", "--timezone", "Europe/Berlin", "--after", "2026-03-28T02:30:00", "-n", "2")
	if want := []string{"2026-03-29T01:30:00.000Z", "2026-03-30T00:30:00.000Z"}; !slices.Equal(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
	if got := c.array("--rule", "FREQ=DAILY;COUNT=1", "--after", "2026-01-01T00:00:00Z"); len(got) != 0 {
		t.Errorf("expected none, found %v", got)
	}
}

func TestOccurrencesComeAfterNowTenOfThem(t *testing.T) {
	c := &console{t: t}
	before := time.Now()
	got := c.array("--rule", "every minute")
	first, err := time.Parse(time.RFC3339, got[0])
	if err != nil || len(got) != 10 || first.Before(before) || first.After(time.Now().Add(time.Minute)) {
		t.Errorf("expected ten minutes from now on, found %v, %v", got, err)
	}
}

func TestAWrongFlagOfScheduleNextIsNamed(t *testing.T) {
	c := &console{t: t}
	for want, args := range map[string][]string{
		`--rule: expected a rule such as`:                             {},
		`--rule BYHOUR: expected numbers from 0 to 23`:                {"--rule", "FREQ=DAILY;BYHOUR=24"},
		`--rule line 2 BYHOUR: expected numbers from 0 to 23`:         {"--rule", "FREQ=DAILY\nFREQ=DAILY;BYHOUR=24"},
		`in the hour (field 2 of the cron expression), found "25"`:    {"--rule", "0 25 * * *"},
		`"every 2 hours", found "every 2 dogs" ("dogs" is not known)`: {"--rule", "every 2 dogs"},
		`--rule: expected a rule that occurs at least once`:           {"--rule", "0 0 30 2 *"},
		`--timezone: expected an IANA time zone`:                      {"--rule", "@daily", "--timezone", "Mars"},
		`--dtstart: expected a wall clock time`:                       {"--rule", "@daily", "--dtstart", "soon"},
		`--after: expected a time such as 2026-01-31T06:00:00Z`:       {"--rule", "@daily", "--after", "soon"},
		`from 1970 to 2200, found "1969-12-31T23:00:00Z"`:             {"--rule", "@daily", "--after", "1969-12-31T23:00:00Z"},
		`--count: expected 1 to 1000, found 0`:                        {"--rule", "@daily", "-n", "0"},
		`--count: expected 1 to 1000, found 1001`:                     {"--rule", "@daily", "--count", "1001"},
		`--count: expected a whole number, found "many"`:              {"--rule", "@daily", "-n", "many"},
		`schedule: expected one of next, found "last"`:                {"last"},
		`expected one rule, found an argument and --rule`:             {"@daily", "--rule", "@daily"},
		`expected a rule such as`:                                     {""},
	} {
		args = append([]string{"schedule", "next"}, args...)
		if strings.HasPrefix(want, "schedule:") {
			args = []string{"schedule", "last"}
		}
		if text := c.fail(exitUsage, args...); !strings.Contains(text, want) {
			t.Errorf("%v: expected %q in %s", args, want, text)
		}
	}
}
