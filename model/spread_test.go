package model

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func scheduleOf(t testing.TB, rule, zone string) *Schedule {
	t.Helper()
	s, err := ParseSchedule(rule, zone, PolicyDtstart)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAModelIsShiftedByAPartOfTheSpreadThatIsItsOwn(t *testing.T) {
	const hourly = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05","policy":{"timeout":"5m","retries":["1m"],"spread":"10m"}`
	shift := live(t, hourly, "").m.RefreshAt.Sub(clock("00:00"))
	if shift >= 10*time.Minute {
		shift -= time.Hour
	}
	l := live(t, hourly, "")
	if shift <= 0 || shift >= 10*time.Minute || shift%time.Millisecond != 0 {
		t.Fatalf("tbl_1 is shifted by %v", shift)
	}
	for hour := range 24 * 400 {
		at := monday.Add(time.Duration(hour)*time.Hour + shift)
		if !l.m.RefreshAt.Equal(at) {
			t.Fatalf("hour %d: %s, want %s", hour, l, at)
		}
		l.step(at, "wake", "")
		l.step(at.Add(time.Minute), "success", "")
	}
}

func TestTenThousandHourlyModelsAreSpreadEvenly(t *testing.T) {
	hourly, noon := scheduleOf(t, "FREQ=HOURLY", ""), clock("12:00")
	var minutes [10]int
	for i := range 10_000 {
		at, found := spread{hourly, fraction("spread", fmt.Sprintf("tbl_%d", i)), 10 * time.Minute}.next(noon.Add(-time.Millisecond))
		shift := at.Sub(noon)
		if !found || shift < 0 || shift >= 10*time.Minute {
			t.Fatalf("tbl_%d starts at %s", i, at)
		}
		minutes[shift/time.Minute]++
	}
	for minute, n := range minutes {
		if n < 880 || n > 1120 { // 1000, and four standard deviations
			t.Errorf("%d start in minute %d: %v", n, minute, minutes)
		}
	}
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
		s := spread{
			schedule: scheduleOf(t, rule, rapid.SampledFrom([]string{"UTC", "Europe/Berlin"}).Draw(r, "zone")),
			phase:    rapid.Float64Range(0, 0.999999).Draw(r, "phase"),
			length:   time.Duration(rapid.Int64Range(1, 3*24*3600*1000).Draw(r, "length")) * time.Millisecond,
		}
		from := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC).Add(time.Duration(rapid.Int64Range(0, 2*24*3600*1000).Draw(r, "from")) * time.Millisecond)
		walked := s.walk(from, 20)
		after := from
		for _, want := range walked {
			got, found := s.next(after)
			if !found || !got.After(after) || !got.Equal(want) {
				r.Fatalf("%s by %v: after %s comes %s, want %s", rule, s.length, after, got, want)
			}
			if again, _ := s.next(got.Add(-time.Millisecond)); !again.Equal(got) {
				r.Fatalf("%s by %v: just before %s comes %s", rule, s.length, got, again)
			}
			after = got
		}
	})
}

// walk shifts one occurrence after another, from long before on, and returns the first n that come after an instant.
func (s spread) walk(after time.Time, n int) (shifted []time.Time) {
	at, found := s.schedule.Next(after.Add(-s.length - time.Second))
	for found && len(shifted) < n {
		next, more := s.schedule.Next(at)
		shift := s.shifted(at, next, more)
		if shift.Before(at) || shift.Sub(at) >= s.length || more && !shift.Before(next) {
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
// one for each occurrence. An evaluation is known by what it allocates.
func TestASpreadCostsFewEvaluations(t *testing.T) {
	for _, test := range []struct {
		rule   string
		length time.Duration
		after  string
	}{
		{"FREQ=SECONDLY", 10 * time.Minute, "2026-06-01T00:00:00Z"},
		{"FREQ=SECONDLY", maxDuration, "2026-06-01T00:00:00Z"},
		{"FREQ=SECONDLY;BYHOUR=0", day, "2026-12-01T20:00:00Z"},
		{"FREQ=SECONDLY;BYDAY=MO", 7 * day, "2026-12-05T20:00:00Z"},
		{"FREQ=SECONDLY;BYMONTH=1", 365 * day, "2026-12-01T00:00:00Z"},
		{"FREQ=MINUTELY;BYMONTH=1", maxDuration, "2026-12-01T00:00:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, test.after)
		if err != nil {
			t.Fatal(err)
		}
		s := scheduleOf(t, test.rule, "Europe/Berlin")
		one := testing.AllocsPerRun(10, func() { s.Next(after) })
		all := testing.AllocsPerRun(1, func() { spread{s, 0.5, test.length}.next(after) })
		if all > 80*max(one, 1) {
			t.Errorf("%s by %v: %g allocations, one evaluation has %g", test.rule, test.length, all, one)
		}
	}
}

func TestWithoutAScheduleThereIsNothingToSpread(t *testing.T) {
	live(t, `"policy":{"spread":"1h"}`, "00:00 wake | 00:01 success").expect("#0, next never: finished: one-shot")
	live(t, `"rrule":"FREQ=DAILY;COUNT=1","dtstart":"2020-01-01","policy":{"spread":"1h"}`, "").expect("#0, next never: finished: no planned refresh left")
	if policy := policyOf(t, `{"spread":null}`); policy.Spread != 0 {
		t.Errorf("found %v", policy.Spread)
	}
	refusals(t, map[string]string{`{"spread":"wide"}`: `spread: expected ` + wantDuration + `, found "wide" (a number from 0 is missing before "wide")`})
}
