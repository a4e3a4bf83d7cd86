package dashboard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func z(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

const oneFeed = `"policy":"feeds","labels":{"tenant":"t1"},"payload":{"input_url":"https://example.com/a.csv"}`

const feeds = "name: feeds\nrrule: FREQ=DAILY;BYHOUR=6\ntimeout: 10m\nretries: [1h]\n"

// liveFleet is a fleet of one failing model, whose daemons run by themselves.
func liveFleet(t *testing.T, config Config) *fleet {
	t.Helper()
	f := newFleet(t, config)
	f.policies(feeds)
	f.fail("tbl_1", oneFeed, `"reason":"HTTP 503"`)
	f.live()
	return f
}

func TestAModelIsRunOnItsPageWhichShowsWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	f := liveFleet(t, Config{By: "ann"})
	tab := browser.Open(t)
	tab.Go(f.url("models?l=status%3Dfailing"))
	tab.Follow("tbl_1")
	tab.Follow("Run now")
	tab.AwaitText("tbl_1")
	testkit.Eventually(t, "an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	f.Say(fixture.Result("success", "tbl_1", f.Attempt("tbl_1")))
	tab.Await("!document.querySelector('#model-state .bad')")
}

func TestAPolicyIsShownAsItWouldWork(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{ReadOnly: true})
	tab := browser.Open(t)
	tab.Go(f.url("policies"))
	tab.AwaitText("FREQ=DAILY;BYHOUR=6")
	tab.Follow("feeds")
	tab.AwaitText(`This policy is called "feeds"`)
	tab.Await("document.querySelector('.play-picture img').naturalWidth > 0")
	tab.Follow("Try a change")
	tab.AwaitText("Nothing is stored.")
	before := f.Server.Dump(t)

	tab.Fill("text", "name: mine\nrrule: FREQ=HOURLY\ntimeout: 90m\nretries: [5m]\n")
	tab.Await("document.querySelector('#playground-result img')?.alt && document.querySelector('#playground-result').innerText.includes('called \"mine\"')")
	tab.AwaitText("Seldom meant")
	tab.Fill("text", "retries: [5m]\ncolour: red\n")
	tab.AwaitText("your text line 2: colour: expected")
	tab.Fill("text", "- Refresh every hour\n- Allow 10 minutes for a response\n")
	tab.Await("document.querySelector('#playground-result img') && document.querySelector('#playground-result').innerText.includes('FREQ=HOURLY') || document.querySelector('#playground-result').innerText.includes('hour')")
	if diff := cmp.Diff(before["bigtables:policies"], f.Server.Dump(t)["bigtables:policies"]); diff != "" {
		t.Errorf("expected that nothing is stored (-before +after):\n%s", diff)
	}
}

func TestEachFormDoesWhatItSays(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) { c.By = "ann" })
	fleet := d.queue.Fleet()
	d.put(failingModel)
	d.start()
	d.answer("failure", "a", `"reason":"503"`)

	expect(t, d.submit("steering", "hold/put", "selector", "tenant=t1", "reason", "moves house", "end", "2h"), "keeps tenant=t1 from starting")
	holds, err := fleet.Holds(t.Context())
	if err != nil || len(holds) != 1 || holds[0].By != "ann" || holds[0].Reason != "moves house" || !holds[0].Until.Equal(d.Clock.Now().Add(2*time.Hour)) {
		t.Fatalf("expected a hold of two hours by ann, found %+v, %v", holds, err)
	}
	expect(t, d.submit("steering", "hold/release"), "is released")
	if holds, err := fleet.Holds(t.Context()); err != nil || len(holds) != 0 && !holds[0].Released {
		t.Errorf("expected no hold, found %+v, %v", holds, err)
	}
	expect(t, d.submit("steering", "hold/put", "reason", "all"), "expected one such as tenant=t1, or the mark that all models are meant")
	expect(t, d.submit("steering", "hold/put", "reason", "all", "all", "yes", "cancel", "yes"), "keeps all models from starting. The bulk")

	const key = "host=example.com"
	expect(t, d.submit("steering", "circuit/open", "key", key, "reason", "their proxy", "probe", "5m"), "The circuit "+key+" is open, for 5m at least.")
	if circuits, err := fleet.Circuits(t.Context(), key); err != nil || !circuits[0].Open() || circuits[0].By != "ann" || circuits[0].Reason != "their proxy" {
		t.Errorf("expected an open circuit, found %+v, %v", circuits, err)
	}
	expect(t, d.submit("steering?key=host%3Dexample.com", "circuit/close"), "its models start again")
	if circuits, err := fleet.Circuits(t.Context(), key); err != nil || circuits[0].Open() {
		t.Errorf("expected a closed circuit, found %+v, %v", circuits, err)
	}
	expect(t, d.submit("steering", "limit/set", "key", key, "running", "2"), "The limit of "+key+" is set.", "at most 2 at a time")
	expect(t, d.submit("steering?key=host%3Dexample.com", "limit/rm"), "is forgotten")
	expectNone(t, d.page(home+"steering"), "at most 2 at a time")

	expect(t, d.submit("failures", "failures/run", "rate", "1/s"), "runs all models that fail by")
	expect(t, d.submit("steering", "bulk/cancel"), "is cancelled")

	d.Say("\x01 no JSON \xff")
	d.apply()
	expect(t, d.page(home+"rejected"), `\u{1} no JSON \xff`)
	expect(t, d.submit("rejected", "rejected/drop"), "is forgotten")
	d.Command(`{"type":"nonsense","uid":"tbl_1"}`)
	d.apply()
	before := d.List(d.Store.Keys.Rejected)
	d.Clock.Turn(time.Minute)
	expect(t, d.submit("rejected", "rejected/requeue"), "is requeued")
	d.apply()
	if after := d.List(d.Store.Keys.Rejected); len(before) != 1 || len(after) != 1 || after[0] == before[0] {
		t.Errorf("expected the one message rejected again, found %q after %q", after, before)
	}
}
