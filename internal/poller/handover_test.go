package poller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// crowd saves one-shots of one host, of which one may run at a time, and lets a dispatcher start the first and park the others.
func (b *bundle) crowd(policy string, uids ...string) {
	b.t.Helper()
	for _, uid := range uids {
		b.obey(fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"input_url":"http://feed/x"},"policy":{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":1}]%s}}`, uid, policy))
		b.dispatch()
		b.dispatch()
	}
	b.Redis.Del(b.t.Context(), b.Store.Keys.Wake)
}

const gate = "limit:host=feed"

// expectStart checks which model was handed out last.
func (b *bundle) expectStart(uid string) {
	b.t.Helper()
	entries := b.List(b.Store.Keys.Input)
	stopIf(b.t, len(entries) == 0, "want %s handed out, found nothing", uid)
	want := `"big_table_uid":"` + uid + `"`
	failIf(b.t, b.Attempt(uid) == "" || !strings.Contains(entries[len(entries)-1], want), "want %s handed out last, got %q", uid, entries)
	_, counted := b.Scores(b.Store.Keys.Limit("host=feed"))[uid]
	failIf(b.t, !counted, "want it to hold the place, got %v", b.Scores(b.Store.Keys.Limit("host=feed")))
}

// expectLeft checks that a place was left to a dispatcher, which starts a model at once.
func (b *bundle) expectLeft(uid string) {
	b.t.Helper()
	failIf(b.t, b.Attempt(uid) != "", "want %s left to a dispatcher, it was started", uid)
	failIf(b.t, b.Scores(b.Store.Keys.Blockers)[gate] > b.Clock.Now().UnixMilli() || len(b.List(b.Store.Keys.Wake)) != 1, "want a dispatcher called, found gates %v and %q",
		b.Scores(b.Store.Keys.Blockers), b.List(b.Store.Keys.Wake))
}

func TestAFreedPlaceIsTakenByWhoWaitsLongestInTheSameCommit(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.crowd("", "a", "b", "c")
		b.Say(b.result("success", "a"))
		round := b.round()
		failIf(t, round.Applied != 1 || round.Started != 1, "want an end and a start, got %+v", round)
		b.expectStart("b")
		failIf(t, b.Attempt("c") != "" || b.Attempt("b") == b.Attempt("a"), "want one start with an attempt of its own")
		failIf(t, b.Scores(b.Store.Keys.Blockers)[gate] <= b.Clock.Now().UnixMilli() || len(b.List(b.Store.Keys.Wake)) != 0,
			"want no dispatcher called, found gates %v and %q", b.Scores(b.Store.Keys.Blockers), b.List(b.Store.Keys.Wake))
		b.hear(b.result("failure", "b", `"reason":"HTTP 404"`))
		b.expectStart("c")
		b.ExpectStats("starts in freed places", map[string]int{"start": 3, "success": 1, "failure": 1})
	})
}

func TestAFreedPlaceIsLeftToADispatcherWhile(t *testing.T) {
	for name, prepare := range map[string]func(b *bundle){
		"none is known to live": func(b *bundle) { b.Redis.HDel(b.t.Context(), b.Store.Keys.Heard, store.HeardWindow) },
		"it was heard of too long ago": func(b *bundle) {
			b.Redis.HSet(b.t.Context(), b.Store.Keys.Heard, store.HeardWindow, fmt.Sprint("100 ", b.Clock.Now().UnixMilli()-1))
		},
		"its note cannot be read": func(b *bundle) { b.Redis.HSet(b.t.Context(), b.Store.Keys.Heard, store.HeardWindow, "many") },
		"the input list is full": func(b *bundle) {
			b.Redis.HSet(b.t.Context(), b.Store.Keys.Heard, store.HeardWindow, fmt.Sprint("1 ", b.Clock.Now().UnixMilli()+9000))
		},
		"somebody wants a model to start at once": func(b *bundle) { b.obey(`{"type":"put","uid":"x","payload":{}}`, `{"type":"run","uid":"x"}`) },
		"another was due before": func(b *bundle) {
			b.Redis.ZAdd(b.t.Context(), b.Store.Keys.Due, fixture.At(1, "x"))
		},
		"who waits was removed":             func(b *bundle) { b.Redis.Del(b.t.Context(), b.Store.Keys.Model("b")) },
		"who waits first has a fault":       func(b *bundle) { b.Redis.HSet(b.t.Context(), b.Store.Keys.Model("b"), "policy", "nobody-knows-it") },
		"holds are of another type":         func(b *bundle) { b.Redis.Set(b.t.Context(), b.Store.Keys.Holds, "x", 0) },
		"calendars are of another type":     func(b *bundle) { b.Redis.Set(b.t.Context(), b.Store.Keys.Calendars, "x", 0) },
		"limits are of another type":        func(b *bundle) { b.Redis.Set(b.t.Context(), b.Store.Keys.Limits, "x", 0) },
		"who waits first is parked no more": func(b *bundle) { b.Redis.HDel(b.t.Context(), b.Store.Keys.Model("b"), "parked_by", "parked_since") },
		"the key of the gates is of another type": func(b *bundle) {
			b.Redis.Del(b.t.Context(), b.Store.Keys.ParkedBy(gate))
			b.Redis.Set(b.t.Context(), b.Store.Keys.ParkedBy(gate), "x", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.crowd("", "a", "b", "c")
				prepare(b)
				b.Redis.Del(t.Context(), b.Store.Keys.Wake)
				b.Say(b.result("success", "a"))
				round := b.round()
				failIf(t, round.Applied != 1 || round.Started != 0 || b.Attempt("a")+b.Attempt("c") != "", "want an end alone, got %+v", round)
				b.expectLeft("b")
			})
		})
	}
}

func TestAModelThatAnotherKeyStopsIsParkedThereAndTheNextOneTakesThePlace(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		const also = `,{"key":"{label.tenant}","running":1}`
		save := func(uid, tenant, host string) {
			b.obey(fmt.Sprintf(`{"type":"put","uid":%q,"labels":{"tenant":%q},"payload":{"input_url":"http://%s/x"},"policy":{"timeout":"1m","limits":[{"key":"{host(input_url)}","running":1}%s]}}`, uid, tenant, host, also))
			b.dispatch()
			b.dispatch()
		}
		save("a", "t1", "feed")
		save("b", "t2", "feed") // parked by its host
		save("c", "t3", "feed")
		save("d", "t2", "other") // takes the place of its tenant
		b.hear(b.result("success", "a"))
		b.expectStart("c")
		equal(t, "limit:tenant=t2", b.Model("b")["parked_by"])
		_, waits := b.Scores(b.Store.Keys.ParkedBy("limit:tenant=t2"))["b"]
		failIf(t, !waits, "want it to wait for its tenant")
	})
}

func TestAnEndThatOpensACircuitStartsNothingInItsPlace(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.crowd(`,"circuit":{"key":"{host(input_url)}","open_after":"1 of 1","probe":"1m"}`, "a", "b")
		b.hear(b.result("failure", "a", `"reason":"HTTP 503"`))
		failIf(t, b.Redis.HGet(t.Context(), b.Store.Keys.Circuit("host=feed"), "opened_at").Val() == "", "want an open circuit")
		b.expectLeft("b")
	})
}

// meddler lets somebody change what a poller has read before it commits.
type meddler struct {
	*store.Store
	flow.Flow
	meddle func()
}

func (m meddler) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	m.meddle()
	return m.Store.Commit(ctx, batch)
}

func TestAStartInAFreedPlaceIsRefusedWhen(t *testing.T) {
	for name, meddle := range map[string]func(b *bundle){
		"its end is refused":     func(b *bundle) { b.Redis.HIncrBy(b.t.Context(), b.Store.Keys.Model("a"), "rev", 1) },
		"who waits has changed":  func(b *bundle) { b.Redis.HIncrBy(b.t.Context(), b.Store.Keys.Model("b"), "rev", 1) },
		"a hold has changed":     func(b *bundle) { b.Redis.HIncrBy(b.t.Context(), b.Store.Keys.Holds, store.HoldChanges, 1) },
		"another took the place": func(b *bundle) { b.Redis.ZAdd(b.t.Context(), b.Store.Keys.Limit("host=feed"), fixture.At(9e15, "x")) },
		"the input list is full": func(b *bundle) {
			for range 1001 {
				b.Redis.RPush(b.t.Context(), b.Store.Keys.Input, "x")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.crowd("", "a", "b")
				b.Say(b.result("success", "a"))
				b.roundOf(b.poller(meddler{b.Store, flow.Of(b.Store), func() { meddle(b) }}, poller.Config{}))
				started, ended := b.Attempt("b") != "" || b.Stats()["start"] != 1, b.Stats()["success"] == 1
				failIf(t, started || ended == (name == "its end is refused"), "want no start, got %v", b.Stats())
				if ended {
					b.expectLeft("b")
				}
			})
		})
	}
}
