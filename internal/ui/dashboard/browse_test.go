package dashboard

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

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
	equal(t, before["bigtables:policies"], f.Server.Dump(t)["bigtables:policies"])
}

func TestAModelIsRunAndHeldByTheKeyboardAlone(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("models"))
	tab.TabTo("Skip to content")
	tab.Keys("\r")
	tab.TabTo("tbl_1")
	tab.KeysFollow("\r")
	tab.TabTo("Run now")
	tab.KeysFollow("\r")
	check.Eventually(t, "an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	tab.TabTo("Hold…")
	tab.Keys("\r")
	tab.TabTo("hold-reason")
	tab.Keys("by keys")
	tab.TabTo("Hold")
	tab.KeysFollow("\r")
	holds, err := flow.OfQueue(f.queue).Holds(t.Context())
	failIf(t, err != nil || len(holds) != 1 || holds[0].Reason != "by keys", "expected a hold, found %+v, %v", holds, err)
}

func TestKeysSearchAndListKeysUnlessSomebodyTypes(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{})
	tab := browser.Open(t)
	open := func() bool { return browser.Eval[bool](tab, `document.getElementById("keys").open`) }
	tab.Go(f.url(""))
	tab.Keys("?")
	failIf(t, !open(), "expected the list of keys")
	look(t, tab)
	tab.Press("Close")
	failIf(t, open(), "expected it closed")
	tab.Press("Keys")
	failIf(t, !open(), "expected the list of keys after a click")
	tab.Keys("\x1b")
	tab.Await(`!document.getElementById("keys").open`)
	tab.KeysFollow("/") // to the list of models
	tab.Await(`document.activeElement.id === "l"`)
	tab.Keys("?/n")
	failIf(t, open() || browser.Eval[string](tab, `document.getElementById("l").value`) != "?/n", "expected what was typed, and no list")
	tab.Go(f.url("running"))
	tab.Keys("/")
	equal(t, "name", browser.Eval[string](tab, `document.activeElement.id`))
}

func TestWhatChangesInRedisShowsOnAnOpenPage(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("model?uid=tbl_1"))
	browser.Eval[bool](tab, "window.same = true")
	f.Command(`{"type":"run","uid":"tbl_1"}`)
	check.Eventually(t, "an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	tab.AwaitText("Supersede…")
	f.Take()
	f.Say(fixture.Result("user_friendly_status", "tbl_1", f.Attempt("tbl_1"), `"status":"4 of 7 files"`))
	tab.AwaitText("4 of 7 files")
	f.Say(fixture.Result("failure", "tbl_1", f.Attempt("tbl_1"), `"reason":"HTTP 504"`))
	tab.AwaitText("HTTP 504")
	failIf(t, !browser.Eval[bool](tab, "window.same"), "expected the same page, found that it was loaded anew")
}

func TestAnOpenPageChangesNothingWhereSomebodyTypes(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("failures"))
	browser.Eval[bool](tab, `window.came = 0; source.addEventListener("fragment", () => came++); document.querySelectorAll("details").forEach((d) => { d.open = true; }); document.getElementById("rate-0").focus(); document.getElementById("rate-0").value = "1/s"; true`)
	f.fail("tbl_2", oneFeed, `"reason":"HTTP 503"`)
	tab.Await(`came > 0`)
	failIf(t, !browser.Eval[bool](tab, `document.activeElement.id == "rate-0" && document.activeElement.value == "1/s"`),
		"expected what was typed, found it replaced")
	browser.Eval[bool](tab, `document.activeElement.blur(); true`)
	f.fail("tbl_3", oneFeed, `"reason":"HTTP 503"`)
	tab.AwaitText("3 models")

	tab.Go(f.url("model?uid=tbl_1"))
	tab.Await("source && source.readyState == EventSource.OPEN")
	browser.Eval[bool](tab, `document.getElementById("disable-reason").value = "half a rea"; true`)
	f.Command(`{"type":"disable","uid":"tbl_1","reason":"not paid"}`)
	tab.AwaitText("not paid")
	equal(t, "half a rea", browser.Eval[string](tab, `document.getElementById("disable-reason")?.value ?? "replaced"`))
}

func TestALinkKeepsTheFocusThoughOthersInFrontLeadThereToo(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{})
	for _, uid := range []string{"a", "b", "c"} {
		f.Command(`{"type":"put","uid":"` + uid + `","labels":{"tenant":"t1"}}`)
	}
	tab := browser.Open(t)
	check.Eventually(t, "all three are stored", func() bool { return f.Redis.Exists(t.Context(), f.Store.Keys.Model("c")).Val() > 0 })
	tab.Go(f.url("models?l=tenant%3Dt1"))
	browser.Eval[bool](tab, `document.querySelectorAll("tbody tr")[1].querySelector("td a").focus(); true`)
	f.Command(`{"type":"disable","uid":"a","reason":"not paid"}`)
	tab.AwaitText("not paid")
	equal(t, 2, browser.Eval[int](tab, `document.activeElement.closest("tr")?.rowIndex ?? 0`))
}

func TestSelectedRowsStaySelectedThoughTheListChangesAndAreDisabled(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{})
	f.Command(`{"type":"put","uid":"b"}`)
	tab := browser.Open(t)
	check.Eventually(t, "it is stored", func() bool { return f.Redis.Exists(t.Context(), f.Store.Keys.Model("b")).Val() > 0 })
	tab.Go(f.url("models"))
	tab.Await("source && source.readyState == EventSource.OPEN")
	browser.Eval[bool](tab, `document.querySelector("input[value=b]").click(); true`)
	f.Command(`{"type":"put","uid":"a"}`)
	tab.AwaitText("Shown: 3 models")
	equal(t, "b", browser.Eval[string](tab, `[...document.querySelectorAll("input:checked")].map(e => e.value).join()`))
	tab.Press("Select all of this page")
	equal(t, 3, browser.Eval[int](tab, `document.querySelectorAll("input:checked").length`))
	tab.Press("Select all of this page")
	browser.Eval[bool](tab, `document.querySelector("input[value=b]").click(); true`)
	tab.Follow("disable selected")
	tab.AwaitText("1 model: b")
	tab.Fill("reason", "not paid")
	tab.Follow("disable 1 model")
	tab.AwaitText("disable: 1 of 1 model done")
	tab.AwaitText("not paid")
}

func TestAPageThatNobodySeesReadsNothingUntilItIsSeenAgain(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("model?uid=tbl_1"))
	tab.Await(`source && source.readyState == EventSource.OPEN`)
	show := func(hidden string) {
		browser.Eval[bool](tab, `Object.defineProperty(document, "hidden", {value: `+hidden+`, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`)
	}
	show("true")
	failIf(t, browser.Eval[bool](tab, `source !== null`), "expected no stream of a page that is hidden")
	show("false")
	f.Command(`{"type":"disable","uid":"tbl_1","reason":"has not paid"}`)
	tab.AwaitText("has not paid")
}

func TestAQueueOfManyModelsIsPagedThroughWithBoundedCommands(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, Config{})
	f.policies(feeds)
	const many = 100_000
	f.fill(many)
	counted := &commandCount{}
	f.client.AddHook(counted)

	seen, pages := map[string]bool{}, 0
	for path := home + "models"; path != ""; pages++ {
		counted.n.Store(0)
		var uids []string
		uids, path = f.readList(path)
		for _, uid := range uids {
			seen[uid] = true
		}
		if n := counted.n.Load(); n > 6000 {
			t.Fatalf("page %d: expected at most 6000 commands, found %d", pages, n)
		}
	}
	failIf(t, len(seen) != many, "expected %d models on %d pages, found %d", many, pages, len(seen))
	for _, path := range everyPage {
		counted.n.Store(0)
		f.status(home + path)
		if n := counted.n.Load(); n > 6000 {
			t.Errorf("%s: expected at most 6000 commands of a page, found %d", path, n)
		}
	}
}

func (f *fleet) fill(many int) {
	f.t.Helper()
	for from := 0; from < many; from += operate.BatchSize {
		var lines strings.Builder
		for i := from; i < min(many, from+operate.BatchSize); i++ {
			fmt.Fprintf(&lines, `{"uid":"tbl_%06d","policy":"feeds","labels":{"tenant":"t%d"},"payload":{"input_url":"https://h%d.example/a.csv"}}`+"\n", i, i%100, i%1000)
		}
		put(f.t, f.queue, lines.String())
	}
}

// commandCount is a hook that counts commands.
type commandCount struct{ n atomic.Int64 }

func (c *commandCount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commandCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error { c.n.Add(1); return next(ctx, command) }
}

func (c *commandCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		c.n.Add(int64(len(commands)))
		return next(ctx, commands)
	}
}

func TestAModelIsRunOnItsPageWhichShowsWhatBecomesOfIt(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{By: "ann"})
	tab := browser.Open(t)
	tab.Go(f.url("models?l=status%3Dfailing"))
	tab.Follow("tbl_1")
	tab.Follow("Run now")
	tab.AwaitText("tbl_1")
	check.Eventually(t, "an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	f.Say(fixture.Result("success", "tbl_1", f.Attempt("tbl_1")))
	tab.Await("!document.querySelector('#model-state .bad')")
}
