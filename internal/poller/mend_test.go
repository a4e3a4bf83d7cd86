package poller_test

import (
	"fmt"
	"github.com/redis/go-redis/v9"
	"maps"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// without is what a server holds but for bulks, how many have begun, and the call of a dispatcher.
func (b *bundle) without(ids ...string) map[string]testkit.Value {
	b.t.Helper()
	k, all := b.Store.Keys, b.Server.Dump(b.t)
	maps.DeleteFunc(all, func(key string, _ testkit.Value) bool {
		return key == k.Wake || key == k.Forwarded || key == k.Bulks || key == k.BulksEnded
	})
	for _, id := range ids {
		delete(all, k.Bulk(id))
	}
	return all
}

// TestAMendWritesThePlacesOfAllModelsAnewAndNothingElse takes models out of their places, as a release leaves them that knew none of these, and puts
// some where they do not belong.
func TestAMendWritesThePlacesOfAllModelsAnewAndNothingElse(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		k := b.Store.Keys
		b.promise(time.Hour)
		for i := range 12 {
			b.apply(fmt.Sprintf(`{"type":"put","uid":"m-%d","policy":"feeds","rrule":"FREQ=YEARLY","labels":{"tenant":"t%d"}}`, i, i%2))
		}
		b.apply(`{"type":"run","uid":"m-1"}`, `{"type":"run","uid":"m-2"}`, `{"type":"run","uid":"m-3"}`)
		b.dispatch()
		b.hear(b.result("failure", "m-1", `"reason":"no route"`), b.result("failure", "m-2", `"retryable":false`))
		b.apply(`{"type":"disable","uid":"m-4"}`)
		sound := b.without("x")

		b.Redis.Del(t.Context(), k.Failing, k.Disabled, k.Late, k.Label("tenant=t1"), k.StaleAt)
		b.Redis.ZRem(t.Context(), k.Due, "m-5")
		b.Redis.ZRem(t.Context(), k.Running, "m-3")
		b.Redis.ZAdd(t.Context(), k.Running, redis.Z{Score: 1, Member: "m-6"})
		b.Redis.ZAdd(t.Context(), k.Stale, redis.Z{Score: 1, Member: "m-7"})
		b.begin("x", model.BulkMend, "", "")
		bulk := b.finish(b.poller(b.Store, poller.Config{Batch: 5}), "x")
		b.expectBulk(bulk, 12, 12, nil)
		equal(t, sound, b.without("x"))
	})
}

func TestAMendLeavesAModelThatCannotBeReadAlone(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		k := b.Store.Keys
		b.fleet(3, "t1")
		b.Redis.HSet(t.Context(), k.Model("t1-1"), "refresh_at", "at noon")
		before := b.without("x")
		b.begin("x", model.BulkMend, "", "")
		b.expectBulk(b.finish(b.poller(b.Store, poller.Config{}), "x"), 3, 2, map[model.Outcome]int64{model.Unchanged: 1})
		equal(t, before, b.without("x"))
	})
}

func TestAMendBeginsWhenDaemonsOfTheOlderReleaseHaveEndedOrAfterAnHour(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		k := b.Store.Keys
		b.fleet(3, "t1")
		for _, test := range []struct {
			id    string
			lives time.Duration
		}{{"ended", 2 * time.Minute}, {"namesake", 2 * time.Hour}} {
			b.begin(test.id, model.BulkMend, "", "")
			b.Redis.HSet(t.Context(), k.Bulk(test.id), "after", "gone old")
			p, began := b.poller(b.Store, poller.Config{}), b.Clock.Now()
			for b.bulk(test.id).EndedAt.IsZero() {
				if b.Clock.Now().Sub(began) < test.lives {
					b.Redis.ZAdd(t.Context(), k.Dispatchers, redis.Z{Score: float64(b.Clock.Now().UnixMilli()), Member: "old"})
				}
				b.Clock.Turn(50 * time.Second)
				b.roundOf(p)
			}
			after := b.Clock.Now().Sub(began)
			failIf(t, after < 2*time.Minute || after > time.Hour+time.Minute || test.lives > time.Hour != (after > 50*time.Minute), "%s: found it over after %s", test.id, after)
			b.expectBulk(b.bulk(test.id), 3, 3, nil)
		}
	})
}

// TestAMendThatWasKilledIsFinishedByTheNextPoller lets the n-th call fail, and the poller with it.
func TestAMendThatWasKilledIsFinishedByTheNextPoller(t *testing.T) {
	mend := func(n int) (struck bool) {
		b := setup(t, testkit.Miniredis(t))
		b.fleet(12, "t1")
		sound := b.without("x")
		b.Redis.Del(t.Context(), b.Store.Keys.Label("tenant=t1"), b.Store.Keys.Due)
		b.begin("x", model.BulkMend, "", "")
		fault := new(testkit.Fault)
		b.Intercept(fault)
		fault.Arm(n)
		_, _ = b.poller(b.Store, poller.Config{Batch: 5}).RunOnce(t.Context()) // a step that fails is logged, and the round goes on
		struck = fault.Struck()
		fault.Arm(0)
		b.finish(b.poller(b.Store, poller.Config{Batch: 5}), "x")
		equal(t, sound, b.without("x"))
		return struck
	}
	n := 1
	for mend(n) {
		n++
	}
	failIf(t, n < 5, "want more calls than %d", n)
}
