package dashboard

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

const pool1, pool2 = "host7:4711-20261121T065800Z-aaaaaaaa", "host7:4712-20261121T065900Z-bbbbbbbb"

// take lets a worker pool give a heartbeat and take so many attempts.
func (d *visitor) take(owner string, attempts int) {
	d.t.Helper()
	taken := check.Got(d.Store.Pool().Take(d.t.Context(), store.TakeRequest{Owner: owner, New: true, Most: attempts}))(d.t)
	failIf(d.t, len(taken.Entries) != attempts, "expected %d attempts taken, found %d", attempts, len(taken.Entries))
}

// table is the text of each row of the table behind a heading.
func (d *visitor) table(path, heading string) (rows []string) {
	d.t.Helper()
	_, text, _ := strings.Cut(d.page(path), `id="`+heading+`"`)
	text, _, _ = strings.Cut(text, "</section>")
	for _, row := range regexp.MustCompile(`(?s)<tr>(.*?)</tr>`).FindAllStringSubmatch(text, -1) {
		cells := regexp.MustCompile(`(?s)</t[hd]>`).ReplaceAllString(row[1], " |")
		rows = append(rows, strings.Join(strings.Fields(tag.ReplaceAllString(cells, " ")), " "))
	}
	return rows
}

func (d *visitor) start5() {
	d.t.Helper()
	for n := range 5 {
		d.put(fmt.Sprintf(`"uid":"m%d","refresh":"now","policy":{"timeout":"1h"}`, n))
		must(d.t, check.Only(d.dispatcher.RunOnce(d.t.Context())))
	}
}

func TestThePageRunningTellsWhoWorksAndOnWhat(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, func(c *Config) { c.ReadOnly = true })
		expect(t, d.page(home+"running"), "No process sends a heartbeat.", "No attempt is in hand.")
		d.start5()
		entry, _ := d.Take()
		d.Say(fixture.Result("started", entry.UID, entry.AttemptUID, `"worker":"php <7>"`))
		d.take(pool1, 2)
		d.take(pool2, 0)
		d.Say(fixture.Result("user_friendly_status", "m1", d.Attempt("m1"), `"status":"half","progress":50`))
		d.apply()
		equal(t, []string{
			"Process | Role | State | Since | In hand |", "dispatcher-1 | dispatcher | working | – | – |", "poller-1 | poller | working | – | – |",
			"host7:4711 | worker | working | 2026-11-21 06:58:00 | 2 |", "host7:4712 | worker | working | 2026-11-21 06:59:00 | 0 |",
		}, d.table(home+"running", "h-processes"))
		const deadline = "just now | – | 2026-11-21 08:00:00 | "
		equal(t, []string{
			"Model | Worker | Since | Last heard | Fails at | The worker says |", "m1 | host7:4711 | " + deadline + "half (50%) |", "m2 | host7:4711 | " + deadline + "|",
			"m0 | php &lt;7&gt; | " + deadline + "|",
		}, d.table(home+"running", "h-in-hand"))
		expect(t, d.page(home+"running"), "In hand: 3", `href="`+home+`model?uid=m0"`)
		failIf(t, len(d.table(home+"running?name=host7:4711", "h-processes")) != 2 || len(d.table(home+"running?name=host7:4711", "h-in-hand")) != 3, "expected the page of one process to be about that alone")
		d.Clock.Turn(2 * model.LongestSilence)
		expect(t, strings.Join(d.table(home+"running", "h-processes"), "\n"), "host7:4711 | worker | silent, last heartbeat 2m ago |")
	})
}

func TestWorkersAreCalledAsTheyHaveAnnouncedThemselves(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.start5()
	d.take(pool1, 2)
	d.Say(fixture.Result("started", "m0", d.Attempt("m0"), `"worker":"fetch-<9>"`))
	d.apply()
	page := strings.Join(d.table(home+"running", "h-in-hand"), "\n")
	expect(t, page, "m0 | fetch-&lt;9&gt; of host7:4711 |", "m1 | host7:4711 |")
	expect(t, d.page(home+"model?uid=m0"), "Running on fetch-&lt;9&gt;")
	d.answer("failure", "m0")
	expect(t, strings.Join(d.table(home+"model?uid=m0", "h-past"), "\n"), "| fetch-&lt;9&gt; |")
}

func TestAPressOnRunningReachesThePoolAndNobodyElse(t *testing.T) {
	users := fixture.WithUsers(t, "bigtables")
	d := sitAt(t, fixture.New(t, users.Server), "", users.Client(t, acl.Operator), func(c *Config) { c.By = "ann" })
	d.take(pool1, 0)
	d.take(pool2, 0)
	users.Forgive(t)
	orders := func() map[string]string {
		return check.Got(d.Redis.HGetAll(t.Context(), d.Store.Keys.Orders).Result())(t)
	}
	page := d.submit("running", "worker/quiet", "name", pool1)
	expect(t, page, pool1+" (1 worker) takes nothing new from the next heartbeat on.", "quiet, asked by ann", `aria-label="Resume host7:4711"`)
	expectNone(t, page, `aria-label="Quiet host7:4711"`)
	equal(t, map[string]string{pool1: "quiet ann"}, orders())
	expectNone(t, page, "Stop all")
	d.submit("running?name=host7", "worker/quiet", "name", "host7") // of whom one was asked before
	equal(t, map[string]string{pool1: "quiet ann", pool2: "quiet ann"}, orders())
	d.press(home+"worker/stop", "name", "host7")
	equal(t, map[string]string{pool1: "stop ann", pool2: "stop ann"}, orders())
	d.press(home+"worker/resume", "name", "host7:4712")
	equal(t, map[string]string{pool1: "stop ann"}, orders())
	users.ExpectNoRefusal(t)
	for _, name := range []string{"", "host8", "dispatcher-1"} {
		expect(t, d.press(home+"worker/stop", "name", name), `role="alert"`, "The page &#34;Running&#34; shows all workers.")
	}
	equal(t, map[string]string{pool1: "stop ann"}, orders())
}

func TestAViewerOfRunningIsOfferedNoOrderAndRefused(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withTokens)
	d.take(pool1, 0)
	for _, token := range []string{ofOperator, ofViewer} {
		d.post("/login", "token", token)
		page, offered := d.page(home+"running"), token == ofOperator
		failIf(t, strings.Contains(page, "worker/quiet") != offered || strings.Contains(page, ">Quiet<") != offered, "expected buttons: %v, found\n%s", offered, page)
	}
	response, _ := d.post(home+"worker/quiet", "name", pool1)
	failIf(t, response.StatusCode != 403 || d.Redis.Exists(t.Context(), d.Store.Keys.Orders).Val() != 0, "expected a refusal, found %s", response.Status)
}

func TestAPageOfManyProcessesSaysHowManyMoreThereAre(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.start5()
	for n := range maxProcesses + 10 {
		owner := fmt.Sprintf("h%03d:1-20261121T065800Z-aaaaaaaa", n)
		d.take(owner, min(1, max(0, n-maxProcesses))*min(1, max(0, maxProcesses+3-n)))
	}
	page := d.page(home + "running")
	expect(t, page, "and 12 more: name a host", "<p>and 2 more</p>", "In hand: 2") // with a dispatcher and a poller
	expect(t, d.page(home+"running?name=h201"), ">h201:1</a>", "In hand: 1")
}

func TestHeartbeatsAloneSendNoPageAgain(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.take(pool1, 0)
	fragments := func() string {
		all := d.dashboard.fragments(t.Context(), d.dashboard.sites.list[0], &runningPage, session{}, nil)
		must(t, all.err)
		return all.fragments[0].HTML
	}
	before := fragment{HTML: fragments()}
	d.Clock.Turn(model.LongestSilence / 2)
	d.take(pool1, 0)
	failIf(t, !before.same(&fragment{HTML: fragments()}), "expected the same processes, found\n%s", fragments())
	d.Clock.Turn(2 * model.LongestSilence)
	failIf(t, before.same(&fragment{HTML: fragments()}), "expected a silent process told")
}

func TestWhoConfirmsAStopStopsThatWorkerThoughOthersCameMeanwhile(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, Config{By: "ann"})
	tab := browser.Open(t)
	f.take(pool2, 0)
	tab.Go(f.url("running"))
	tab.Press("Stop host7:4712…")
	browser.Eval[bool](tab, `document.querySelector("details[open] summary").focus(); true`)
	f.take("host0:1-20261121T065800Z-cccccccc", 0)
	f.take(pool1, 0)
	tab.AwaitText("host0:1")
	open := browser.Eval[string](tab, `[...document.querySelectorAll("details[open] summary"), document.activeElement].map(e => e.getAttribute("aria-label")).join()`)
	equal(t, "Stop host7:4712…,Stop host7:4712…", open)
	tab.Follow("Stop host7:4712 now")
	tab.AwaitText("stopping, asked by ann")
	equal(t, map[string]string{pool2: "stop ann"}, check.Got(f.Redis.HGetAll(t.Context(), f.Store.Keys.Orders).Result())(t))
}
