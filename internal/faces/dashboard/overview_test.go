package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestTheOverviewTellsWhatTheQueueHoldsWhyItFailsAndWhoLives(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.put(`"uid":"a","refresh":"now","policy":{"timeout":"1h","retries":["1h"],"fresh_within":"2h"}`, `"uid":"b","rrule":"every day at 6 AM"`, `"uid":"c"`)
		must(t, takeSample(t.Context(), d.dashboard.sites.list[0]))
		d.start()
		d.answer("failure", "a", `"reason":"503 Service Unavailable"`, `"error_type":"http_503"`)
		d.Clock.Turn(time.Minute)
		must(t, takeSample(t.Context(), d.dashboard.sites.list[0]))
		page := d.page(home)
		expect(t, page, "<h1>Overview</h1>", `sort=failing">1</a>`, "http_503: 503 Service Unavailable", `models?l=error%3D`,
			"Starts: 0 in the last full minute, 2 in the last hour.", "in the last hour: 0 succeeded, 1 failed, 0 timed out.", ">poller-1</td>")
		expect(t, d.page(home+"?x=1"), "<h1>Overview</h1>")
		d.Clock.Turn(time.Minute)
		expect(t, d.page(home), "Starts: 2 in the last full minute")
		d.Clock.Turn(2 * time.Hour)
		expect(t, d.page(home), "the longest waits for", "Starts: 0 in the last full minute, 0 in the last hour.")
	})
}

func TestTheOverviewBeginsWithWhatIsStopped(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.put(`"uid":"a","rrule":"every day at 6 AM","policy":{"fresh_within":"30d"}`, `"uid":"b","rrule":"every day at 6 AM"`)
		d.start() // which gives signs of life
		expect(t, d.page(home), `<li><a href="`+home+`models?l=status%3Dnever">1 model has never succeeded yet.</a></li>`)
		d.press(home+"hold/put", "all", "yes", "reason", "deploy <b>", "id", "h1")
		d.press(home+"circuit/open", "key", "host=a.example", "reason", "down", "probe", "5m")
		d.press(home+"model/disable", "uid", "b")
		for range 3 { // no model waits for the circuit, and a dispatcher looks at it
			page := d.page(home)
			expect(t, page, `<li><a href="`+home+`steering">All models are held by dashboard since `, `UTC, until it is released: deploy &lt;b&gt; (hold h1 of all models); 0 models wait for it.</a>`,
				`<li><a href="`+home+`steering?key=host%3Da.example">The circuit of host=a.example is open since `, `by dashboard: down; 0 models wait for it.</a>`,
				`<li><a href="`+home+`models?l=status%3Ddisabled">1 model is disabled.</a>`)
			first := strings.Index(page, "What is stopped")
			failIf(t, first < 0 || first > strings.Index(page, "As of "), "expected the page to begin with it")
			expect(t, d.page(home+"steering"), "host=a.example <span", "down", `href="/q/bigtables/steering?keys=all">All keys`)
			expect(t, d.page(home+"steering?keys=all"), `href="/q/bigtables/steering">Only what models wait for`)
			d.Clock.Turn(10 * time.Minute)
			d.start()
			d.put(`"uid":"b","rrule":"every day at 6 AM"`) // the poller lives
		}
		d.press(home+"circuit/close", "key", "host=a.example")
		d.press(home+"hold/release", "id", "h1")
		d.press(home+"model/enable", "uid", "b")
		for range 3 {
			d.start()
		}
		d.press(home+"model/run", "uid", "a")
		d.start()
		d.answer("success", "a")
		expect(t, d.page(home), "Nothing is stopped.")
		gates := d.Scores(d.Store.Keys.Gates)
		failIf(t, len(gates) > 0, "expected no gate that is looked at for ever, found %v", gates)
	})
}

// Foreign workers send no heartbeat: while they take attempts, nobody is missed.
func TestTheOverviewMissesWhoIsMissedOnly(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.put(`"uid":"a","refresh":"now"`, `"uid":"b","refresh":"now"`)
		d.start()
		d.Take()
		d.Clock.Turn(2 * time.Minute)
		d.put(`"uid":"c","refresh":"now"`)
		expect(t, d.page(home), "No dispatcher lives.", `<td class="number bad">0</td>`, `<th scope="row">worker</th><td class="number">–</td>`, `<th scope="row">poller</th><td class="number">1</td>`)
		must(t, testkit.Only(d.dispatcher.RunOnce(t.Context())))
		d.Clock.Turn(2 * time.Minute)
		expect(t, d.page(home), `<th scope="row">worker</th><td class="number">–</td>`) // somebody holds two
		d.answer("success", "a")
		d.answer("success", "b")
		d.Clock.Turn(2 * time.Minute)
		expect(t, d.page(home), "Attempts wait, and no worker takes any.", `<th scope="row">worker</th><td class="number bad">0</td>`)
	})
}

func TestTheOverviewOfAnEmptyQueueIsWhole(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	expect(t, d.page(home), "No model is failing.", "none sends a heartbeat", "No dispatcher lives.", "No poller lives.", "Starts: 0 in the last full minute")
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
		"the first minute":         {[]sample{at(60*time.Minute, 0), at(59*time.Minute, 5)}, map[int]int64{0: 5}},
		"one that came meanwhile":  {[]sample{at(0, 5), at(-time.Minute, 9)}, nil},
		"before all":               {[]sample{at(3*time.Hour, 0), at(2*time.Hour, 5), at(0, 6)}, map[int]int64{59: 1}},
		"a counter that was reset": {[]sample{at(40*time.Second, 50), at(20*time.Second, 1), at(0, 3)}, map[int]int64{59: 2}},
	} {
		var want perMinute
		for minute, count := range test.want {
			want[minute] = count
		}
		diff := cmp.Diff(want, rates(test.samples, now)[0])
		failIf(t, diff != "", "%s: -want +got\n%s", name, diff)
	}
}

func TestSamplesOfAnHourAreKept(t *testing.T) {
	var s sampler
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for i := range 200 {
		s.add(sample{at: start.Add(time.Duration(i) * time.Minute)})
	}
	all := s.all()
	failIf(t, len(all) != 61 || !all[0].at.Equal(start.Add(139*time.Minute)), "expected those of the last hour, found %d from %s", len(all), all[0].at)
	s.add(sample{at: start})
	all = s.all()
	failIf(t, len(all) != 1, "expected only the sample behind a clock that was set back, found %d", len(all))
}

func TestBarsStandOnTheBaseAndAreScaledTogether(t *testing.T) {
	var low, high perMinute
	low[10], high[10], low[59] = 3, 1, 2
	want := []bar{
		{"success", "101", "25", "8", "75"}, {"failure", "101", "0", "8", "25"}, {"success", "591", "50", "8", "50"},
	}
	var g graph
	g.stack([]string{"success", "failure"}, low, high)
	diff := cmp.Diff(want, g.Bars)
	failIf(t, diff != "" || g.Most != "4", "expected 4 at the top, found %s; -want +got\n%s", g.Most, diff)
}

func TestALineHasAPointForEachMinuteThatIsKnown(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 30, 40, 0, time.UTC)
	points, most := line([]sample{
		{at: now.Add(-time.Hour), line: 9}, {at: now.Add(-59 * time.Minute), line: 1}, {at: now.Add(-time.Second), line: 8}, {at: now, line: 2}, {at: now.Add(time.Minute), line: 9},
	}, now, func(s sample) float64 { return float64(s.line) })
	failIf(t, points != "5,87.8 595,2" || most != 8, "expected the greatest of each minute, found %q and %g", points, most)
}
