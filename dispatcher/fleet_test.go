package dispatcher_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// fleet saves one-shots that are due now under a policy, each with the labels of its name: "t1/m1" has tenant t1 and the host t1.
func (b *bundle) fleet(text string, uids ...string) {
	b.t.Helper()
	byTenant := map[string][]string{}
	for _, uid := range uids {
		byTenant[uid[:2]] = append(byTenant[uid[:2]], uid)
	}
	for _, tenant := range slices.Sorted(maps.Keys(byTenant)) {
		definition := model.Definition{Payload: `{"input_url":"http://` + tenant + `/x"}`, Labels: map[string]string{"tenant": tenant}}
		b.save(b.parse(text), definition, byTenant[tenant]...)
	}
}

// uidsOf are uids of models of one tenant.
func uidsOf(tenant string, n int) (uids []string) {
	for i := range n {
		uids = append(uids, fmt.Sprintf("%s/m%02d", tenant, i))
	}
	return uids
}

// finish answers the attempts of models, as a poller does.
func (b *bundle) finish(uids ...string) {
	b.t.Helper()
	b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Succeed(now, nil) }, uids...)
	b.Redis.Del(b.t.Context(), b.Store.Keys.Input)
}

func (b *bundle) failWith(failure policy.Failure, uids ...string) {
	b.t.Helper()
	b.decide(func(r *store.Record, now time.Time) model.Decision { return r.Fail(failure, now) }, uids...)
}

// runs are the models that run, by tenant.
func (b *bundle) runs() map[string][]string {
	b.t.Helper()
	all := map[string][]string{}
	for _, uid := range slices.Sorted(maps.Keys(b.Scores(b.Store.Keys.Running))) {
		all[uid[:2]] = append(all[uid[:2]], uid)
	}
	return all
}

func counts(runs map[string][]string) map[string]int {
	n := map[string]int{}
	for tenant, uids := range runs {
		n[tenant] = len(uids)
	}
	return n
}

// settle lets rounds follow until there is nothing left to do.
func (b *bundle) settle(d *dispatcher.Dispatcher) (total dispatcher.Round) {
	b.t.Helper()
	for range 100 {
		round := b.round(d)
		total.Started, total.Parked, total.Released, total.TimedOut = total.Started+round.Started, total.Parked+round.Parked, total.Released+round.Released, total.TimedOut+round.TimedOut
		if round.Started+round.Parked+round.Limited+round.Released+round.TimedOut+round.Refused == 0 && round.Sleep > 0 {
			return total
		}
	}
	b.t.Fatal("the rounds do not end")
	return total
}

func TestHoldsLimitsAndCircuitsKeepModelsFromStartingInACluster(t *testing.T) {
	long.Only(t)
	t.Parallel()
	b := setup(t, testkit.Cluster(t))
	d := b.dispatcher(b.Store, dispatcher.Config{})
	k := b.Store.Keys
	b.put("held")
	b.hold("h1", "uid=held", fixture.Start.Add(time.Hour))
	b.round(d)
	equal(t, []string{k.Parked}, b.sets("held"))
	b.broken(d, 2)
	parked := b.Scores(k.ParkedBy("circuit:host=t1"))
	failIf(t, len(parked) != 2, "want two parked by the circuit, got %v", parked)
	b.finish("t2/m00")
	b.Clock.Turn(5 * time.Minute)
	b.settle(d)
	b.finish(b.runs()["t1"]...)
	circuit := b.circuit("host=t1")
	failIf(t, circuit["opened_at"] != "", "want it closed by its probe, got %v", circuit)
	b.settle(d)
	b.fleet(`{"timeout":"1m","limits":[{"key":"{label.tenant}","running":2}]}`, uidsOf("t4", 5)...)
	b.settle(d)
	runs := b.runs()["t4"]
	failIf(t, len(runs) != 2, "want two of a tenant at a time, got %v", runs)
	b.finish(b.runs()["t4"]...)
	b.settle(d)
	runs = b.runs()["t4"]
	failIf(t, len(runs) != 2, "want the next two, got %v", runs)
	b.Clock.Turn(time.Hour)
	b.settle(d)
	failIf(t, b.Attempt("held") == "", "want it started behind the hold, got %v", b.Model("held"))
}
