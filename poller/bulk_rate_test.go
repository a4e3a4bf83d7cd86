package poller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
)

// unsteady loses its connection now and then: at each third call of one kind.
type unsteady struct {
	*store.Store
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

func (s unsteady) MoveBulk(ctx context.Context, bulk *store.Bulk, now time.Time) (bool, error) {
	if s.fails("move") {
		return false, errRedis
	}
	return s.Store.MoveBulk(ctx, bulk, now)
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
						p := b.poller(unsteady{b.Store, &calls, kind}, poller.Config{Owner: fmt.Sprint("p", i/50%2)})
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

// fleet saves so many models of a tenant.
func (b *bundle) fleet(n int, tenant string) (uids []string) {
	b.t.Helper()
	for i := range n {
		uids = append(uids, fmt.Sprintf("%s-%d", tenant, i))
		b.Command(yearlyModel(uids[i], tenant))
	}
	b.apply()
	return uids
}

// begin begins a bulk of this part.
func (b *bundle) begin(id string, action model.BulkAction, selector, rate string) {
	b.t.Helper()
	wish := model.Bulk{Action: action, By: "ops"}
	var err error
	if wish.Selector, err = model.ParseSelector(selector); err == nil {
		wish.Rate, err = model.ParseBulkRate(rate)
	}
	if err == nil {
		_, err = b.Store.Fleet().BeginBulk(b.t.Context(), id, wish)
	}
	must(b.t, err)
}

// bulk reads a bulk that is there.
func (b *bundle) bulk(id string) store.Bulk {
	b.t.Helper()
	bulk, found, err := b.Store.Fleet().ReadBulk(b.t.Context(), id)
	stopIf(b.t, err != nil || !found, "want the bulk %s, found %t, %v", id, found, err)
	return bulk
}

// finish lets a poller take steps until the bulk is over.
func (b *bundle) finish(p *poller.Poller, id string) store.Bulk {
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
	return store.Bulk{}
}

// expectBulk compares the counts of a bulk.
func (b *bundle) expectBulk(bulk store.Bulk, picked, done int64, others map[model.Outcome]int64) {
	b.t.Helper()
	got := fmt.Sprint(bulk.Picked, bulk.Done, bulk.Others)
	want := fmt.Sprint(picked, done, others)
	failIf(b.t, got != want, "%s: want picked, done and others %s, found %s", bulk.ID, want, got)
}

// cancelling cancels the bulk when it has just been read for a step.
type cancelling struct{ *store.Store }

func (s cancelling) Bulks(ctx context.Context) ([]store.Bulk, error) {
	bulks, err := s.Store.Bulks(ctx)
	for _, bulk := range bulks {
		if _, err := s.Fleet().CancelBulk(ctx, bulk.ID); err != nil {
			return nil, err
		}
	}
	return bulks, err
}

func TestABulkWithARateThatIsCancelledWhileAStepBeginsChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.fleet(5, "t1")
		b.begin("x", model.BulkRun, "tenant=t1", "5/s")
		b.roundOf(b.poller(cancelling{b.Store}, poller.Config{}))
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
