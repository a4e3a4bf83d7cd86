package main

import (
	"encoding/json"
	"fmt"
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
clocks: 2026-03-29 from 02:00 to 03:00; 02:30 does not exist on that day, runs at 03:30
`},
		"cron, two lines": {
			[]string{"--rule", "0 6 13 * FRI", "--after", "2026-02-07", "--count", "2"},
			`rule: RRULE:FREQ=MONTHLY;BYMONTHDAY=13;BYHOUR=6;BYMINUTE=0;BYSECOND=0
      RRULE:FREQ=WEEKLY;BYDAY=FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0
read: on the 13th of the month at 06:00 and every Friday at 06:00; if you mean days that are both: "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0"
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
clocks: 2026-11-01 from 02:00 to 01:00; elapsed time goes on
`},
		"cron, across two equal hours": {
			[]string{"0,30 * * * *", "--timezone", "Europe/London", "--after", "2026-10-25T01:00:00", "-n", "4"},
			`rule: FREQ=HOURLY;BYMINUTE=0,30;BYSECOND=0
read: every hour at :00 and :30
TIME                       DAY  NOTE
2026-10-25T01:30:00+01:00  Sun
2026-10-25T01:00:00Z       Sun
2026-10-25T01:30:00Z       Sun
2026-10-25T02:00:00Z       Sun
clocks: 2026-10-25 from 02:00 to 01:00; the hour is free, runs in both
`},
		"cron, where cron(8) differs": {
			[]string{"*/30 1 * * *", "--timezone", "Europe/London", "--after", "2026-10-25T01:00:00", "-n", "2"},
			`rule: FREQ=DAILY;BYHOUR=1;BYMINUTE=0,30;BYSECOND=0
read: every day at 01:00 and 01:30
TIME                       DAY  NOTE
2026-10-25T01:30:00+01:00  Sun  01:30 occurs twice, runs at the first
2026-10-26T01:00:00Z       Mon
clocks: 2026-10-25 from 02:00 to 01:00; 01:00 occurs twice, runs at the first; cron(8) runs it in both
`},
	} {
		got := c.do(append([]string{"schedule", "next"}, test.args...)...)
		failIf(t, got != test.want, "%s: found\n%s\nexpected\n%s", name, got, test.want)
	}
}

func TestOccurrencesAreAnArrayOfTimesInUTCTenOfThemFromNowOn(t *testing.T) {
	for flags, want := range map[string]string{
		"30·2·*·*·* --timezone Europe/Berlin --after 2026-03-28T02:30:00 -n 2": "[2026-03-29T01:30:00.000Z 2026-03-30T00:30:00.000Z]", "FREQ=DAILY;COUNT=1 --after 2026-01-01T00:00:00Z": "[]",
		"every·minute": "",
	} {
		before := time.Now()
		var times []string
		err := json.Unmarshal([]byte((&console{t: t}).do(line("schedule next -o json "+flags)...)), &times)
		got := fmt.Sprint(times)
		failIf(t, err != nil || times == nil || want != "" && got != want, "%s: expected %s, found %s, %v", flags, want, got, err)
		if want == "" {
			first, err := time.Parse(time.RFC3339, times[0])
			failIf(t, err != nil || len(times) != 10 || first.Before(before) || first.After(time.Now().Add(time.Minute)),
				"expected ten minutes from now on, found %v, %v", times, err)
		}
	}
}
