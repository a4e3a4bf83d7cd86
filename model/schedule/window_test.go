package schedule

import (
	"testing"
	"time"
)

const officeHours = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16"

func windowOf(t testing.TB, rule, zone string) *Window {
	t.Helper()
	window, err := ParseWindow(rule, zone, Parse)
	if err != nil {
		t.Fatal(err)
	}
	return window
}

// opens asks a window at wall clocks of its zone, such as "Fri 2026-03-27 17:00"; the answers are of that zone too, with the
// offset, because clocks change.
func opens(t *testing.T, rule, zone string, tests map[string]string) {
	t.Helper()
	window := windowOf(t, rule, zone)
	for at, want := range tests {
		instant := parseLocal(t, at[len("Mon "):], zone)
		opens, err := window.Open(instant)
		if got := opens.In(instant.Location()).Format("Mon " + localLayout); err != nil || got != want {
			t.Errorf("%s: at %s it opens %s, want %s", rule, at, got, want)
		}
	}
}

func TestRetriesStartOnlyInOfficeHours(t *testing.T) {
	opens(t, officeHours, "Europe/Berlin", map[string]string{
		"Wed 2026-06-10 08:59:59": "Wed 2026-06-10 09:00:00 +0200",
		"Wed 2026-06-10 09:00:00": "Wed 2026-06-10 09:00:00 +0200",
		"Wed 2026-06-10 16:59:59": "Wed 2026-06-10 16:59:59 +0200",
		"Wed 2026-06-10 17:00:00": "Thu 2026-06-11 09:00:00 +0200",

		// Over a weekend
		"Fri 2026-06-12 16:59:59": "Fri 2026-06-12 16:59:59 +0200",
		"Fri 2026-06-12 17:00:00": "Mon 2026-06-15 09:00:00 +0200",
		"Sun 2026-06-14 23:59:59": "Mon 2026-06-15 09:00:00 +0200",

		// Over a weekend in which the clocks go forward (Sunday, 29 March, 02:00) and back (25 October, 03:00)
		"Fri 2026-03-27 17:00:00": "Mon 2026-03-30 09:00:00 +0200",
		"Sun 2026-03-29 04:00:00": "Mon 2026-03-30 09:00:00 +0200",
		"Fri 2026-10-23 17:00:00": "Mon 2026-10-26 09:00:00 +0100",
		"Sun 2026-10-25 02:30:00": "Mon 2026-10-26 09:00:00 +0100",
	})
}

func TestAWindowKnowsMilliseconds(t *testing.T) {
	window, day := windowOf(t, officeHours, ""), time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) // a Monday
	for at, want := range map[time.Duration]time.Duration{
		17*time.Hour - time.Millisecond: 17*time.Hour - time.Millisecond,
		17*time.Hour + time.Millisecond: 33 * time.Hour,
		9*time.Hour - time.Millisecond:  9 * time.Hour,
		9*time.Hour + time.Millisecond:  9*time.Hour + time.Millisecond,
	} {
		if got, _ := window.Open(day.Add(at)); got.Sub(day) != want {
			t.Errorf("at %v it opens %v, want %v", at, got, want)
		}
	}
}

func TestAWindowIsOfWholeDaysHoursOrMinutes(t *testing.T) {
	opens(t, "RRULE:FREQ=WEEKLY;BYDAY=SA,SU", "Europe/Berlin", map[string]string{
		"Fri 2026-06-12 23:59:59": "Sat 2026-06-13 00:00:00 +0200",
		"Sun 2026-06-14 23:59:59": "Sun 2026-06-14 23:59:59 +0200",
		"Mon 2026-06-15 00:00:00": "Sat 2026-06-20 00:00:00 +0200",
	})
	opens(t, " freq=daily;byhour=9;byminute=0,30 ", "Europe/Berlin", map[string]string{
		"Fri 2026-06-12 09:00:59": "Fri 2026-06-12 09:00:59 +0200",
		"Fri 2026-06-12 09:01:00": "Fri 2026-06-12 09:30:00 +0200",
		"Fri 2026-06-12 09:31:00": "Sat 2026-06-13 09:00:00 +0200",
	})
}

func TestAWholeDayIsOpenInTheNightsInWhichTheClocksChange(t *testing.T) {
	for _, rule := range []string{"FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SU", "FREQ=DAILY;BYHOUR=0,1,2,3,4,5"} {
		opens(t, rule, "Europe/Berlin", map[string]string{
			"Sun 2026-03-29 03:00:00":       "Sun 2026-03-29 03:00:00 +0200",
			"Sun 2026-03-29 03:59:59":       "Sun 2026-03-29 03:59:59 +0200",
			"Sun 2026-10-25 02:30:00 +0200": "Sun 2026-10-25 02:30:00 +0200",
			"Sun 2026-10-25 02:00:00 +0100": "Sun 2026-10-25 02:00:00 +0100",
			"Sun 2026-10-25 03:00:00 +0100": "Sun 2026-10-25 03:00:00 +0100",
		})
	}
	opens(t, "FREQ=DAILY", "Australia/Lord_Howe", map[string]string{ // by half an hour
		"Sun 2026-04-05 01:45:00 +1030": "Sun 2026-04-05 01:45:00 +1030",
		"Sun 2026-10-04 02:30:00 +1100": "Sun 2026-10-04 02:30:00 +1100",
	})
	opens(t, "FREQ=DAILY;BYHOUR=1", "Europe/Berlin", map[string]string{ // and what is closed stays closed
		"Sun 2026-10-25 02:00:00 +0200": "Mon 2026-10-26 01:00:00 +0100",
		"Sun 2026-10-25 02:00:00 +0100": "Mon 2026-10-26 01:00:00 +0100",
	})
}

func TestARetryIsNotLostToAWindowThatNeverOpensAgain(t *testing.T) {
	window := windowOf(t, "FREQ=YEARLY;BYMONTH=6", "")
	late := time.Date(2299, 12, 24, 0, 0, 0, 0, time.UTC)
	if got, _ := window.Open(late); !got.Equal(late) {
		t.Errorf("at %s it opens %s", late, got)
	}
	if got, _ := (*Window)(nil).Open(late); !got.Equal(late) {
		t.Errorf("no window opens %s", got)
	}
}

// On Lord Howe Island the clocks go forward by half an hour, from 02:00 to 02:30 on 4 October 2026, and back from 02:00 to 01:30 on 5 April.
func TestAWindowKeepsItsWallHoursWhereTheClocksSkipAPartOfThem(t *testing.T) {
	opens(t, "FREQ=DAILY;BYHOUR=2", "Australia/Lord_Howe", map[string]string{
		"Sun 2026-10-04 01:59:59 +1030": "Sun 2026-10-04 02:30:00 +1100",
		"Sun 2026-10-04 02:30:00 +1100": "Sun 2026-10-04 02:30:00 +1100",
		"Sun 2026-10-04 03:00:00 +1100": "Mon 2026-10-05 02:00:00 +1100",
		"Sun 2026-10-04 03:29:59 +1100": "Mon 2026-10-05 02:00:00 +1100",
	})
	opens(t, "FREQ=DAILY;BYHOUR=2,3", "Australia/Lord_Howe", map[string]string{
		"Sun 2026-10-04 03:10:00 +1100": "Sun 2026-10-04 03:10:00 +1100",
		"Sun 2026-10-04 04:00:00 +1100": "Mon 2026-10-05 02:00:00 +1100",
	})
	opens(t, "FREQ=DAILY;BYHOUR=1", "Australia/Lord_Howe", map[string]string{
		"Sun 2026-04-05 01:45:00 +1100": "Sun 2026-04-05 01:45:00 +1100",
		"Sun 2026-04-05 01:45:00 +1030": "Sun 2026-04-05 01:45:00 +1030",
		"Sun 2026-04-05 02:00:00 +1030": "Mon 2026-04-06 01:00:00 +1030",
	})
	// An hour that is skipped as a whole is made up for in the next one.
	opens(t, "FREQ=DAILY;BYHOUR=2", "Europe/Berlin", map[string]string{
		"Sun 2026-03-29 01:59:59 +0100": "Sun 2026-03-29 03:00:00 +0200",
		"Sun 2026-03-29 03:59:59 +0200": "Sun 2026-03-29 03:59:59 +0200",
		"Sun 2026-03-29 04:00:00 +0200": "Mon 2026-03-30 02:00:00 +0200",
	})
}
