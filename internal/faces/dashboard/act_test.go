package dashboard

import (
	"strings"
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

// steered is a fleet of one failing model, whose daemons run by themselves.
func steered(t *testing.T, config Config) *fleet {
	t.Helper()
	f := newFleet(t, config)
	f.policies(feeds)
	f.fail("tbl_1", oneFeed, `"reason":"HTTP 503"`)
	f.live()
	return f
}

func TestAModelIsRunOnItsPageWhichShowsWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	f := steered(t, Config{By: "ann"})
	tab := browser.Open(t)
	tab.Go(f.url("models?l=status%3Dfailing"))
	tab.Follow("tbl_1")
	tab.Follow("Run now")
	tab.AwaitText("tbl_1")
	testkit.Eventually(t, "an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	f.Say(fixture.Result("success", "tbl_1", f.Attempt("tbl_1")))
	tab.Await("!document.querySelector('#model-state .bad')")
}

func TestAModelIsDisabledEnabledAndHeldOnItsPage(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{By: "ann"})
	tab := browser.Open(t)
	tab.Go(f.url("model?uid=tbl_1"))
	tab.Fill("reason", "the owner asked for it")
	tab.Follow("Disable until it is enabled")
	tab.AwaitText("tbl_1 is disabled until somebody enables it.")
	if got := f.Model("tbl_1"); got["refresh_disabled_until_update"] != "1" || got["refresh_disabled_user_friendly_reason"] != "the owner asked for it" || got["refresh_disabled_who"] != "ann" {
		t.Errorf("expected a model that ann has disabled, found %v", got)
	}
	tab.Follow("Enable")
	if got := f.Model("tbl_1")["refresh_disabled_until_update"]; got != "" {
		t.Errorf("expected an enabled model, found %q", got)
	}
	tab.Fill("hold-reason", "moves house")
	tab.Follow("Hold")
	tab.AwaitText("tbl_1 is held")
	if holds, err := f.queue.Fleet().Holds(t.Context()); err != nil || len(holds) != 1 || holds[0].Selector.String() != "uid=tbl_1" || holds[0].Reason != "moves house" {
		t.Errorf("expected a hold of tbl_1, found %+v, %v", holds, err)
	}
	tab.Follow("form[action$='model/release'] button")
	if holds, err := f.queue.Fleet().Holds(t.Context()); err != nil || len(holds) != 0 && !holds[0].Released {
		t.Errorf("expected no hold, found %+v, %v", holds, err)
	}
}

func TestWhatFailsByOneCauseIsRunByItsButton(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("failures"))
	tab.AwaitText("HTTP 503")
	tab.Press("Run these")
	tab.Follow("Run 1 now")
	tab.AwaitText("runs all models that fail by")
	testkit.Eventually(t, "an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	tab.AwaitText("1 done")
	tab.Go(f.url("failures"))
	tab.Follow("Show them")
	tab.AwaitText("tbl_1")
	f.Say(fixture.Result("success", "tbl_1", f.Attempt("tbl_1")))
	tab.Go(f.url("failures"))
	tab.AwaitText("No model is failing.")
	tab.AwaitText("Ended within a day")
}

func TestTheFleetIsSteeredOnOnePage(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{By: "ann"})
	tab := browser.Open(t)
	tab.Go(f.url("steering"))

	tab.Press("New hold")
	tab.Fill("selector", "tenant=t1")
	tab.Fill("reason", "moves house")
	tab.Fill("end", "2h")
	tab.Follow("Hold")
	tab.AwaitText("keeps tenant=t1 from starting")
	holds, err := f.queue.Fleet().Holds(t.Context())
	if err != nil || len(holds) != 1 || holds[0].By != "ann" || !holds[0].Until.Equal(f.Clock.Now().Add(2*time.Hour)) {
		t.Fatalf("expected a hold of two hours by ann, found %+v, %v", holds, err)
	}
	tab.Follow("Release " + holds[0].ID)
	tab.AwaitText("is released")
	tab.AwaitText("Nothing is held.")

	tab.Press("New hold")
	tab.Fill("reason", "all of it")
	tab.Follow("Hold")
	tab.AwaitText("expected one such as tenant=t1, or the mark that all models are meant")

	tab.Press("Open a circuit")
	tab.Fill("circuit-key", "host=example.com")
	tab.Fill("circuit-reason", "their proxy")
	tab.Follow("form.stack[action$='circuit/open'] button")
	tab.AwaitText("The circuit host=example.com is open")
	if circuits, err := f.queue.Fleet().Circuits(t.Context(), "host=example.com"); err != nil || !circuits[0].Open() || circuits[0].By != "ann" || circuits[0].Reason != "their proxy" {
		t.Errorf("expected an open circuit, found %+v, %v", circuits, err)
	}
	tab.Press("Close")
	tab.Follow("Close now: host=example.com")
	tab.AwaitText("its models start again")
	if circuits, err := f.queue.Fleet().Circuits(t.Context(), "host=example.com"); err != nil || circuits[0].Open() {
		t.Errorf("expected a closed circuit, found %+v, %v", circuits, err)
	}

	tab.Press("Set a limit")
	tab.Fill("limit-key", "host=example.com")
	tab.Fill("running", "2")
	tab.Follow("form.stack[action$='limit/set'] button")
	tab.AwaitText("at most 2 at a time")
	tab.Press("Remove")
	tab.Follow("Remove now: host=example.com")
	tab.AwaitText("is forgotten")
	tab.AwaitText("not set here")

	// The policy of the fleet has just been stored: its models would be planned anew, but the clock stands still.
	const id = "replan-feeds"
	tab.Follow("Cancel " + id)
	tab.AwaitText("is cancelled")
	if bulk, found, err := f.queue.Fleet().FindBulk(t.Context(), id); err != nil || !found || !bulk.Cancelled {
		t.Errorf("expected a cancelled bulk, found %+v, %v", bulk, err)
	}
}

func TestARejectedMessageIsRequeuedOrDroppedOnItsPage(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{})
	tab := browser.Open(t)
	f.Command(`{"type":"nonsense","uid":"tbl_1"}`, "\x01 no JSON \xff")
	testkit.Eventually(t, "two rejected messages", func() bool { return len(f.List(f.Store.Keys.Rejected)) == 2 })
	tab.Go(f.url("rejected"))
	tab.AwaitText(`\u{1} no JSON \xff`)
	tab.Press("section:first-of-type summary")
	tab.Follow("section:first-of-type .danger")
	tab.AwaitText("is forgotten")
	if left := f.List(f.Store.Keys.Rejected); len(left) != 1 || !strings.Contains(left[0], "nonsense") {
		t.Errorf("expected the other message, found %q", left)
	}
	before := f.List(f.Store.Keys.Rejected)[0]
	f.Clock.Turn(time.Minute)
	tab.Follow("form[action$='rejected/requeue'] button")
	tab.AwaitText("is requeued")
	testkit.Eventually(t, "the message rejected again", func() bool {
		left := f.List(f.Store.Keys.Rejected)
		return len(left) == 1 && left[0] != before
	})
}

func TestAPolicyIsShownAsItWouldWork(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{ReadOnly: true})
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
