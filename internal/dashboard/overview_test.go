package dashboard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestTheOverviewTellsWhatTheQueueHoldsWhyItFailsAndWhoLives(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.put(`"uid":"a","refresh":"now","policy":{"timeout":"1h","retries":["1h"],"fresh_within":"2h"}`, `"uid":"b","rrule":"every day at 6 AM"`, `"uid":"c"`)
		if err := takeSample(t.Context(), d.dashboard.shown.sites[0]); err != nil {
			t.Fatal(err)
		}
		d.start()
		d.answer("failure", "a", `"reason":"503 Service Unavailable"`, `"error_type":"http_503"`)
		d.Clock.Turn(time.Minute)
		if err := takeSample(t.Context(), d.dashboard.shown.sites[0]); err != nil {
			t.Fatal(err)
		}
		page := d.page(home)
		expect(t, page, "<h1>Overview</h1>", `sort=failing">1</a>`, "http_503: 503 Service Unavailable", `models?l=error%3D`,
			"Starts: 0 in the last full minute, 2 in the last hour.", "in the last hour: 0 succeeded, 1 failed, 0 timed out.", ">p1</td>")
		expect(t, d.page(home+"?x=1"), "<h1>Overview</h1>")
		d.Clock.Turn(time.Minute)
		expect(t, d.page(home), "Starts: 2 in the last full minute")
		d.Clock.Turn(2 * time.Hour)
		expect(t, d.page(home), "the longest waits for", "Starts: 0 in the last full minute, 0 in the last hour.")
	})
}

func TestTheOverviewOfAnEmptyQueueIsWhole(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	expect(t, d.page(home), "No model is failing.", "none is known", "Starts: 0 in the last full minute")
}

func TestRatesAreDifferencesOfSamplesInTheirMinutes(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 30, 40, 0, time.UTC)
	at := func(ago time.Duration, starts int64) sample {
		return sample{at: now.Add(-ago), counted: [len(counted)]int64{starts}}
	}
	for name, test := range map[string]struct {
		samples []sample
		want    map[int]int64 // minute of the graph to count
	}{
		"none":                     {nil, nil},
		"one tells no rate":        {[]sample{at(0, 7)}, nil},
		"this minute":              {[]sample{at(20*time.Second, 7), at(0, 9)}, map[int]int64{59: 2}},
		"the minute of the later":  {[]sample{at(time.Minute, 7), at(30*time.Second, 9), at(0, 10)}, map[int]int64{59: 3}},
		"the last full minute":     {[]sample{at(2*time.Minute, 0), at(time.Minute, 5)}, map[int]int64{58: 5}},
		"before all":               {[]sample{at(3*time.Hour, 0), at(2*time.Hour, 5), at(0, 6)}, map[int]int64{59: 1}},
		"a counter that was reset": {[]sample{at(40*time.Second, 50), at(20*time.Second, 1), at(0, 3)}, map[int]int64{59: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[int]int64
			for minute, count := range rates(test.samples, now)[0] {
				if count != 0 {
					if got == nil {
						got = map[int]int64{}
					}
					got[minute] = count
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestSamplesOfAnHourAreKept(t *testing.T) {
	var s sampler
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for i := range 200 {
		s.add(sample{at: start.Add(time.Duration(i) * time.Minute)})
	}
	if all := s.all(); len(all) != 61 || !all[0].at.Equal(start.Add(139*time.Minute)) {
		t.Errorf("expected those of the last hour, found %d from %s", len(all), all[0].at)
	}
	s.add(sample{at: start})
	if all := s.all(); len(all) != 1 {
		t.Errorf("expected only the sample behind a clock that was set back, found %d", len(all))
	}
}

func TestBarsStandOnTheBaseAndAreScaledTogether(t *testing.T) {
	var low, high perMinute
	low[10], high[10], low[59] = 3, 1, 2
	want := []bar{
		{"success", "101", "25", "8", "75"}, {"failure", "101", "0", "8", "25"}, {"success", "591", "50", "8", "50"},
	}
	if diff := cmp.Diff(want, bars([]string{"success", "failure"}, []perMinute{low, high})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestALineHasAPointForEachMinuteThatIsKnown(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 30, 40, 0, time.UTC)
	points, most := line([]sample{{at: now.Add(-2 * time.Minute), line: 4}, {at: now.Add(-time.Second), line: 8}, {at: now, line: 2}}, now,
		func(s sample) float64 { return float64(s.line) })
	if points != "575,51 595,2" || most != 8 {
		t.Errorf("expected the greatest of each minute, found %q and %g", points, most)
	}
}
