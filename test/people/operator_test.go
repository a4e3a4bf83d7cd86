package people

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// The fleet of the operator: many hosts with as many feeds each, all refreshed every forty seconds.
const (
	hosts    = 100
	perHost  = 40
	everyRun = "FREQ=SECONDLY;INTERVAL=40"
)

const fleetPolicy = `name: hosted
timeout: 2m
retries: [1s, 1s, next]
spread: 40s
circuit: {key: "{label.host}", open_after: 5 of 10, probe: 2s}
`

// internet is where the feeds are: one host may be out. It counts how often each feed was refreshed since the last outage.
type internet struct {
	mu        sync.Mutex
	bad       string         // the host that goes out and comes back; guarded by mu
	out       bool           // guarded by mu
	refreshed map[string]int // by model, guarded by mu
}

func (i *internet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	uid := r.Header.Get("Refreshd-Uid")
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.out && i.isBad(uid) {
		http.Error(w, `{"reason":"host is out"}`, http.StatusServiceUnavailable)
		return
	}
	i.refreshed[uid]++
}

func (i *internet) isBad(uid string) bool { return strings.HasPrefix(uid, i.bad+"-") }

// turn lets a host go out, or come back, and counts anew.
func (i *internet) turn(host string, out bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bad, i.out, i.refreshed = host, out, map[string]int{}
}

// done is how many models were refreshed, and how many of the bad host.
func (i *internet) done() (all, bad int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for uid := range i.refreshed {
		if i.isBad(uid) {
			bad++
		}
	}
	return len(i.refreshed), bad
}

// hand is how the operator uses the browser: with a mouse, or with the keyboard alone.
type hand struct {
	*browser.Tab
	keys bool
}

// write fills the field of this id.
func (h hand) write(field, text string) {
	if !h.keys {
		h.Fill(field, text)
		return
	}
	h.TabTo(field)
	h.Keys(text)
}

// press presses the link or button of this name, and waits for the page behind it.
func (h hand) press(name string) {
	if !h.keys {
		h.Follow(name)
		return
	}
	h.TabTo(name)
	h.KeysFollow("\r")
}

func TestAnOperatorIsCalledOnceForAnOutageOfOneHostHoldsItReleasesItAndNothingIsLost(t *testing.T) {
	long.Only(t)
	t.Parallel()
	testkit.RequireProgram(t, "prometheus", "prometheus")
	world, pager := &internet{refreshed: map[string]int{}}, make(chan string, 100)
	feeds := serve(t, world.ServeHTTP)
	pages := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		pager <- string(text)
	})
	redis := testkit.Redis(t)

	// A fleet of 4,000 models, and each daemon in a process of its own.
	me := &desk{t: t, dir: t.TempDir(), refreshd: testkit.Binary(t)}
	me.environ = []string{"REDIS_URL=redis://" + redis.Addr, "PATH=/usr/bin:/bin", "HOME=" + me.dir, "PAGER_SECRET=whsec_" + base64.StdEncoding.EncodeToString([]byte("the secret of the pager"))}
	me.write("policy.yaml", fleetPolicy)
	var models strings.Builder
	for h := range hosts {
		for m := range perHost {
			fmt.Fprintf(&models, `{"uid":"h%d-%d","payload":{"host":"h%[1]d"},"labels":{"host":"h%[1]d"},"rrule":%[3]q,"policy":"hosted"}`+"\n", h, m, everyRun)
		}
	}
	me.write("models.jsonl", models.String())
	me.write("routes.yaml", `channels:
  pager: {webhook: "`+pages+`", secret: {env: PAGER_SECRET}, gather: 1s}
routes:
- {events: [circuit_opened, new_error], channels: [pager]}
`)
	dispatcher, poller, browsed := testkit.FreeAddress(t), testkit.FreeAddress(t), testkit.FreeAddress(t)
	// The circuit reports the outage of a host, however many of its models are in hand when it begins.
	me.run(me.refreshd, "queue", "set", "--new-error-above", fmt.Sprint(perHost))
	me.start(me.refreshd, "dispatcher", "--health", dispatcher)
	me.start(me.refreshd, "poller", "--health", poller)
	me.start(me.refreshd, "worker", "--http", feeds, "--concurrency", "64")
	me.start(me.refreshd, "notifier", "--routes", "routes.yaml")
	me.start(me.refreshd, "dashboard", "--listen", browsed).AwaitOutput(t, "the dashboard is served")
	prometheus := startPrometheus(t, dispatcher, poller)
	me.run(me.refreshd, "policy", "put", "policy.yaml")
	me.run(me.refreshd, "model", "put", "models.jsonl")
	check.Eventually(t, "all models were refreshed", func() bool { all, _ := world.done(); return all == hosts*perHost })

	for i, bad := range []string{"h7", "h42"} {
		// One host goes out: one alert, one notice, and its cause on the dashboard.
		world.turn(bad, true)
		notice := check.Await(t, pager, "the notice")
		failIf(t, !strings.Contains(notice, "circuit_opened") || !strings.Contains(notice, "host="+bad), "the notice says %s", notice)
		prometheus.await(t, "RefreshdOutage")
		operator := hand{browser.Open(t), i == 1}
		operator.Go("http://" + browsed)
		operator.AwaitText("host=" + bad)
		operator.AwaitText("host is out")

		// A search, the filter that it finds, and a hold of all results. The host comes back meanwhile: its models wait, the others go on.
		operator.press("Models")
		operator.write("l", bad)
		operator.press("Show")
		operator.AwaitText(fmt.Sprintf("%d models with host=%s", perHost, bad))
		operator.press("hold")
		operator.write("reason", "the host is out")
		operator.write("number", fmt.Sprint(perHost))
		operator.press(fmt.Sprintf("hold %d models", perHost))
		operator.AwaitText("the host is out")
		world.turn(bad, false)
		check.Eventually(t, "all other models were refreshed", func() bool { all, _ := world.done(); return all >= (hosts-1)*perHost })
		// An attempt that had begun before the hold may still have ended.
		if _, held := world.done(); held > 1 {
			t.Errorf("%d models of the held host were refreshed", held)
		}

		// The release: each of its models is refreshed, nothing is lost, and nobody was called again.
		operator.press("Release")
		check.Eventually(t, "all models of the host were refreshed", func() bool { _, back := world.done(); return back == perHost })
		check.Eventually(t, "nothing fails", func() bool { return me.run(me.refreshd, "-o", "json", "failures") == "" })
		prometheus.await(t)
		operator.Leave()
	}
	me.run(me.refreshd, "doctor")
	if more := len(pager); more > 0 {
		t.Errorf("%d more notices: %s", more, <-pager)
	}
	if all := prometheus.fired(t); !slices.Equal(all, []string{"RefreshdOutage"}) {
		t.Errorf("the alerts were %s, want RefreshdOutage alone", all)
	}
}
