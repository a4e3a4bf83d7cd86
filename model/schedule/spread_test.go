package schedule

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model/document"
)

func scheduleOf(t testing.TB, rule, zone string) *Schedule {
	t.Helper()
	s, err := Parse(rule, zone, DefaultDtstart)
	if err != nil {
		t.Fatal(err)
	}
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

// runs is when an occurrence runs.
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
		{"FREQ=SECONDLY;BYMONTH=1", 365 * 24 * time.Hour, "2026-12-01T00:00:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, test.after)
		if err != nil {
			t.Fatal(err)
		}
		s := scheduleOf(t, test.rule, "Europe/Berlin")
		one := steps(func(b *budget) { s.next(after.Unix(), b) })
		all := steps(func(b *budget) { Spread{Schedule: s, Phase: 0.5, Length: test.length}.next(after, b) })
		if all > 80*max(one, 1) {
			t.Errorf("%s by %v: %d steps, one evaluation has %d", test.rule, test.length, all, one)
		}
	}
}

func TestAChosenShiftIsTheSameForEachOccurrenceAndReachesNoOtherOne(t *testing.T) {
	at := func(clock string) time.Time { return parseLocal(t, "2026-01-05 "+clock, "") }
	for _, test := range []struct {
		rule        string
		by          time.Duration
		after, want string
	}{
		{"FREQ=HOURLY", 200 * time.Second, "07:00:00", "07:03:20"},
		{"FREQ=HOURLY", 200 * time.Second, "07:03:20", "08:03:20"},
		{"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", 10 * time.Minute, "06:05:00", "06:10:00"},
		{"FREQ=MINUTELY;INTERVAL=3", 200 * time.Second, "07:00:00", "07:00:20"}, // a whole distance and 20 seconds
		{"FREQ=MINUTELY;INTERVAL=3", 180 * time.Second, "07:00:00", "07:03:00"}, // a whole distance: none
	} {
		s := Spread{Schedule: scheduleOf(t, test.rule, "UTC"), Phase: 0.5, Length: time.Minute, By: test.by}
		if got, _, err := s.Evaluate(at(test.after)); err != nil || !got.Equal(at(test.want)) {
			t.Errorf("%s by %v: after %s comes %s (%v), want %s", test.rule, test.by, test.after, got, err, test.want)
		}
	}
}
