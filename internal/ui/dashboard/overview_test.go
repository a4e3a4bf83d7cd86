package dashboard

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestTheOverviewTellsWhatTheQueueHoldsWhyItFailsAndWhoLives(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.put(`"uid":"a","refresh":"now","policy":{"timeout":"1h","retries":["1h"],"fresh_within":"2h"}`, `"uid":"b","rrule":"every day at 6 AM"`, `"uid":"c"`)
		d.start()
		d.answer("failure", "a", `"reason":"503 Service Unavailable"`, `"error_type":"http_503"`)
		d.Clock.Turn(time.Minute)
		page := d.page(home)
		expect(t, page, "<h1>Overview</h1>", `sort=failing">1</a>`, "http_503: 503 Service Unavailable", `models?l=error%3D`,
			"2 started in the last hour.", "0 succeeded, 1 failed, 0 timed out in the last hour.", `<th scope="row">poller</th><td class="number">1</td>`)
		expect(t, d.page(home+"?x=1"), "<h1>Overview</h1>")
		d.Clock.Turn(time.Minute)
		d.Clock.Turn(2 * time.Hour)
		expect(t, d.page(home), "The oldest is due ", "0 started in the last hour.")
	})
}

func TestTheOverviewBeginsWithWhatIsStopped(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.put(`"uid":"a","rrule":"every day at 6 AM","policy":{"fresh_within":"30d"}`, `"uid":"b","rrule":"every day at 6 AM"`)
		d.start()                                      // which gives signs of life
		expect(t, d.page(home), "Nothing is stopped.") // the new one has not been tried
		d.press(home+"hold/put", "all", "yes", "reason", "deploy <b>", "id", "h1")
		d.press(home+"circuit/open", "key", "host=a.example", "reason", "down", "probe", "5m")
		d.press(home+"model/disable", "uid", "b")
		for range 3 { // no model waits for the circuit, and a dispatcher looks at it
			page := d.page(home)
			expect(t, page, `<li><a href="`+home+`steering">All models are held by dashboard since `, `(hold h1). Reason: &#34;deploy &lt;b&gt;&#34;. 0 models wait for it. Release it as soon as its reason is gone.</a>`,
				`<li><a href="`+home+`steering?key=host%3Da.example">The circuit of host=a.example is open. It was opened by dashboard at `, `Reason: &#34;down&#34;. 0 models wait for it. Mend the cause; it closes when a probe succeeds.</a>`,
				`<li><a href="`+home+`models?l=status%3Ddisabled">1 model is disabled. Mend the cause, then save or enable what is disabled.</a>`)
			first := strings.Index(page, "What is stopped")
			failIf(t, first < 0 || first > strings.Index(page, "h-models"), "expected the page to begin with it")
			expect(t, d.page(home+"steering"), "host=a.example <span", "down")
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
		d.answer("failure", "a")
		expect(t, d.page(home), `<li><a href="`+home+`models?l=status%3Dnever">1 model has never succeeded yet. Some may be new. Look at those that have failed.</a></li>`)
		d.press(home+"model/run", "uid", "a")
		d.start()
		d.answer("success", "a")
		expect(t, d.page(home), "Nothing is stopped.")
		gates := d.Scores(d.Store.Keys.Blockers)
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
		expect(t, d.page(home), "No dispatcher is running.", `<td class="number bad">0</td>`, `<th scope="row">worker</th><td class="number">–</td>`, `<th scope="row">poller</th><td class="number">1</td>`)
		must(t, check.Only(d.dispatcher.RunOnce(t.Context())))
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
	expect(t, d.page(home), "No model is failing.", `<a href="/q/bigtables/running">Processes</a>`, "No dispatcher is running.", "No poller is running.", "0 started in the last hour.", "59 columns are not known.")
}

func TestTheOverviewTellsWhatIsWrongThenNumbersThatAddUpThenCharts(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"a","refresh":"now"`, `"uid":"b","rrule":"every day at 6 AM"`, `"uid":"c","rrule":"every day at 6 AM"`, `"uid":"done","refresh":"now"`)
	d.start()
	d.answer("success", "done")
	d.press(home+"model/disable", "uid", "b")
	page := d.page(home)
	tiles := map[string]int{}
	sum := 0
	for _, tile := range regexp.MustCompile(`<dt>([a-z ]+)</dt><dd[^>]*>(?:<a [^>]*>)?(\d+)<`).FindAllStringSubmatch(page, 5) {
		tiles[tile[1]] = check.Got(strconv.Atoi(tile[2]))(t)
		sum += tiles[tile[1]]
	}
	equal(t, map[string]int{"running": 1, "due now": 0, "waiting": 1, "parked": 0, "disabled": 1}, tiles)
	expect(t, page, fmt.Sprintf(`<h2 id="h-models">Models: %d</h2>`, sum), `models?l=status%3Dfinished&amp;count=yes">finished models</a>, which no index holds.`)
	places := []int{}
	for _, part := range []string{"What is stopped", "Failing by cause", `id="h-models"`, "Period of the charts"} {
		places = append(places, strings.Index(page, part))
	}
	failIf(t, places[0] < 0 || !slices.IsSorted(places), "expected what is wrong, causes, numbers and charts in this order, found them at %v", places)
	expect(t, d.page(home+"models?l=status%3Dfinished"), ">done</a>")
}
