package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
)

func TestAMinuteIsNotedOnceWithWhatWasCountedAndWhatTheQueueHolds(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{
			":stats": hash{"start": "7", "success": "5", "failure": "many"}, ":due": scores{"m1": six - 90_000, "m2": six + 1}, ":parked": scores{"m3": six},
			":failing": scores{"m1": six}, "-input": list{"x", "y"},
		})
		const first = "start=7 success=5 failure=0 timeout=0 models=3 failing=1 disabled=0 never=0 fresh=0 late=0 stale=0 input=2 oldest_wait_s=90"
		must(t, b.NoteSample(t.Context(), b.now))
		b.redis.HSet(t.Context(), b.Keys.Stats, "start", 9)
		b.now = b.now.Add(59 * time.Second)
		must(t, b.NoteSample(t.Context(), b.now))
		expectEqual(t, "hours", any(hash{"2026-11-21T06:00": first}), b.state()[":hours"])
		b.now = b.now.Add(time.Second)
		must(t, b.NoteSample(t.Context(), b.now))
		all, err := queueOf(b).Report().Samples(t.Context())
		must(t, err)
		if len(all) != 2 || !all[0].At.Equal(sixOClock) || all[1].Values[MetricStarts]-all[0].Values[MetricStarts] != 2 {
			t.Errorf("expected two minutes with two starts between them, found %v", all)
		}
	})
}

func queueOf(b *bench) *Queue { return &Queue{Name: b.Keys.Queue, Parts: []*Store{b.Store}} }

func TestAKeyOfAnotherTypeCostsAnHourNothingButItsOwnNumber(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":failing": "text", "-input": "text", ":stats": hash{"start": "7"}})
		must(t, b.NoteSample(t.Context(), b.now))
		all, err := queueOf(b).Report().Samples(t.Context())
		must(t, err)
		failIf(t, len(all) != 1 || all[0].Values[MetricStarts] != 7, "expected the hour with its starts, found %v", all)
		b.seed(keys{":hours": "text"})
		err = b.NoteSample(t.Context(), b.now)
		_, misfit := redis.WrongType(err)
		failIf(t, !misfit, "expected the type refused, found %v", err)
		all, err = queueOf(b).Report().Samples(t.Context())
		failIf(t, len(all) > 0 || err != nil, "expected no hours, found %v, %v", all, err)
	})
}

func TestAnHourOfSeveralPartsIsTheirSumAndOneThatAPartHasMissedIsLeftOut(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	q := &Queue{Name: "{q}"}
	for i, hours := range []hash{{"2026-11-21T05:00": "start=5", "2026-11-21T06:00": "start=7 oldest_wait_s=9"}, {"2026-11-21T06:00": "start=1 oldest_wait_s=3", "other": "start=1"}} {
		part, err := New(b.Clients, Config{Queue: fmt.Sprintf("{q:%d}", i)})
		must(t, err)
		b.redis.HSet(t.Context(), part.Keys.Hours, hours)
		q.Parts = append(q.Parts, part)
	}
	all, err := q.Report().Samples(t.Context())
	must(t, err)
	want := Sample{At: sixOClock}
	want.Values[MetricStarts], want.Values[MetricWait] = 8, 9
	expectEqual(t, "hours", []Sample{want}, all)
}

// noted is what a part has noted of a time, with counters that grow.
func noted(fields map[string]string, now time.Time, counted int64) {
	one := Sample{At: now}
	for m := range Metrics {
		one.Values[m] = counted
	}
	days, gone := fold(fields, now)
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
			must(r, err)
			ago := int(midnight.Sub(at) / (24 * time.Hour))
			text, is := fields[day+"T00:00"]
			if ago <= hoursKept {
				continue
			}
			if is != (ago <= daysKept) {
				r.Fatalf("%s, %d days ago: %t", day, ago, is)
			}
			if is && (!strings.HasPrefix(text, first) || !strings.HasSuffix(text, fmt.Sprintf(" input=%d oldest_wait_s=%[1]d", most[day]))) {
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
	days, gone := fold(fields, sixOClock)
	slices.Sort(gone)
	expectEqual(t, "gone", []string{"2026-11-01T05:00", "2026-11-21T07:00", "2026-11-22T00:00"}, gone)
	if text := days["2026-11-01T00:00"]; len(days) != 1 || !strings.HasPrefix(text, "start=1 ") || !strings.Contains(text, " input=8 ") {
		t.Errorf("expected the day with its first count, and the most in line, found %v", days)
	}
	maps.Copy(fields, days)
	for _, name := range gone[:1] { // only some of them went
		delete(fields, name)
	}
	again, _ := fold(fields, sixOClock)
	failIf(t, len(again) > 0, "expected the same day, found %v", again)
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
	b := newBench(t, testkit.Redis(t))
	must(t, b.redis.HSet(t.Context(), b.Keys.Hours, fields).Err())
	used := b.redis.MemoryUsage(t.Context(), b.Keys.Hours, 0).Val()
	t.Logf("%d fields, %d bytes, %d for each of 90 days", len(fields), used, used/daysKept)
	failIf(t, used == 0 || used > daysKept*4096, "expected at most %d bytes, found %d", daysKept*4096, used)
}
