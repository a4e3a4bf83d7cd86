package poller_test

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
)

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
	if err != nil || !found {
		b.t.Fatalf("want the bulk %s, found %t, %v", id, found, err)
	}
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

// work hands out what is due and lets all attempts succeed.
func (b *bundle) work() {
	b.t.Helper()
	b.dispatch()
	for entry, there := b.Take(); there; entry, there = b.Take() {
		b.Say(fixture.Result("success", entry.UID, entry.AttemptUID))
	}
	b.apply()
}

// expectBulk compares the counts of a bulk.
func (b *bundle) expectBulk(bulk store.Bulk, picked, done int64, others map[model.Outcome]int64) {
	b.t.Helper()
	got := fmt.Sprint(bulk.Picked, bulk.Done, bulk.Others)
	if want := fmt.Sprint(picked, done, others); got != want {
		b.t.Errorf("%s: want picked, done and others %s, found %s", bulk.ID, want, got)
	}
}
