package report_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestAMinuteIsNotedOnceWithWhatWasCountedAndWhatTheQueueHolds(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.Seed(keys{
			":stats": hash{"start": "7", "success": "5", "failure": "many"}, ":due": scores{"m1": six - 90_000, "m2": six + 1}, ":parked": scores{"m3": six},
			":failing": scores{"m1": six}, "-input": list{"x", "y"},
		})
		const first = "start=7 success=5 failure=0 timeout=0 models=3 failing=1 disabled=0 never=0 fresh=0 late=0 stale=0 input=2 oldest_wait_s=90 taken=0 second=0"
		must(t, report.Of(b.Store).NoteSample(t.Context(), b.Clock()))
		b.Redis.HSet(t.Context(), b.Keys.Stats, "start", 9)
		b.Step(59 * time.Second)
		must(t, report.Of(b.Store).NoteSample(t.Context(), b.Clock()))
		expectEqual(t, "hours", any(hash{"2026-11-21T06:00": first}), b.State()[":hours"])
		b.Step(time.Second)
		must(t, report.Of(b.Store).NoteSample(t.Context(), b.Clock()))
		all, err := report.OfQueue(queueOf(b)).Samples(t.Context())
		must(t, err)
		if len(all) != 2 || !all[0].At.Equal(fixture.SixOClock) || all[1].Values[report.MetricStarts]-all[0].Values[report.MetricStarts] != 2 {
			t.Errorf("expected two minutes with two starts between them, found %v", all)
		}
	})
}

func queueOf(b *bench) *store.Queue {
	return &store.Queue{Name: b.Keys.Queue, Parts: []*store.Store{b.Store}}
}

func TestAKeyOfAnotherTypeCostsAnHourNothingButItsOwnNumber(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.Seed(keys{":failing": "text", "-input": "text", ":stats": hash{"start": "7"}})
		must(t, report.Of(b.Store).NoteSample(t.Context(), b.Clock()))
		all, err := report.OfQueue(queueOf(b)).Samples(t.Context())
		must(t, err)
		failIf(t, len(all) != 1 || all[0].Values[report.MetricStarts] != 7, "expected the hour with its starts, found %v", all)
		b.Seed(keys{":hours": "text"})
		err = report.Of(b.Store).NoteSample(t.Context(), b.Clock())
		_, wrong := redis.WrongType(err)
		failIf(t, !wrong, "expected the type refused, found %v", err)
		all, err = report.OfQueue(queueOf(b)).Samples(t.Context())
		failIf(t, len(all) > 0 || err != nil, "expected no hours, found %v, %v", all, err)
	})
}

func TestAnHourOfSeveralPartsIsTheirSumAndOneThatAPartHasMissedIsLeftOut(t *testing.T) {
	b := fixture.NewBench(t, testkit.Miniredis(t))
	q := &store.Queue{Name: "{q}"}
	for i, hours := range []hash{{"2026-11-21T05:00": "start=5", "2026-11-21T06:00": "start=7 oldest_wait_s=9"}, {"2026-11-21T06:00": "start=1 oldest_wait_s=3", "other": "start=1"}} {
		part, err := store.New(b.Clients, store.Config{Queue: fmt.Sprintf("{q:%d}", i)})
		must(t, err)
		b.Redis.HSet(t.Context(), part.Keys.Hours, hours)
		q.Parts = append(q.Parts, part)
	}
	all, err := report.OfQueue(q).Samples(t.Context())
	must(t, err)
	want := report.Sample{At: fixture.SixOClock}
	want.Values[report.MetricStarts], want.Values[report.MetricWait] = 8, 9
	expectEqual(t, "hours", []report.Sample{want}, all)
}

// TestOnlyWhatWorkersTookWhileOthersWaitedIsTheirCapacity is a day of workers that take 60 attempts a minute: few come, nearly as many as they take, or
// more, so that a line grows from nine o'clock on and is gone at ten to eleven.
func TestOnlyWhatWorkersTookWhileOthersWaitedIsTheirCapacity(t *testing.T) {
	b := fixture.NewBench(t, testkit.Miniredis(t))
	const capacity = 60
	come := map[int]int{7: 55, 8: 57, 9: 110, 14: 58}
	midnight := b.Clock().Truncate(24 * time.Hour)
	b.Step(midnight.Sub(b.Clock()))
	came, taken := 0, 0
	for minute := range 24 * 60 {
		hour, now := minute/60, b.Clock()
		came += max(5, come[hour])
		line := came - taken
		b.Redis.Del(t.Context(), b.Keys.Input, b.Keys.Front)
		head := fmt.Sprintf("%d %d %[2]d", taken+1, now.UnixMilli())
		b.Seed(keys{":stats": hash{"start": strconv.Itoa(came), "success": strconv.Itoa(taken)}, "-input": slices.Repeat(list{"x"}, line), ":front": list{head}})
		must(t, report.Of(b.Store).NoteSample(t.Context(), now))
		taken = min(came, taken+capacity)
		if minute%10 == 9 {
			want := int64(0)
			if hour > 9 || hour == 9 && minute%60 > 5 {
				want = capacity
			}
			samples, err := report.OfQueue(queueOf(b)).Samples(t.Context())
			if got := report.Capacity(samples, now); got != want || err != nil {
				t.Errorf("%s: got %d, %v, want %d", now.Format("15:04"), got, err, want)
			}
		}
		b.Step(time.Minute)
	}
}
