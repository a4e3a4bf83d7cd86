package schedule

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/document"
)

const officeHours = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16"

func windowOf(t testing.TB, rule, zone string) *Window {
	t.Helper()
	window := check.Got(ParseWindow(rule, zone, Parse))(t)
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
		got := opens.In(instant.Location()).Format("Mon " + localLayout)
		failIf(t, err != nil || got != want, "%s: at %s it opens %s, want %s", rule, at, got, want)
	}
}

func TestRetriesStartOnlyInOfficeHours(t *testing.T) {
	opens(t, officeHours, "Europe/Berlin", map[string]string{
		"Wed 2026-06-10 08:59:59": "Wed 2026-06-10 09:00:00 +0200",
		"Wed 2026-06-10 09:00:00": "Wed 2026-06-10 09:00:00 +0200",
		"Wed 2026-06-10 12:34:56": "Wed 2026-06-10 12:34:56 +0200",
		"Wed 2026-06-10 16:59:59": "Wed 2026-06-10 16:59:59 +0200",
		"Wed 2026-06-10 17:00:00": "Thu 2026-06-11 09:00:00 +0200",

		// Over a weekend
		"Fri 2026-06-12 16:59:59": "Fri 2026-06-12 16:59:59 +0200",
		"Fri 2026-06-12 17:00:00": "Mon 2026-06-15 09:00:00 +0200",
		"Sat 2026-06-13 12:00:00": "Mon 2026-06-15 09:00:00 +0200",
		"Sun 2026-06-14 23:59:59": "Mon 2026-06-15 09:00:00 +0200",

		// Over a weekend in which the clocks go forward (Sunday, 29 March, 02:00) and back (25 October, 03:00)
		"Fri 2026-03-27 17:00:00": "Mon 2026-03-30 09:00:00 +0200",
		"Sun 2026-03-29 04:00:00": "Mon 2026-03-30 09:00:00 +0200",
		"Mon 2026-03-30 08:00:00": "Mon 2026-03-30 09:00:00 +0200",
		"Mon 2026-03-30 16:59:59": "Mon 2026-03-30 16:59:59 +0200",
		"Fri 2026-10-23 17:00:00": "Mon 2026-10-26 09:00:00 +0100",
		"Sun 2026-10-25 02:30:00": "Mon 2026-10-26 09:00:00 +0100",
		"Mon 2026-10-26 17:00:00": "Tue 2026-10-27 09:00:00 +0100",
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
		got, _ := window.Open(day.Add(at))
		failIf(t, got.Sub(day) != want, "at %v it opens %v, want %v", at, got, want)
	}
}

func TestAWindowIsOfWholeDaysHoursOrMinutes(t *testing.T) {
	opens(t, "RRULE:FREQ=WEEKLY;BYDAY=SA,SU", "Europe/Berlin", map[string]string{
		"Fri 2026-06-12 23:59:59": "Sat 2026-06-13 00:00:00 +0200",
		"Sat 2026-06-13 13:30:00": "Sat 2026-06-13 13:30:00 +0200",
		"Sun 2026-06-14 23:59:59": "Sun 2026-06-14 23:59:59 +0200",
		"Mon 2026-06-15 00:00:00": "Sat 2026-06-20 00:00:00 +0200",
	})
	opens(t, " freq=daily;byhour=9;byminute=0,30 ", "Europe/Berlin", map[string]string{
		"Fri 2026-06-12 09:00:59": "Fri 2026-06-12 09:00:59 +0200",
		"Fri 2026-06-12 09:01:00": "Fri 2026-06-12 09:30:00 +0200",
		"Fri 2026-06-12 09:31:00": "Sat 2026-06-13 09:00:00 +0200",
	})
	opens(t, "FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=0,23", "UTC", map[string]string{
		"Mon 2026-06-01 00:59:59": "Mon 2026-06-01 00:59:59 +0000",
		"Mon 2026-06-01 01:00:00": "Mon 2026-06-01 23:00:00 +0000",
		"Tue 2026-06-02 00:00:00": "Wed 2026-07-01 00:00:00 +0000",
	})
}

func TestAWholeDayIsOpenInTheNightsInWhichTheClocksChange(t *testing.T) {
	for _, rule := range []string{"FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SU", "FREQ=DAILY;BYHOUR=0,1,2,3,4,5"} {
		opens(t, rule, "Europe/Berlin", map[string]string{
			"Sun 2026-03-29 01:59:59":       "Sun 2026-03-29 01:59:59 +0100",
			"Sun 2026-03-29 03:00:00":       "Sun 2026-03-29 03:00:00 +0200",
			"Sun 2026-03-29 03:59:59":       "Sun 2026-03-29 03:59:59 +0200",
			"Sun 2026-10-25 02:30:00 +0200": "Sun 2026-10-25 02:30:00 +0200",
			"Sun 2026-10-25 02:00:00 +0100": "Sun 2026-10-25 02:00:00 +0100",
			"Sun 2026-10-25 02:30:00 +0100": "Sun 2026-10-25 02:30:00 +0100",
			"Sun 2026-10-25 03:00:00 +0100": "Sun 2026-10-25 03:00:00 +0100",
		})
	}
	opens(t, "FREQ=DAILY", "Australia/Lord_Howe", map[string]string{ // by half an hour
		"Sun 2026-04-05 01:45:00 +1030": "Sun 2026-04-05 01:45:00 +1030",
		"Sun 2026-04-05 01:59:59 +1030": "Sun 2026-04-05 01:59:59 +1030",
		"Sun 2026-10-04 02:30:00 +1100": "Sun 2026-10-04 02:30:00 +1100",
	})
	opens(t, "FREQ=DAILY;BYHOUR=1", "Europe/Berlin", map[string]string{ // and a closed window stays closed
		"Sun 2026-10-25 02:00:00 +0200": "Mon 2026-10-26 01:00:00 +0100",
		"Sun 2026-10-25 02:00:00 +0100": "Mon 2026-10-26 01:00:00 +0100",
	})
}

func TestARetryIsNotLostToAWindowThatNeverOpensAgain(t *testing.T) {
	window := windowOf(t, "FREQ=YEARLY;BYMONTH=6", "")
	late := time.Date(2299, 12, 24, 0, 0, 0, 0, time.UTC)
	got, _ := window.Open(late)
	failIf(t, !got.Equal(late), "at %s it opens %s", late, got)
	got, _ = (*Window)(nil).Open(late)
	failIf(t, !got.Equal(late), "no window opens %s", got)
}

// On Lord Howe Island the clocks go forward by half an hour, from 02:00 to 02:30 on 4 October 2026, and back from 02:00 to 01:30 on 5 April.
func TestAWindowKeepsItsWallHoursWhereTheClocksSkipAPartOfThem(t *testing.T) {
	opens(t, "FREQ=DAILY;BYHOUR=2", "Australia/Lord_Howe", map[string]string{
		"Sun 2026-10-04 01:59:59 +1030": "Sun 2026-10-04 02:30:00 +1100",
		"Sun 2026-10-04 02:30:00 +1100": "Sun 2026-10-04 02:30:00 +1100",
		"Sun 2026-10-04 02:59:59 +1100": "Sun 2026-10-04 02:59:59 +1100",
		"Sun 2026-10-04 03:00:00 +1100": "Mon 2026-10-05 02:00:00 +1100",
		"Sun 2026-10-04 03:29:59 +1100": "Mon 2026-10-05 02:00:00 +1100",
		"Mon 2026-10-05 02:59:59":       "Mon 2026-10-05 02:59:59 +1100",
	})
	opens(t, "FREQ=DAILY;BYHOUR=1,2", "Australia/Lord_Howe", map[string]string{
		"Sun 2026-10-04 01:59:59 +1030": "Sun 2026-10-04 01:59:59 +1030",
		"Sun 2026-10-04 03:00:00 +1100": "Mon 2026-10-05 01:00:00 +1100",
	})
	opens(t, "FREQ=DAILY;BYHOUR=2,3", "Australia/Lord_Howe", map[string]string{
		"Sun 2026-10-04 03:00:00 +1100": "Sun 2026-10-04 03:00:00 +1100",
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

func scheduleOf(t testing.TB, rule, zone string) *Schedule {
	t.Helper()
	s := check.Got(Parse(rule, zone, DefaultDtstart))(t)
	return s
}

// Whatever the rule, the length and the model: after an instant comes the first shifted occurrence, found by walking.
func TestNoSpreadOccurrenceIsSkippedOrDoubled(t *testing.T) {
	rules := rapid.SampledFrom([]string{
		"FREQ=SECONDLY;INTERVAL=7", "FREQ=MINUTELY;INTERVAL=3", "FREQ=HOURLY", "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "FREQ=WEEKLY;BYDAY=MO,TU",
		"FREQ=MINUTELY;BYHOUR=1,2,3", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "FREQ=MONTHLY;BYMONTHDAY=31", "FREQ=DAILY;UNTIL=20260401T000000Z",
		"RDATE:20260329T013000,20260329T023000,20260329T033000", "FREQ=SECONDLY;BYMINUTE=0,1;BYHOUR=5", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
	})
	rapid.Check(t, func(r *rapid.T) {
		rule := rules.Draw(r, "rule")
		s := Spread{
			Schedule: scheduleOf(t, rule, rapid.SampledFrom([]string{"UTC", "Europe/Berlin"}).Draw(r, "zone")),
			Phase:    rapid.Float64Range(0, 0.999999).Draw(r, "phase"),
			Length:   time.Duration(rapid.Int64Range(1, 3*24*3600*1000).Draw(r, "length")) * time.Millisecond,
		}
		if rapid.Bool().Draw(r, "chosen") {
			s.By = s.Length
		}
		from := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC).Add(time.Duration(rapid.Int64Range(0, 2*24*3600*1000).Draw(r, "from")) * time.Millisecond)
		walked := s.walk(from, 20)
		after := from
		for _, want := range walked {
			got, found, _ := s.Evaluate(after)
			if !found || !got.After(after) || !got.Equal(want) {
				r.Fatalf("%s by %v: after %s comes %s, want %s", rule, s.Length, after, got, want)
			}
			if again, _, _ := s.Evaluate(got.Add(-time.Millisecond)); !again.Equal(got) {
				r.Fatalf("%s by %v: just before %s comes %s", rule, s.Length, got, again)
			}
			if at, found, _ := s.Occurrence(got); !found || !s.runs(at).Equal(got) {
				r.Fatalf("%s by %v: %s runs at %s (%v), want %s", rule, s.Length, at, s.runs(at), found, got)
			}
			if at, found, _ := s.Occurrence(got.Add(-time.Millisecond)); found && s.runs(at).Equal(got) {
				r.Fatalf("%s by %v: %s runs just before %s", rule, s.Length, at, got)
			}
			if at, _, _ := s.Occurrence(got); !begun(s.Schedule, at).Equal(at) || !begun(s.Schedule, at.Add(-time.Millisecond)).Before(at) {
				r.Fatalf("%s: by %s began %s", rule, at, begun(s.Schedule, at))
			}
			after = got
		}
	})
}

func begun(s *Schedule, by time.Time) time.Time {
	at, _, _ := s.Begun(by)
	return at
}

func (s Spread) runs(at time.Time) time.Time {
	next, found := s.Schedule.Next(at)
	return s.Shifted(at, next, found)
}

// walk shifts one occurrence after another, from long before on, and returns the first n that come after an instant.
func (s Spread) walk(after time.Time, n int) (shifted []time.Time) {
	at, found := s.Schedule.Next(after.Add(-s.Length - time.Second))
	for found && len(shifted) < n {
		next, more := s.Schedule.Next(at)
		shift := s.Shifted(at, next, more)
		if shift.Before(at) || shift.Sub(at) >= max(s.Length, s.By+1) || more && !shift.Before(next) {
			panic(fmt.Sprintf("%s is shifted to %s, the next one is %s", at, shift, next))
		}
		if shift.After(after) {
			shifted = append(shifted, shift)
		}
		at, found = next, more
	}
	return shifted
}

// A short spread, a long one, and one over a cluster of occurrences with nothing behind it: each costs a few evaluations and not
// one for each occurrence.
func TestASpreadCostsFewEvaluations(t *testing.T) {
	for _, test := range []struct {
		rule   string
		length time.Duration
		after  string
	}{
		{"FREQ=SECONDLY", 10 * time.Minute, "2026-06-01T00:00:00Z"},
		{"FREQ=SECONDLY", document.MaxDuration, "2026-06-01T00:00:00Z"},
		{"FREQ=SECONDLY;BYHOUR=0", 24 * time.Hour, "2026-12-01T20:00:00Z"},
		{"FREQ=SECONDLY;BYDAY=MO", 7 * 24 * time.Hour, "2026-12-05T20:00:00Z"},
		{"FREQ=SECONDLY;BYMONTH=1", 365 * 24 * time.Hour, "2026-12-01T00:00:00Z"},
		{"FREQ=MINUTELY;BYMONTH=1", document.MaxDuration, "2026-12-01T00:00:00Z"},
	} {
		after := check.Got(time.Parse(time.RFC3339, test.after))(t)
		s := scheduleOf(t, test.rule, "Europe/Berlin")
		one := steps(func(b *budget) { s.next(after.Unix(), b) })
		all := steps(func(b *budget) { Spread{Schedule: s, Phase: 0.5, Length: test.length}.next(after, b) })
		failIf(t, all > 80*max(one, 1), "%s by %v: %d steps, one evaluation has %d", test.rule, test.length, all, one)
	}
}

func TestAChosenShiftIsTheSameForEachOccurrenceAndReachesNoOtherOne(t *testing.T) {
	at := func(clock string) time.Time { return parseLocal(t, "2026-01-05 "+clock, "") }
	for _, test := range []struct {
		rule        string
		by          time.Duration
		after, want string
	}{
		{"FREQ=HOURLY", 200 * time.Second, "07:00:00", "07:03:20"}, {"FREQ=HOURLY", 200 * time.Second, "07:03:20", "08:03:20"},
		{"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", 10 * time.Minute, "06:05:00", "06:10:00"},
		{"FREQ=MINUTELY;INTERVAL=3", 200 * time.Second, "07:00:00", "07:00:20"}, // a whole distance and 20 seconds
		{"FREQ=MINUTELY;INTERVAL=3", 180 * time.Second, "07:00:00", "07:03:00"}, // a whole distance: none
	} {
		s := Spread{Schedule: scheduleOf(t, test.rule, "UTC"), Phase: 0.5, Length: time.Minute, By: test.by}
		got, _, err := s.Evaluate(at(test.after))
		failIf(t, err != nil || !got.Equal(at(test.want)), "%s by %v: after %s comes %s (%v), want %s", test.rule, test.by, test.after, got, err, test.want)
	}
}
