package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit"
)

func TestWhatIsCountedBetweenTwoSamplesCountsInTheSlotOfTheFirstOrIsNotKnown(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 30, 40, 0, time.UTC)
	at := func(ago time.Duration, starts int64) report.Sample {
		return report.Sample{At: now.Add(-ago), Values: [report.Metrics]int64{starts}}
	}
	hour := 40*time.Second + 30*time.Minute
	for name, test := range map[string]struct {
		samples []report.Sample
		want    map[int]int64 // slot of 24 hours to count; others are not known
	}{
		"none":                      {nil, nil},
		"one":                       {[]report.Sample{at(0, 7)}, map[int]int64{23: 0}},
		"the hour in hand":          {[]report.Sample{at(hour, 7), at(0, 9)}, map[int]int64{23: 2}},
		"two hours":                 {[]report.Sample{at(hour+time.Hour, 3), at(hour, 7), at(0, 9)}, map[int]int64{22: 4, 23: 2}},
		"an hour that is missing":   {[]report.Sample{at(hour+2*time.Hour, 3), at(hour, 7), at(0, 9)}, map[int]int64{23: 2}},
		"counters that were reset":  {[]report.Sample{at(hour+2*time.Hour, 3), at(hour+time.Hour, 70), at(hour, 0), at(0, 9)}, map[int]int64{21: 67, 23: 9}},
		"reset within a slot":       {[]report.Sample{at(3*time.Minute, 50), at(2*time.Minute, 1), at(0, 3)}, nil},
		"before all, and to come":   {[]report.Sample{at(40*time.Hour, 3), at(0, 9), at(-2*time.Hour, 70)}, nil},
		"the first hour of the day": {[]report.Sample{at(hour+23*time.Hour, 1), at(hour+22*time.Hour, 5)}, map[int]int64{0: 4, 1: 0}},
	} {
		slots := periods[1].fill(test.samples, now)
		for i := range slots {
			want, known := test.want[i]
			if !known {
				want = -1
			}
			got := slots[i].values[report.MetricStarts]
			failIf(t, got != want, "%s: slot %d: expected %d, found %d", name, i, want, got)
		}
	}
}

func TestNoSumIsNegativeAndNoneIsLargerThanWhatWasCounted(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := &periods[rapid.IntRange(0, 3).Draw(r, "period")]
		now, counted, all := time.Date(2026, 11, 21, 7, 30, 40, 0, time.UTC), int64(0), int64(0)
		var samples []report.Sample
		for at := now.Add(-time.Duration(p.slots) * p.step); !at.After(now); at = at.Add(time.Duration(rapid.Int64Range(1, int64(2*p.step)).Draw(r, "gap"))) {
			if rapid.IntRange(0, 9).Draw(r, "reset") == 0 {
				counted = rapid.Int64Range(0, counted).Draw(r, "restored")
			}
			more := rapid.Int64Range(0, 1000).Draw(r, "more")
			counted, all = counted+more, all+more
			samples = append(samples, report.Sample{At: at, Values: [report.Metrics]int64{counted}})
		}
		slots, sum := p.fill(samples, now), int64(0)
		for i := range slots {
			value := slots[i].values[report.MetricStarts]
			if value < -1 {
				r.Fatalf("slot %d: %d", i, value)
			}
			sum += max(0, value)
		}
		if sum > all {
			r.Fatalf("%d in all, of %d", sum, all)
		}
	})
}

func TestAnAxisHasTwoToFourRoundMarks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		most, waits := rapid.Int64Range(0, 1e12).Draw(r, "most"), rapid.Bool().Draw(r, "waits")
		g := graph{Legend: []key{{"start", "started"}}}
		m := map[bool]report.Metric{true: report.MetricWait}[waits]
		slots := []slot{{from: time.Unix(0, 0)}, {from: time.Unix(60, 0)}}
		slots[0].values[m], slots[1].values[m] = most, -1
		g.draw(slots, time.Minute, time.UTC, 0, m)
		if len(g.Y) < 2 || len(g.Y) > 4 {
			r.Fatalf("%d: %v", most, g.Y)
		}
		for _, bar := range g.Columns[0].Bars {
			if bar.Y < "0" || strings.HasPrefix(bar.Y, "-") {
				r.Fatalf("%d: a bar above the top, at %s", most, bar.Y)
			}
		}
		if len(g.Columns[1].Bars) > 0 || !strings.HasSuffix(g.Columns[1].Title, "not known") {
			r.Fatalf("%v", g.Columns[1])
		}
	})
}

func TestTheChartsOfDaysAreThoseThatDispatchersHaveNotedAndSurviveTheDashboard(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		now := d.Clock.Now()
		for day := range 91 {
			at := now.AddDate(0, 0, -day).Format(time.DateOnly) + "T00:00"
			must(t, d.Redis.HSet(t.Context(), d.Store.Keys.Hours, at, fmt.Sprintf("start=%d fresh=5", 100_000-1000*day)).Err())
		}
		d.Redis.HSet(t.Context(), d.Store.Keys.Stats, "start", 100_007)
		page := d.page(home + "?period=90d")
		expect(t, page, "89,007 started in the last 90 days.", "<title>Fri 20 Nov: 1,000 started</title>", `<th scope="row" class="when">Sat 21 Nov</th><td class="number">7</td>`, `aria-current="true">90 days</a>`)
		expectNone(t, page, "not known yet", "style=")
		expect(t, d.page(home+"?period=7d"), "55 columns are not known.")
		status, text := d.status(home + "?period=year")
		failIf(t, status != 400 || !strings.Contains(text, "24h, 7d, 90d or none"), "expected the period refused, found %d", status)
	})
}

func TestPoliciesAreListedThoughTheirModelsCannotBeCounted(t *testing.T) {
	d := sit(t, testkit.Redis(t), nil)
	d.put(`"uid":"a"`)
	must(t, d.Redis.Set(t.Context(), d.Store.Keys.Model("b"), "no hash", 0).Err())
	must(t, d.Redis.Set(t.Context(), d.Store.Keys.Disabled, "no set", 0).Err())
	expect(t, d.page(home+"policies"), ">default</a>")
}
