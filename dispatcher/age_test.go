package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// promise is a policy under which models are late after an hour and stale after two.
const promise = `{"timeout":"10h","retries":["5h"],"on_exhausted":"give_up","fresh_within":"2h","warn_within":"1h"}`

// watch saves models that wait for nothing, under a policy.
func (b *bundle) watch(policy string, uids ...string) {
	b.t.Helper()
	b.save(b.parse(policy), model.Definition{Payload: "{}", Rule: "FREQ=YEARLY", Refresh: model.RefreshPlanned}, uids...)
}

// freshness is where a model stands and what its hash says.
func (b *bundle) freshness(uid string) string {
	b.t.Helper()
	text := b.Model(uid)["freshness"]
	for _, key := range []string{b.Store.Keys.StaleAt, b.Store.Keys.Late, b.Store.Keys.Stale} {
		if at, in := b.Scores(key)[uid]; in {
			text += fmt.Sprintf(" %s %s", key[len(b.Store.Keys.Queue)+1:], time.UnixMilli(at).Sub(fixture.Start))
		}
	}
	return text
}

func TestAModelGrowsOldWhateverItDoesAndEachStepIsToldOnce(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d, other := b.dispatcher(b.Store, dispatcher.Config{Owner: "a"}), b.dispatcher(b.Store, dispatcher.Config{Owner: "b"})
		uids := []string{"idle", "running", "disabled", "parked"}
		b.watch(promise, uids...)
		b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Start(now, "attempt-x") }, "running")
		b.decide(func(r *store.Record, now time.Time) model.Decision { return decided(r.Disable("no", "", now)) }, "disabled")
		b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Park("hold:h1", model.Never, now) }, "parked")
		expect := func(want dispatcher.Round, freshness string) {
			t.Helper()
			rounds := []dispatcher.Round{b.round(d), b.round(other), b.round(d)}
			for i := range rounds {
				rounds[i].Queued, rounds[i].Sleep = 0, 0
			}
			equal(t, []dispatcher.Round{want, {}, {}}, rounds)
			for _, uid := range uids {
				got := b.freshness(uid)
				failIf(t, got != freshness, "%s: got %q, want %q", uid, got, freshness)
			}
		}
		b.Clock.Turn(time.Hour - time.Millisecond)
		expect(dispatcher.Round{}, "never stale_at 1h0m0s late "+model.Never.Sub(fixture.Start).String())
		b.Clock.Turn(time.Millisecond)
		expect(dispatcher.Round{Aged: 4}, "late stale_at 2h0m0s late 2h0m0s")
		b.Clock.Turn(time.Hour)
		expect(dispatcher.Round{Aged: 4}, "stale stale 2h0m0s")
		b.Clock.Turn(7 * time.Hour)
		expect(dispatcher.Round{}, "stale stale 2h0m0s")
		stats := b.Stats()
		failIf(t, stats["became_late"] != 4 || stats["became_stale"] != 4, "counted %v", stats)
		told := len(b.Redis.XRange(t.Context(), b.Store.Keys.Outbox, "-", "+").Val())
		failIf(t, told != 4, "the owners of four models were told %d times", told)
		b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Succeed(now, new(false)) }, "running")
		got := b.freshness("running")
		failIf(t, got != "fresh stale_at 10h0m0s", "after a success without a change it is %q", got)
		_, late := b.Scores(b.Store.Keys.Stale)["idle"]
		failIf(t, !late, "the success of one made another fresh")
	})
}

func TestManyModelsGrowOldBatchByBatchAndNeedNoRoomInTheInputList(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Batch: 7, MaxQueued: 1})
		var uids []string
		for i := range 20 {
			uids = append(uids, fmt.Sprintf("m%02d", i))
		}
		b.watch(promise, uids...)
		b.put("due", "later")
		b.round(d)
		b.Clock.Turn(59*time.Second + 59*time.Minute)
		b.round(d)
		b.Clock.Turn(time.Second)
		for aged := 0; aged < len(uids); {
			round := b.round(d)
			if aged += round.Aged; round.Aged == 0 || round.Aged > 7 {
				t.Fatalf("want at most a batch, and some, got %+v", round)
			}
		}
	})
}

func TestAModelThatStandsAmongThoseThatGrowOldByMistakeIsTakenOut(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.watch(promise, "watched")
		b.watch(`{"timeout":"1h"}`, "unwatched")
		for _, uid := range []string{"watched", "unwatched", "ghost"} {
			b.Redis.ZAdd(t.Context(), b.Store.Keys.StaleAt, redis.Z{Score: 1, Member: uid})
		}
		b.round(d)
		got := fmt.Sprint(b.Scores(b.Store.Keys.StaleAt))
		failIf(t, got != fmt.Sprintf("map[watched:%d]", fixture.Start.Add(time.Hour).UnixMilli()), "among those that grow old stand %s", got)
		failIf(t, b.Stats()["became_late"] != 0, "a wrong set has told something")
	})
}

func TestASleepingDispatcherWakesWhenAFreshnessChanges(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Tick: time.Minute})
		b.watch(promise, "m1")
		b.Clock.Turn(time.Hour - 7*time.Second)
		round := b.round(d)
		failIf(t, round.Sleep != 7*time.Second, "it sleeps for %s, want 7s", round.Sleep)
	})
}
