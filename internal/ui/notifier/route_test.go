package notifier

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestARoutePicksEventsAndModels(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server, `
channels:
  all: {list: all}
  t1: {list: t1}
  ops: {list: ops}
routes:
- {events: [disabled, fresh], channels: [all]}
- {events: [disabled], models: "tenant=t1", channels: [t1, all]}
- {events: [new_error], channels: [ops]}
`)
		b.save("a", `"labels":{"tenant":"t1"}`)
		b.save("b", `"labels":{"tenant":"t2"}`)
		b.tell(disabled("a", ""), disabled("b", ""), disabled("removed", ""), []string{"event", "fresh", "uid", "a"}, []string{"event", "stale", "uid", "a"},
			[]string{"event", "new_error", "error", "e1", "signature", "HTTP 503", "models", "51"})
		b.round(b.Notifier)
		for name, want := range map[string]string{
			"all": "disabled a, disabled b, disabled removed, fresh a", "t1": "disabled a", "ops": "new_error ",
		} {
			var told []string
			for _, text := range b.List(b.Store.Keys.Told(name)) {
				var n Notice
				must(t, json.Unmarshal([]byte(text), &n))
				told = append(told, n["event"]+" "+n["uid"])
			}
			got := strings.Join(told, ", ")
			failIf(t, got != want, "%s: told %s, want %s", name, got, want)
		}
		if n := b.unread(); n != 0 {
			t.Errorf("%d entries stand in the outbox", n)
		}
	})
}

// Each step of a delivery is cut off in turn: what it has not said in Redis, another notifier does again.
func TestWhatADeadNotifierHasInHandIsTakenOver(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		h := newHook(t)
		routes := fmt.Sprintf(strings.Replace(hookRoutes, "[1m, 5m]", "[1m]", 1), h.URL)
		b := setup(t, server, routes)
		b.tell(disabled("m1", ""), disabled("m2", ""))
		if entries, err := outbox.Of(b.Store).Read(t.Context(), 1); err != nil || len(entries) != 0 {
			t.Fatal("the first call makes the group", entries, err)
		}
		if entries, err := outbox.Of(b.Store).Read(t.Context(), 1); err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		} // and dies
		check.Eventually(t, "both entries are routed", func() bool { b.route(b.Notifier); return b.unread() == 0 })
		now := b.Clock.Now()
		line, err := outbox.Of(b.Store).ReadMailbox(t.Context(), "ops", "ops", maxDigest)
		if err != nil || len(line.Notices) != 2 {
			t.Fatal(line, err)
		}
		next, _ := b.routes.channels["ops"].next(line.Delivery, len(line.Notices), now)
		next.By = "a dead one"
		if taken, err := outbox.Of(b.Store).Settle(t.Context(), line, outbox.Settlement{Delivery: next, Next: now.Add(30 * time.Second), At: now}); err != nil || !taken {
			t.Fatal(taken, err)
		}
		b.round(b.Notifier)
		stopIf(t, len(h.all()) != 0, "it was taken from one that may live")
		b.after(time.Minute)
		failIf(t, len(h.all()) != 2, "got %d messages, want both", len(h.all()))
	})
}

// The other one has read that the recipient is due before the first took the message in hand, and reads the mailbox while that is being sent.
func TestOfNotifiersSideBySideOneSendsAMessage(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		h := newHook(t)
		during := func() {}
		behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			once := during
			during = func() {}
			once()
			h.ServeHTTP(w, r)
		}))
		t.Cleanup(behind.Close)
		routes := fmt.Sprintf(hookRoutes, behind.URL)
		b := setup(t, server, routes)
		other := b.another(routes)
		b.tell(disabled("m1", ""))
		b.route(b.Notifier)
		b.route(b.Notifier)
		now := b.Clock.Now()
		during = func() { must(t, other.deliver(t.Context(), other.routes.channels["ops"], "ops", now)) }
		must(t, check.Only(b.Deliver(t.Context(), "ops")))
		if got := len(h.all()); got != 1 {
			t.Errorf("got %d messages, want one", got)
		}
		if waits := b.Redis.LLen(t.Context(), b.Store.Keys.Notices("ops")).Val(); waits != 0 {
			t.Errorf("%d notices wait, want none", waits)
		}
	})
}

func (b *bench) route(n *Notifier) {
	b.t.Helper()
	must(b.t, check.Only(n.Route(b.t.Context())))
}

func TestAWaveLeavesRoomForWhatOpensOrClosesAndASummarySaysHowManyItWas(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		h := newHook(t)
		b := setup(t, server, fmt.Sprintf(`
channels: {ops: {webhook: "%s", secret: {env: SECRET}, gather: 0s}}
routes: [{events: [stale, failing, disabled, recovered, circuit_opened, circuit_closed, new_error], channels: [ops]}]`, h.URL))
		var wave [][]string
		for i := range 16_000 {
			wave = append(wave, []string{"event", "stale", "uid", fmt.Sprint("m", i)})
		}
		for i := range 200 { // of two causes
			wave = append(wave, []string{"event", "failing", "uid", "m", "error_type", "http_50" + fmt.Sprint(i%2), "reason", fmt.Sprint("HTTP 50", i%2)})
		}
		b.tell(wave...)
		b.tell(disabled("m1", "gone"), []string{"event", "circuit_opened", "key", "host=a"}, []string{"event", "new_error", "error", "e1", "models", "51"},
			[]string{"event", "circuit_closed", "key", "host=a"}, []string{"event", "recovered", "uid", "m1"})
		check.Eventually(t, "all is routed", func() bool { b.route(b.Notifier); return b.unread() == 0 })
		waiting := b.Redis.LLen(t.Context(), b.Store.Keys.Notices("ops")).Val()
		failIf(t, waiting != 10_005, "expected a full mailbox and the five beyond, found %d", waiting)
		b.round(b.Notifier)
		b.after(5 * time.Minute)
		told, ids, counts := map[string]int{}, map[string]bool{}, []string{}
		for _, message := range h.all() {
			var body struct{ Data struct{ Notices []Notice } }
			must(t, json.Unmarshal(message.body, &body))
			for _, n := range body.Data.Notices {
				told[n["event"]]++
				ids[n["id"]] = true
				if n["event"] == "summary" {
					counts = append(counts, n["count"]+" "+n["of"]+" "+n["reason"])
				}
			}
		}
		equal(t, map[string]int{"stale": 10_000, "disabled": 1, "circuit_opened": 1, "new_error": 1, "circuit_closed": 1, "recovered": 1, "summary": 3}, told)
		slices.Sort(counts)
		equal(t, []string{"100 failing http_500: HTTP 500", "100 failing http_501: HTTP 501", "6000 stale "}, counts)
		failIf(t, len(ids) != 10_008, "expected an id of each notice, found %d", len(ids))
		dropped, left := b.Stats()["notices_dropped"], b.Redis.Exists(t.Context(), b.Store.Keys.Summary("ops")).Val()
		failIf(t, dropped != 6200 || left != 0, "expected 6200 counted and no summary left, found %d, %d", dropped, left)
		if got := b.log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"notices":6200`) {
			t.Errorf("expected one line with their number, found %s", got)
		}
	})
}

func TestALogTellsOfAFullMailboxOnceAMinute(t *testing.T) {
	b := setup(t, testkit.Miniredis(t), fmt.Sprintf(hookRoutes, newHook(t).URL))
	for _, wait := range []time.Duration{0, 30 * time.Second, 29 * time.Second, time.Second} {
		b.counted.Add(7)
		b.after(wait)
	}
	if got := b.log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"notices":7`) || !strings.Contains(got, `"notices":21`) {
		t.Errorf("expected 7 and, a minute later, 21, found %s", got)
	}
}
