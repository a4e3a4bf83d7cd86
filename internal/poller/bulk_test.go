package poller_test

import (
	"context"
	"fmt"
	"github.com/redis/go-redis/v9"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestABulkRunStartsWhatItPicksAndCountsWhatIsRefused(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		uids := b.fleet(30, "t1")
		b.fleet(5, "t2")
		b.apply(`{"type":"run","uid":"t1-0"}`)
		b.dispatch()
		b.apply(`{"type":"disable","uid":"t1-1"}`)
		b.Redis.SAdd(t.Context(), b.Store.Keys.Label("tenant=t1"), "t2-0", "nobody") // the hash decides
		b.Clock.Turn(time.Second)
		b.begin("x", model.BulkRun, "tenant=t1", "")
		bulk := b.finish(b.poller(b.Store, poller.Config{Batch: 7}), "x")
		b.expectBulk(bulk, 30, 28, map[model.Outcome]int64{model.Busy: 1, model.Stopped: 1})
		failIf(t, bulk.Refusals() != 2 || bulk.Size != 32 || bulk.Seen < 31, "want 2 refused of about 32, found %+v", bulk)
		if urgent := b.Scores(b.Store.Keys.Urgent); len(urgent) != 28 || slices.ContainsFunc(uids[2:], func(uid string) bool { return urgent[uid] == 0 }) {
			t.Errorf("want the 28 others of t1 urgent, found %v", urgent)
		}
		counted := b.Stats()["run"]
		failIf(t, counted != 1+28, "want 29 runs counted, found %d", counted)
		ttl := b.Redis.TTL(t.Context(), b.Store.Keys.Bulk("x")).Val()
		failIf(t, ttl > 24*time.Hour || ttl < 24*time.Hour-time.Minute, "want it kept for a day, found %v", ttl)
		if ended, err := flow.Of(b.Store).EndedBulks(t.Context()); err != nil || len(ended) != 1 || ended[0].ID != "x" || ended[0].By != "ops" {
			t.Errorf("want it among those that are over, found %+v, %v", ended, err)
		}
	})
}

func TestEachActionDoesInBulkWhatItDoesToOneModel(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(20, "t1")
		b.fleet(3, "t2")
		p := b.poller(b.Store, poller.Config{Batch: 6})
		for _, step := range []struct {
			action   model.BulkAction
			selector string
			done     int64
			want     map[string]int // counters
		}{
			{model.BulkDisable, "tenant=t1", 20, map[string]int{"disable": 20}},
			{model.BulkDisable, "uid=t?-1", 1, map[string]int{"disable": 21}},
			{model.BulkEnable, "status=disabled,uid=t1-1*", 11, map[string]int{"enable": 11}},
			{model.BulkRemove, "status=disabled", 10, map[string]int{"remove": 10}},
			{model.BulkRemove, "", 13, map[string]int{"remove": 23}},
		} {
			id := string(step.action) + step.selector
			b.begin(id, step.action, step.selector, "")
			bulk := b.finish(p, id)
			failIf(t, bulk.Done != step.done || bulk.Refusals() != 0, "%s: want %d done, found %+v", id, step.done, bulk)
			for name, want := range step.want {
				got := b.Stats()[name]
				failIf(t, got != want, "%s: want %d counted as %s, found %d", id, want, name, got)
			}
		}
	})
}

func TestABulkNamesAModelThatIsNotStored(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(2, "t1")
		b.begin("x", model.BulkRun, "uid=t1-0|nobody", "")
		b.expectBulk(b.finish(b.poller(b.Store, poller.Config{}), "x"), 2, 1, map[model.Outcome]int64{model.UnknownModel: 1})
	})
}

func TestABulkThatIsCancelledStopsAtItsNextStep(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(40, "t1")
		p := b.poller(b.Store, poller.Config{Batch: 10})
		b.begin("x", model.BulkRun, "tenant=t1", "5/s")
		b.roundOf(p)
		before := b.Stats()["run"]
		cancelled, err := flow.Of(b.Store).CancelBulk(t.Context(), "x")
		stopIf(t, err != nil || !cancelled, "want it cancelled, found %t, %v", cancelled, err)
		for range 5 {
			b.Clock.Turn(time.Second)
			round := b.roundOf(p)
			failIf(t, round.Bulks, "want no more steps, found %+v", round)
		}
		after := b.Stats()["run"]
		failIf(t, after != before || before == 0, "want the %d runs of before, found %d", before, after)
		bulk := b.bulk("x")
		failIf(t, !bulk.Cancelled || bulk.EndedAt.IsZero() || bulk.Done != int64(before), "want it cancelled with %d done, found %+v", before, bulk)
		again, err := flow.Of(b.Store).CancelBulk(t.Context(), "x")
		failIf(t, err != nil || again, "want nothing left to cancel, found %t, %v", again, err)
	})
}

// What another release has begun is left to it, and keeps nobody waiting.
func TestABulkThatCannotBeReadIsPassedOver(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(3, "t1")
		b.begin("a", model.BulkAction("polish"), "", "")
		b.begin("b", model.BulkRun, "", "")
		b.Redis.HSet(t.Context(), b.Store.Keys.Bulk("b"), "selector", "phase=of the moon")
		b.Redis.ZAdd(t.Context(), b.Store.Keys.Bulks, redis.Z{Member: "gone"})
		b.begin("x", model.BulkRun, "", "")
		b.finish(b.poller(b.Store, poller.Config{}), "x")
		for id, want := range map[string]string{"a": `found "polish"`, "b": "phase"} {
			bulk := b.bulk(id)
			failIf(t, !strings.Contains(bulk.Problem, want) || bulk.Seen != 0, "%s: want it left with the problem %s, found %+v", id, want, bulk)
		}
	})
}

func TestABulkMeetsWhatIsNoModel(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(2, "t1")
		b.Redis.Set(t.Context(), b.Store.Keys.Model("odd"), "x", 0)
		b.begin("x", model.BulkRemove, "", "")
		b.expectBulk(b.finish(b.poller(b.Store, poller.Config{}), "x"), 3, 2, map[model.Outcome]int64{model.Broken: 1})
	})
}

// A step that was not noted is repeated: by then models may wait for a dispatcher, be queued, or be done long ago.
func TestABulkThatWasKilledStartsNoModelTwice(t *testing.T) {
	for name, meanwhile := range map[string]func(*bundle){
		"nobody was there":           func(*bundle) {},
		"all stand in line":          (*bundle).dispatch,
		"all were refreshed already": (*bundle).work,
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				uids := b.fleet(30, "t1")
				b.apply(`{"type":"run","uid":"t1-0"}`)
				b.work() // a ticket was drawn
				b.begin("x", model.BulkRun, "tenant=t1", "")
				b.roundOf(b.poller(&lossy{Part: fixture.Whole(b.Store), commits: 99}, poller.Config{Batch: 10}))
				bulk := b.bulk("x")
				stopIf(t, bulk.Seen != 0, "want nothing noted, found %+v", bulk)
				meanwhile(b)
				b.Clock.Turn(2 * time.Second)
				b.expectBulk(b.finish(b.poller(b.Store, poller.Config{Batch: 10}), "x"), 30, 30, nil)
				b.work()
				starts := map[string]int{}
				entries, err := b.Redis.XRange(t.Context(), b.Store.Keys.Journal, "-", "+").Result()
				must(t, err)
				for _, entry := range entries {
					if entry.Values["event"] == "start" {
						starts[entry.Values["uid"].(string)]++
					}
				}
				for _, uid := range uids[1:] {
					failIf(t, starts[uid] != 1, "%s: want it started once, found %d times", uid, starts[uid])
				}
				failIf(t, starts["t1-0"] != 2 || b.Stats()["run"] != 31,
					"want t1-0 started by hand and by the bulk, and 31 runs, found %d and %d", starts["t1-0"], b.Stats()["run"])
			})
		})
	}
}

func TestABulkThatMeetsAnErrorOfRedisGoesOn(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(30, "t1")
		b.begin("x", model.BulkRun, "tenant=t1", "")
		round := b.roundOf(b.poller(refuses{b.Store}, poller.Config{}))
		failIf(t, round.Bulks, "want no step at once behind an error, found %+v", round)
		b.Clock.Turn(time.Second)
		b.expectBulk(b.finish(b.poller(b.Store, poller.Config{}), "x"), 30, 30, nil)
	})
}

func TestEachPartCarriesOutItsShareOfABulk(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		selector, err := model.ParseSelector("tenant=t1")
		must(t, err)
		for part, store := range p.parts {
			for _, uid := range p.in(part, 10) {
				p.push(store.Keys.Control, yearlyModel(uid, "t1"))
			}
		}
		for range 4 {
			p.round(0)
			p.round(1)
		}
		for _, store := range p.parts {
			must(t, check.Only(flow.Of(store).BeginBulk(t.Context(), "x", model.Bulk{Action: model.BulkRun, Selector: selector})))
		}
		for range 4 {
			p.round(0)
			p.round(1)
		}
		for part, store := range p.parts {
			p.expectStats(part, map[string]int64{"create": 10, "run": 10})
			bulk, _, err := flow.Of(store).ReadBulk(t.Context(), "x")
			diff := cmp.Diff(int64(10), bulk.Done)
			failIf(t, err != nil || diff != "" || bulk.EndedAt.IsZero(), "part %d: %v %s %+v", part, err, diff, bulk)
		}
	})
}

// unsteady loses its connection now and then: at each third call of one kind.
type unsteady struct {
	fixture.Part
	calls *int
	kind  string
}

func (s unsteady) fails(kind string) bool {
	if kind != s.kind {
		return false
	}
	*s.calls++
	return *s.calls%3 == 0
}

func (s unsteady) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	codes, err := s.Store.Commit(ctx, batch)
	if len(batch.Items) > 0 && s.fails("commit") {
		return nil, errRedis // and nobody hears that it was done
	}
	return codes, err
}

func (s unsteady) MoveBulk(ctx context.Context, bulk *flow.Bulk, now time.Time) (bool, error) {
	if s.fails("move") {
		return false, errRedis
	}
	return s.Flow.MoveBulk(ctx, bulk, now)
}

func TestTheRateOfABulkHoldsOverKillsAndPollers(t *testing.T) {
	for _, kind := range []string{"none", "commit", "move"} {
		for _, rate := range []struct {
			text  string
			count int
			per   time.Duration
			turn  time.Duration // from one round to the next
		}{{"3/s", 3, time.Second, 170 * time.Millisecond}, {"2/m", 2, time.Minute, 1700 * time.Millisecond}} {
			t.Run(kind+" fails, "+rate.text, func(t *testing.T) {
				both(t, func(t *testing.T, b *bundle) {
					b.fleet(25, "t1")
					b.begin("x", model.BulkRun, "tenant=t1", rate.text)
					began, calls := b.Clock.Now(), 0
					for i := 0; b.bulk("x").EndedAt.IsZero(); i++ {
						stopIf(t, i > 20_000, "want it over, found %+v", b.bulk("x"))
						p := b.poller(unsteady{fixture.Whole(b.Store), &calls, kind}, poller.Config{Owner: fmt.Sprint("p", i/50%2)})
						b.roundOf(p)
						elapsed := b.Clock.Now().Sub(began)
						burst := 1 + int(2*time.Second*time.Duration(rate.count)/rate.per)
						most := burst + int(elapsed*time.Duration(rate.count)/rate.per)
						started := b.Stats()["run"]
						stopIf(t, started > most, "%v after it began: want at most %d runs, found %d", elapsed, most, started)
						b.Clock.Turn(rate.turn)
					}
					started := b.Stats()["run"]
					failIf(t, started != 25, "want each model run once, found %d runs", started)
					least := time.Duration(25-10) * rate.per / time.Duration(rate.count)
					if took := b.Clock.Now().Sub(began); kind == "none" && (took < least || took > 2*least+20*time.Second) { // two leases
						t.Errorf("want about %v, found %v", least, took)
					}
				})
			})
		}
	}
}

func TestSeveralBulksTakeTurns(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(30, "t1")
		for _, id := range []string{"x", "y", "z"} {
			b.begin(id, model.BulkRun, "tenant=t1", "1000/s")
		}
		b.Clock.Turn(time.Second)
		p := b.poller(b.Store, poller.Config{Batch: 5})
		for range 3 {
			b.roundOf(p)
		}
		for _, id := range []string{"x", "y", "z"} {
			bulk := b.bulk(id)
			failIf(t, bulk.Seen != 5, "%s: want a step taken, found %+v", id, bulk)
		}
	})
}

// yearlyModel is the command that saves a model with a far schedule, a tenant and a retry.
func yearlyModel(uid, tenant string) string {
	return fmt.Sprintf(`{"type":"put","uid":%q,"rrule":"FREQ=YEARLY","labels":{"tenant":%q},"policy":{"timeout":"1m","retries":["30s"],"on_exhausted":"give_up"}}`, uid, tenant)
}

func (b *bundle) fleet(n int, tenant string) (uids []string) {
	b.t.Helper()
	for i := range n {
		uids = append(uids, fmt.Sprintf("%s-%d", tenant, i))
		b.Command(yearlyModel(uids[i], tenant))
	}
	b.apply()
	return uids
}

func (b *bundle) begin(id string, action model.BulkAction, selector, rate string) {
	b.t.Helper()
	wish := model.Bulk{Action: action, By: "ops"}
	var err error
	if wish.Selector, err = model.ParseSelector(selector); err == nil {
		wish.Rate, err = policy.ReadRate(rate)
	}
	if err == nil {
		_, err = flow.Of(b.Store).BeginBulk(b.t.Context(), id, wish)
	}
	must(b.t, err)
}

func (b *bundle) bulk(id string) flow.Bulk {
	b.t.Helper()
	bulk, found, err := flow.Of(b.Store).ReadBulk(b.t.Context(), id)
	stopIf(b.t, err != nil || !found, "want the bulk %s, found %t, %v", id, found, err)
	return bulk
}

// finish lets a poller take steps until the bulk is over.
func (b *bundle) finish(p *poller.Poller, id string) flow.Bulk {
	b.t.Helper()
	for range 1000 {
		if bulk := b.bulk(id); !bulk.EndedAt.IsZero() {
			return bulk
		}
		if round := b.roundOf(p); !round.Bulks {
			b.Clock.Turn(time.Second)
		}
	}
	b.t.Fatalf("want the bulk over, found %+v", b.bulk(id))
	return flow.Bulk{}
}

func (b *bundle) expectBulk(bulk flow.Bulk, picked, done int64, others map[model.Outcome]int64) {
	b.t.Helper()
	got := fmt.Sprint(bulk.Picked, bulk.Done, bulk.Others)
	want := fmt.Sprint(picked, done, others)
	failIf(b.t, got != want, "%s: want picked, done and others %s, found %s", bulk.ID, want, got)
}

// cancelling cancels the bulk when it has just been read for a step.
type cancelling struct{ fixture.Part }

func (s cancelling) Bulks(ctx context.Context) ([]flow.Bulk, error) {
	bulks, err := s.Flow.Bulks(ctx)
	for _, bulk := range bulks {
		if _, err := s.CancelBulk(ctx, bulk.ID); err != nil {
			return nil, err
		}
	}
	return bulks, err
}

func TestABulkWithARateThatIsCancelledWhileAStepBeginsChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(5, "t1")
		b.begin("x", model.BulkRun, "tenant=t1", "5/s")
		b.roundOf(b.poller(cancelling{fixture.Whole(b.Store)}, poller.Config{}))
		runs := b.Stats()["run"]
		failIf(t, runs != 0 || !b.bulk("x").Cancelled, "want nothing run, found %d and %+v", runs, b.bulk("x"))
	})
}

func (b *bundle) work() {
	b.t.Helper()
	b.dispatch()
	for entry, there := b.Take(); there; entry, there = b.Take() {
		b.Say(fixture.Result("success", entry.UID, entry.AttemptUID))
	}
	b.apply()
}
