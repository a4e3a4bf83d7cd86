package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// sixOClock is when a test begins.
var sixOClock = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// noted is what a part has noted of a time, with counters that grow.
func noted(fields map[string]string, now time.Time, counted int64) {
	one := Sample{At: now}
	for m := range Metrics {
		one.Values[m] = counted
	}
	days, gone := downsample(fields, now)
	fields[now.Format(sampleLayout)] = one.String()
	maps.Copy(fields, days)
	for _, name := range gone {
		delete(fields, name)
	}
}

func TestHoursBecomeDaysAndDaysGo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fields, now := map[string]string{}, sixOClock
		firsts, most := map[string]string{}, map[string]int64{} // of each day
		for counted := range rapid.IntRange(1, 200).Draw(r, "notes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(r, "hours")) * time.Hour)
			if day := now.Format(time.DateOnly); firsts[day] == "" {
				firsts[day] = fmt.Sprintf("start=%d ", counted)
			}
			most[now.Format(time.DateOnly)] = int64(counted)
			noted(fields, now, int64(counted))
		}
		midnight := now.Truncate(24 * time.Hour)
		for day, first := range firsts {
			at, err := time.Parse(time.DateOnly, day)
			if err != nil {
				r.Fatal(err)
			}
			ago := int(midnight.Sub(at) / (24 * time.Hour))
			text, is := fields[day+"T00:00"]
			if ago <= hoursKept {
				continue
			}
			if is != (ago <= daysKept) {
				r.Fatalf("%s, %d days ago: %t", day, ago, is)
			}
			if is && (!strings.HasPrefix(text, first) || !strings.Contains(text, fmt.Sprintf(" input=%d oldest_wait_s=%[1]d taken=%[1]d ", most[day]))) {
				r.Fatalf("%s begins with %s and reaches %d, found %s", day, first, most[day], text)
			}
		}
		for name := range fields {
			if !strings.HasSuffix(name, "T00:00") && name[:10] < midnight.AddDate(0, 0, -hoursKept).Format(time.DateOnly) {
				r.Fatalf("an old hour: %s", name)
			}
		}
	})
}

func TestToFoldAgainChangesNothingAndAClockThatWasSetBackLeavesNothing(t *testing.T) {
	fields := map[string]string{"2026-11-01T00:00": "start=1", "2026-11-01T05:00": "start=4 input=8", "2026-11-22T00:00": "start=9", "2026-11-21T07:00": "start=9", "note": "of a person", "2026-11-20T09:00": Sample{Values: [Metrics]int64{2}}.String()}
	days, gone := downsample(fields, sixOClock)
	slices.Sort(gone)
	check.Equal(t, []string{"2026-11-01T05:00", "2026-11-21T07:00", "2026-11-22T00:00"}, gone)
	if text := days["2026-11-01T00:00"]; len(days) != 1 || !strings.HasPrefix(text, "start=1 ") || !strings.Contains(text, " input=8 ") {
		t.Errorf("expected the day with its first count, and the most in line, found %v", days)
	}
	maps.Copy(fields, days)
	for _, name := range gone[:1] { // only some of them went
		delete(fields, name)
	}
	again, _ := downsample(fields, sixOClock)
	check.FailIf(t, len(again) > 0, "expected the same day, found %v", again)
}

func TestAYearOfHoursTakesAtMostFourKilobytesForEachOfNinetyDays(t *testing.T) {
	fields, long := map[string]string{}, (Sample{Values: [Metrics]int64{9_000_000_000, 9_000_000_000, 9_000_000_000, 9_000_000_000, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6}}).String()
	for day := range 366 {
		for hour := range 23 {
			at := sixOClock.AddDate(0, 0, day).Add(time.Duration(hour) * time.Hour)
			fields[at.Format(sampleLayout)] = long
		}
		noted(fields, sixOClock.AddDate(0, 0, day).Add(23*time.Hour), 9_000_000_000+int64(day))
	}
	redis := testkit.Redis(t).Client(t)
	check.Must(t, redis.HSet(t.Context(), "q:hours", fields).Err())
	used := redis.MemoryUsage(t.Context(), "q:hours", 0).Val()
	t.Logf("%d fields, %d bytes, %d for each of 90 days", len(fields), used, used/daysKept)
	check.FailIf(t, used == 0 || used > daysKept*4096, "expected at most %d bytes, found %d", daysKept*4096, used)
}

func TestWhatIsTakenWithoutALineIsNoCapacity(t *testing.T) {
	// Each sample has when it was, starts, answers and the length of the line.
	sample := func(second int, starts, answers, input int64) Sample {
		one := Sample{At: sixOClock.Add(time.Duration(second) * time.Second)}
		one.Values[MetricStarts], one.Values[MetricSuccesses], one.Values[MetricInput], one.Values[MetricSecond] = starts, answers, input, int64(second%60)
		return one
	}
	first, second, third := sample(0, 1000, 100, 900), sample(60, 1100, 160, 940), sample(120, 1200, 220, 980)
	for name, row := range map[string]struct {
		first, second, third Sample
		head, want           int64
	}{
		"a line that stands":                  {first, second, third, 221, 60},
		"one that began after the first":      {first, second, third, 1001, 0},
		"of whose head nothing is known":      {first, second, third, 0, 0},
		"one that was empty at the second":    {first, sample(60, 1100, 160, 0), third, 221, 0},
		"one that is empty":                   {first, second, sample(120, 1200, 220, 0), 221, 0},
		"attempts are taken back, none taken": {first, sample(60, 1500, 100, 900), sample(120, 2000, 100, 900), 101, 0},
		"workers came back at the end":        {first, sample(60, 1000, 100, 900), sample(120, 1000, 110, 890), 111, 0},
		"two minutes in one":                  {first, second, sample(178, 1200, 280, 920), 281, 0},
		"a second in one":                     {first, sample(119, 1100, 160, 940), sample(121, 1101, 161, 940), 162, 0},
		"the counters were reset":             {first, second, sample(120, 5, 1, 4), 2, 0},
	} {
		if got := row.third.taken(row.second, row.first, row.head); got != row.want {
			t.Errorf("%s: got %d, want %d", name, got, row.want)
		}
	}
}
