package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

var commandsProcessed = regexp.MustCompile(`total_commands_processed:(\d+)`)

// commands is how many commands Redis has processed, those inside scripts included.
func (d *visitor) commands() int {
	d.t.Helper()
	info := check.Got(d.Redis.Info(d.t.Context(), "stats").Result())(d.t)
	return check.Got(strconv.Atoi(commandsProcessed.FindStringSubmatch(info)[1]))(d.t)
}

// countTicks tells of each tick of the open pages, from the first on.
func (d *visitor) countTicks() <-chan struct{} {
	ticks, site := make(chan struct{}), d.dashboard.sites.list[0]
	version := site.version
	site.version = func(ctx context.Context) (string, error) {
		select {
		case ticks <- struct{}{}:
		case <-ctx.Done():
		}
		return version(ctx)
	}
	return ticks
}

func TestTenOpenPagesOfAQueueInWhichNothingHappensCostFiftyCommandsASecond(t *testing.T) {
	d := sit(t, testkit.Redis(t), func(c *Config) { c.Tick, c.Clock = time.Microsecond, func() time.Time { return time.Time{} } }) // so that no reading takes long
	var models []string
	for i := range 300 {
		models = append(models, fmt.Sprintf(`"uid":"m%d","labels":{"tenant":"t%d"},"rrule":"every day at 6 AM"`, i, i%9))
	}
	d.put(models...)
	ticks, site := d.countTicks(), d.dashboard.sites.list[0]
	cost := func(do func()) int { // in commands, but for that which counts them
		before := d.commands()
		do()
		return d.commands() - before - 1
	}
	probe := cost(func() { must(t, check.Only(report.OfQueue(site.queue).Version(t.Context()))) })
	var pages []*viewing
	read := 0
	for i := range 10 {
		filter := "tenant=t" + strconv.Itoa(i)
		if i == 9 {
			filter = "" // which picks most
		}
		read += cost(func() {
			must(t, d.dashboard.fragments(t.Context(), site, &modelsPage, session{}, url.Values{"l": {filter}}).err)
		})
		pages = append(pages, d.view(home+"live/models?l="+url.QueryEscape(filter)))
	}
	check.Await(t, ticks, "the first tick")
	for _, page := range pages {
		page.await("models-list", "m")
	}
	const beats, tick = 3, 2.0 // seconds
	spent := cost(func() {
		for range beats * beatTicks {
			check.Await(t, ticks, "a tick")
		}
	})
	most := (beats*beatTicks+1)*probe + (beats+1)*read
	failIf(t, spent > most, "expected pages read once a beat, which is %d commands, found %d", most, spent)
	second := float64(probe)/tick + float64(read)/(tick*beatTicks)
	t.Logf("%.0f commands a second: %d a tick, %d for all pages", second, probe, read)
	failIf(t, second > 50, "expected at most 50 commands a second, found %.0f", second)
}

func TestAnOpenPageIsNotSentAgainAsTimeGoesBy(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.Say("nonsense")
	d.apply()
	ticks := d.countTicks()
	v := d.view(home + "live/rejected")
	check.Await(t, ticks, "the first tick")
	v.await("rejected-list", "just now")
	d.Clock.Turn(time.Hour)
	for range 3 * beatTicks { // within which it is read again
		check.Await(t, ticks, "a tick")
	}
	d.Say("more nonsense")
	d.apply()
	check.Await(t, ticks, "a tick")
	check.Await(t, ticks, "the end of that tick")
	one := check.Await(t, v.events, "the next change")
	expect(t, one.HTML, "1h ago", "more nonsense")
}

func TestEachChangeThatAPageShowsGivesTheQueueAnotherVersion(t *testing.T) {
	d := sit(t, testkit.Redis(t), nil)
	fleet, now := flow.OfQueue(d.queue), d.Clock.Now()
	d.put(failingModel)
	version := func() string { return check.Got(report.OfQueue(d.queue).Version(t.Context()))(t) }
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"a model is saved", func() { d.put(`"uid":"b","rrule":"every day at 6 AM"`) }},
		{"it is saved with another label", func() { d.put(`"uid":"b","rrule":"every day at 6 AM","labels":{"x":"y"}`) }},
		{"attempts start", func() { d.start() }},
		{"a worker tells its progress", func() {
			d.Say(fixture.Result("user_friendly_status", "a", d.Attempt("a"), `"status":"half","progress":50`))
			d.apply()
		}},
		{"it goes on", func() {
			d.Say(fixture.Result("user_friendly_status", "a", d.Attempt("a"), `"status":"most","progress":80`))
			d.apply()
		}},
		{"an attempt fails", func() { d.answer("failure", "a", `"reason":"503"`) }},
		{"a message is rejected", func() { d.Say("nonsense"); d.apply() }},
		{"a hold is put", func() { must(t, fleet.PutHold(t.Context(), &model.Hold{ID: "h", Since: now, Reason: "x"})) }},
		{"it is put with another reason", func() { must(t, fleet.PutHold(t.Context(), &model.Hold{ID: "h", Since: now, Reason: "y"})) }},
		{"a limit is set", func() { must(t, fleet.PutLimit(t.Context(), &model.Limit{Name: "host=a", Running: 2, Since: now})) }},
		{"a limit is changed", func() { must(t, fleet.PutLimit(t.Context(), &model.Limit{Name: "host=a", Running: 3, Since: now})) }},
		{"a circuit is opened", func() { must(t, check.Only(fleet.OpenCircuit(t.Context(), "host=a", "ann", "x", time.Minute))) }},
		{"a circuit is closed", func() { must(t, check.Only(fleet.CloseCircuit(t.Context(), "host=a", "ann"))) }},
		{"a bulk begins", func() { d.submit("failures", "failures/run") }},
		{"it is cancelled", func() { d.submit("steering", "bulk/cancel") }},
		{"a message waits", func() { d.Say("nonsense") }},
		{"a dispatcher falls silent", func() { d.Clock.Turn(2 * model.LongestSilence) }},
	} {
		before := version()
		step.do()
		failIf(t, version() == before, "%s: expected another version, found\n%s", step.name, strings.TrimSpace(before))
		before = version()
		failIf(t, version() != before, "%s: expected the same version as long as nothing happens", step.name)
	}
}
