package schedule

import (
	"slices"
	"testing"
	"time"
)

// notes walks a schedule and gives each occurrence with its note.
func notes(t *testing.T, rule, timezone, dtstart, after string, n int) (found []string) {
	t.Helper()
	s, err := Parse(rule, timezone, dtstart)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, after)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		at, _ = s.Next(at)
		found = append(found, at.Format("01-02T15:04Z ")+s.Note(at))
	}
	return found
}

func TestAnOccurrenceBesideItsWallClockIsExplained(t *testing.T) {
	const twice = "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30"
	for _, c := range []zoneCase{
		{"America/New_York", daily0230, "2026-01-01", "2026-03-07T05:00:00Z", []string{
			"03-07T07:30Z ", "03-08T07:30Z 02:30 does not exist on that day, runs at 03:30", "03-09T06:30Z "}},
		{"America/New_York", daily0130, "2026-01-01", "2026-10-31T04:00:00Z", []string{
			"10-31T05:30Z ", "11-01T05:30Z 01:30 occurs twice, runs at the first", "11-02T06:30Z "}},
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=5", "2026-01-01", "2026-03-29T00:00:00Z", []string{
			"03-29T01:30Z 02:30:05 does not exist on that day, runs at 03:30:05"}},
		{"Australia/Lord_Howe", "FREQ=DAILY;BYHOUR=2;BYMINUTE=15", "2026-01-01", "2026-10-03T00:00:00Z", []string{
			"10-03T15:45Z 02:15 does not exist on that day, runs at 02:45", "10-04T15:15Z "}},
		{"Pacific/Apia", "FREQ=DAILY", "2011-01-01T09:00:00", "2011-12-28T22:00:00Z", []string{
			"12-29T19:00Z ", "12-30T19:00Z 2011-12-30 09:00 does not exist, runs at 2011-12-31 09:00", "12-31T19:00Z "}},

		// Next to a change, but not moved by it
		{"Europe/Berlin", "FREQ=DAILY;BYHOUR=1,3;BYMINUTE=0", "2026-01-01", "2026-10-24T12:00:00Z", []string{"10-24T23:00Z ", "10-25T02:00Z "}},
		{"Europe/Berlin", twice, "2026-01-01", "2026-03-28T12:00:00Z", []string{"03-29T01:30Z 02:30 does not exist on that day, runs at 03:30", "03-30T00:30Z "}},

		// Elapsed time, which no clock moves, and instants
		{"Europe/Berlin", "FREQ=MINUTELY;INTERVAL=30", "2026-03-29", "2026-03-29T00:00:00Z", []string{"03-29T00:30Z ", "03-29T01:00Z ", "03-29T01:30Z "}},
		{"", daily0230, "2026-01-01", "2026-03-28T12:00:00Z", []string{"03-29T02:30Z "}},
	} {
		if got := notes(t, c.rule, c.zone, c.dtstart, c.after, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s:\ngot  %q\nwant %q", c.zone, c.rule, got, c.want)
		}
	}
}

func TestAnInstantThatIsNoOccurrenceHasNoNote(t *testing.T) {
	gap := time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		rule, dtstart string
		at            time.Time
	}{
		"excluded":      {daily0230 + "\nEXDATE:20260329T013000Z", "2026-01-01", gap},
		"over":          {daily0230 + ";UNTIL=20260328T235959Z", "2026-01-01", gap},
		"counted out":   {daily0230 + ";COUNT=3", "2026-01-01", gap},
		"not begun":     {daily0230, "2026-03-30", gap},
		"a millisecond": {daily0230, "2026-01-01", gap.Add(time.Millisecond)},
		"second round":  {daily0230, "2026-01-01", time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)},
	} {
		s, err := Parse(test.rule, "Europe/Berlin", test.dtstart)
		if err != nil {
			t.Fatal(err)
		}
		if note := s.Note(test.at); note != "" {
			t.Errorf("%s: found %q", name, note)
		}
	}
}

func TestTheLastOccurrenceOfALimitedScheduleIsKnown(t *testing.T) {
	for rule, want := range map[string]string{
		"FREQ=DAILY;COUNT=3":                          "2026-01-03T05:00:00Z",
		"FREQ=DAILY;UNTIL=20260301T000000Z":           "2026-02-28T05:00:00Z",
		"RDATE:20270101T090000Z,20280101T090000Z":     "2028-01-01T09:00:00Z",
		"RDATE:20270101T090000Z\nFREQ=DAILY;COUNT=3":  "2027-01-01T09:00:00Z",
		"FREQ=DAILY;COUNT=3\nEXDATE:20260103T050000Z": "2026-01-02T05:00:00Z",
		"FREQ=DAILY": "",
		"FREQ=DAILY;COUNT=3\nFREQ=YEARLY;BYMONTH=1":              "",
		"FREQ=YEARLY;UNTIL=20290101T000000Z\nFREQ=DAILY;COUNT=2": "2028-01-01T05:00:00Z",
	} {
		s, err := Parse(rule, "America/New_York", "2026-01-01")
		if err != nil {
			t.Fatal(err)
		}
		last, ends := s.Ends()
		if ends != (want != "") || ends && last.Format(time.RFC3339) != want {
			t.Errorf("%s: found %s, %t, expected %q", rule, last, ends, want)
		}
		if next, more := s.Next(last); ends && more {
			t.Errorf("%s: ends at %s, but then comes %s", rule, last, next)
		}
	}
}

func TestAWallClockHasOneInstant(t *testing.T) {
	for wall, want := range map[string]string{
		"2026-03-29T02:30:00": "2026-03-29T01:30:00Z", "2026-10-25T02:30:00": "2026-10-25T00:30:00Z", "2026-07-01": "2026-06-30T22:00:00Z", "20260701T120000": "2026-07-01T10:00:00Z",
	} {
		if at, err := Instant(wall, "Europe/Berlin"); err != nil || at.Format(time.RFC3339) != want {
			t.Errorf("%s: found %s, %v, expected %s", wall, at, err, want)
		}
	}
	if at, err := Instant("2026-07-01", "Mars/Olympus"); err == nil {
		t.Errorf("expected a refusal of the zone, found %s", at)
	}
	if at, err := Instant("tomorrow", ""); err == nil {
		t.Errorf("expected a refusal of the time, found %s", at)
	}
}

func TestAnHourlyRuleIsNotWarnedOfAChangeOfTheClocks(t *testing.T) {
	after := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for rule, want := range map[string]int{
		"FREQ=HOURLY;BYMINUTE=0;BYSECOND=0": 0, "FREQ=HOURLY;BYMINUTE=15,45;BYSECOND=0": 0, "FREQ=HOURLY;BYDAY=SU;BYMINUTE=0;BYSECOND=0": 0, "FREQ=HOURLY": 0,
		"FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE=0;BYSECOND=0": 0,
		"FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0":                                                            2,
		"FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0;BYSECOND=0":                                                         2,
		"RRULE:FREQ=HOURLY;BYMINUTE=0;BYSECOND=0\nRRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0":             2,
	} {
		for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe"} {
			s, err := Parse(rule, zone, "2027-01-01")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.ClockChanges(after, 366); zone == "Europe/Berlin" && len(got) != want || want == 0 && len(got) > 0 {
				t.Errorf("%s in %s: expected %d changes, found %v", rule, zone, want, got)
			}
		}
	}
}
