package dashboard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/commands"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestAModelIsRunAndHeldByTheKeyboardAlone(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("models"))
	focus := func(name string) {
		t.Helper()
		for range 60 {
			tab.Keys("\t")
			if browser.Eval[bool](tab, `[document.activeElement.innerText, document.activeElement.id].includes(`+browser.Quote(name)+`)`) {
				if outline := browser.Eval[string](tab, "getComputedStyle(document.activeElement).outlineStyle"); outline == "none" {
					t.Errorf("%s: expected a mark that it has the focus, found none", name)
				}
				return
			}
		}
		t.Fatalf("expected to reach %q by the key Tab in\n%s", name, tab.Text())
	}
	focus("Skip to content")
	tab.Keys("\r")
	focus("tbl_1")
	tab.KeysFollow("\r")
	focus("Run now")
	tab.KeysFollow("\r")
	f.eventually("an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	focus("hold-reason")
	tab.Keys("by keys")
	focus("Hold")
	tab.KeysFollow("\r")
	holds, err := f.queue.Fleet().Holds(t.Context())
	if err != nil || len(holds) != 1 || holds[0].Reason != "by keys" {
		t.Errorf("expected a hold, found %+v, %v", holds, err)
	}
}

func TestWhatChangesInRedisShowsOnAnOpenPage(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("model?uid=tbl_1"))
	browser.Eval[bool](tab, "window.same = true")
	f.Command(`{"type":"run","uid":"tbl_1"}`)
	f.eventually("an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	f.Take()
	f.Say(fixture.Result("user_friendly_status", "tbl_1", f.Attempt("tbl_1"), `"status":"4 of 7 files"`))
	tab.AwaitText("4 of 7 files")
	f.Say(fixture.Result("failure", "tbl_1", f.Attempt("tbl_1"), `"reason":"HTTP 504"`))
	tab.AwaitText("HTTP 504")
	if !browser.Eval[bool](tab, "window.same") {
		t.Error("expected the same page, found that it was loaded anew")
	}
}

func TestAnOpenPageChangesNothingWhereSomebodyTypes(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("failures"))
	browser.Eval[bool](tab, `window.came = 0; source.addEventListener("fragment", () => came++); document.querySelectorAll("details").forEach((d) => { d.open = true; }); document.getElementById("rate-0").focus(); document.getElementById("rate-0").value = "1/s"; true`)
	f.fail("tbl_2", oneFeed, `"reason":"HTTP 503"`)
	tab.Await(`came > 0`)
	if !browser.Eval[bool](tab, `document.activeElement.id == "rate-0" && document.activeElement.value == "1/s"`) {
		t.Error("expected what was typed, found it replaced")
	}
	browser.Eval[bool](tab, `document.activeElement.blur(); true`)
	f.fail("tbl_3", oneFeed, `"reason":"HTTP 503"`)
	tab.AwaitText("3 models")
}

func TestAPageThatNobodySeesReadsNothingUntilItIsSeenAgain(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{})
	tab := browser.Open(t)
	tab.Go(f.url("model?uid=tbl_1"))
	tab.Await(`source && source.readyState == EventSource.OPEN`)
	show := func(hidden string) {
		browser.Eval[bool](tab, `Object.defineProperty(document, "hidden", {value: `+hidden+`, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`)
	}
	show("true")
	if browser.Eval[bool](tab, `source !== null`) {
		t.Error("expected no stream of a page that is hidden")
	}
	show("false")
	f.Command(`{"type":"disable","uid":"tbl_1","reason":"has not paid"}`)
	tab.AwaitText("has not paid")
}

func TestEverythingWorksWithoutScripts(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := steered(t, Config{})
	tab := browser.Open(t)
	tab.NoScripts()
	tab.Go(f.url("model?uid=tbl_1"))
	tab.Follow("Run now")
	f.eventually("an attempt", func() bool { return f.Attempt("tbl_1") != "" })
	tab.Go(f.url("steering"))
	tab.Press("New hold")
	tab.Fill("selector", "tenant=t1")
	tab.Fill("reason", "without scripts")
	tab.Follow("Hold")
	tab.AwaitText("without scripts")
	tab.Go(f.url("playground"))
	tab.Fill("text", "name: mine\nrrule: FREQ=HOURLY\ntimeout: 90m\nretries: [5m]\n")
	tab.Follow("Try it")
	tab.AwaitText(`called "mine"`)
	tab.AwaitText("Seldom meant")
	tab.Go(f.url("models"))
	tab.Fill("l", "uid=nobody")
	tab.Follow("Show")
	tab.AwaitText("No model is picked.")
}

func TestAQueueOfManyModelsIsPagedThroughWithBoundedCommands(t *testing.T) {
	t.Parallel()
	f := newFleet(t, Config{})
	f.policies(feeds)
	many := long.Or(3_000, 100_000)
	var tab *browser.Tab
	if long.Enabled() {
		tab = browser.Open(t)
	}
	f.fill(many)
	counted := &commandCount{}
	f.client.AddHook(counted)

	seen, pages := map[string]bool{}, 0
	for address := f.url("models"); address != ""; pages++ {
		counted.begin()
		if tab != nil && pages%200 == 0 { // a browser for some of them
			tab.Go(address)
			for _, uid := range browser.Eval[[]string](tab, "[...document.querySelectorAll('tbody th a')].map(a => a.innerText)") {
				seen[uid] = true
			}
			next := browser.Eval[string](tab, "document.querySelector('a[rel=next]')?.href || ''")
			tab.Leave() // which ends its stream
			address = next
		} else {
			address = f.readModels(address, seen)
		}
		if n := counted.total(); n > 6000 {
			t.Fatalf("page %d: expected at most 6000 commands, found %d", pages, n)
		}
	}
	if len(seen) != many {
		t.Errorf("expected %d models on %d pages, found %d", many, pages, len(seen))
	}
	for _, path := range everyPage {
		counted.begin()
		f.get(path)
		if n := counted.total(); n > 6000 {
			t.Errorf("%s: expected at most 6000 commands of a page, found %d", path, n)
		}
	}
}

// fill saves so many models.
func (f *fleet) fill(many int) {
	f.t.Helper()
	for from := 0; from < many; from += commands.BatchSize {
		var lines strings.Builder
		for i := from; i < min(many, from+commands.BatchSize); i++ {
			fmt.Fprintf(&lines, `{"uid":"tbl_%06d","policy":"feeds","labels":{"tenant":"t%d"},"payload":{"input_url":"https://h%d.example/a.csv"}}`+"\n", i, i%100, i%1000)
		}
		put(f.t, f.queue, lines.String())
	}
}

// readModels notes the models of a page, and returns the address of the next one.
func (f *fleet) readModels(address string, seen map[string]bool) (next string) {
	f.t.Helper()
	page := f.body(address)
	for _, row := range strings.Split(page, `<th scope="row"><a href="`)[1:] {
		_, rest, _ := strings.Cut(row, ">")
		uid, _, _ := strings.Cut(rest, "<")
		seen[uid] = true
	}
	if before, _, found := strings.Cut(page, `" rel="next"`); found {
		next = before[strings.LastIndex(before, `href="`)+len(`href="`):]
		next = strings.TrimSuffix(f.dashboard.URL(), "/") + strings.ReplaceAll(strings.ReplaceAll(next, "&amp;", "&"), "&#43;", "+")
	}
	return next
}

// commandCount is a hook that counts commands. It is safe for concurrent use.
type commandCount struct {
	mu sync.Mutex
	n  int // guarded by mu
}

func (c *commandCount) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = 0
}

func (c *commandCount) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *commandCount) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
}

func (c *commandCount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commandCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error { c.add(1); return next(ctx, command) }
}

func (c *commandCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		c.add(len(commands))
		return next(ctx, commands)
	}
}
