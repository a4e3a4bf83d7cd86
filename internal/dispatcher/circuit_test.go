package dispatcher_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

const circuitOfHosts = `{"timeout":"1m","retries":["10m","10m"],"on_exhausted":"give_up","circuit":{"key":"{host(input_url)}","open_after":"3 of 5","on":["http_5xx","timeout"],"probe":"5m"}}`

// broken opens the circuit of host t1 by three failures; the other models of the host wait.
func (b *bundle) broken(d *dispatcher.Dispatcher, waiting int) {
	b.t.Helper()
	uids := uidsOf("t1", 3+waiting)
	b.fleet(circuitOfHosts, uids[:3]...)
	b.settle(d)
	b.failWith(policy.Failure{ErrorType: "http_503"}, uids[:3]...)
	b.fleet(circuitOfHosts, append(uidsOf("t2", 1), uids[3:]...)...)
	b.settle(d)
}

// probed lets a probe try it when its time has come.
func (b *bundle) probed(d *dispatcher.Dispatcher, waiting int) {
	b.t.Helper()
	b.broken(d, waiting)
	b.Clock.Turn(5 * time.Minute)
	b.settle(d)
}

// events are the entries of a stream under these names.
func (b *bundle) events(stream string, names ...string) (found []string) {
	b.t.Helper()
	entries, err := b.Redis.XRange(b.t.Context(), stream, "-", "+").Result()
	must(b.t, err)
	for _, entry := range entries {
		if name, _ := entry.Values["event"].(string); slices.Contains(names, name) {
			found = append(found, name)
		}
	}
	return found
}

func TestAnOpenCircuitParksTheModelsOfItsKeyUncountedAndTellsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.broken(d, 4)
		equal(t, map[string]int{"t2": 1}, counts(b.runs()))
		parked := b.Scores(b.Store.Keys.ParkedBy("circuit:host=t1"))
		failIf(t, len(parked) != 4, "want four parked, got %v", parked)
		hash := b.Model("t1/m03")
		failIf(t, hash["attempt_no"] != "" || hash["failing_since"] != "", "a parked model was counted: %v", hash)
		for _, stream := range []string{b.Store.Keys.Journal, b.Store.Keys.Outbox} {
			diff := cmp.Diff([]string{"circuit_opened"}, b.events(stream, "circuit_opened", "circuit_closed"))
			failIf(t, diff != "", "%s: %s", stream, diff)
		}
	})
}

func TestAProbeWhoseWorkerDiesIsSettledByItsDeadline(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.probed(d, 2)
		b.Redis.Del(t.Context(), b.Store.Keys.Input)
		b.Clock.Turn(time.Minute)
		b.settle(d)
		hash := b.circuit("host=t1")
		failIf(t, hash["probe"] != "" || hash["opened_at"] == "", "the circuit is %v", hash)
		b.Clock.Turn(5 * time.Minute)
		b.settle(d)
		b.running(1, "t1")
	})
}

func (b *bundle) circuit(key string) map[string]string {
	b.t.Helper()
	hash, err := b.Redis.HGetAll(b.t.Context(), b.Store.Keys.Circuit(key)).Result()
	must(b.t, err)
	return hash
}

func TestTwoDispatchersTogetherTryACircuitOnce(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		other := b.dispatcher(b.Store, dispatcher.Config{Owner: "a", NewUID: func() string { return "by-the-other" }})
		b.broken(other, 2)
		b.Clock.Turn(5 * time.Minute)
		once := true
		first := &interrupted{Store: b.Store, before: func() {
			if once { // the one that waits is about to try it, and another becomes due
				once = false
				b.fleet(circuitOfHosts, "t1/new")
				b.round(other)
			}
		}}
		b.round(b.dispatcher(first, dispatcher.Config{Owner: "first"}))
		runs := b.runs()["t1"]
		failIf(t, len(runs) != 1 || runs[0] != "t1/new", "want the first of two probes alone, got %v", runs)
	})
}

func TestOneProbeTriesAnOpenCircuitAndItsSuccessLetsAllGo(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.broken(d, 4)
		must(t, check.Only(flow.Of(b.Store).OpenCircuit(t.Context(), "host=t1", "ann", "they move", b.Clock.Now().Add(5*time.Minute), b.Clock.Now())))
		b.finish("t2/m00")
		b.Clock.Turn(5 * time.Minute)
		b.settle(d)
		probe := b.runs()["t1"]
		if hash := b.circuit("host=t1"); len(probe) != 1 || hash["reason"] != "they move" {
			t.Fatalf("want one probe, and the reason, got %v, %v", probe, hash)
		}
		b.finish(probe...)
		b.settle(d)
		hash := b.circuit("host=t1")
		failIf(t, hash["by"] != "" || hash["reason"] != "", "want neither name nor reason of a closed one, got %v", hash)
		b.running(3, "t1")
		equal(t, []string{"circuit_opened", "circuit_closed"}, b.events(b.Store.Keys.Journal, "circuit_opened", "circuit_closed"))
	})
}

func TestAProbeThatFailsKeepsTheCircuitOpenUntilTheNext(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.probed(d, 2)
		b.failWith(policy.Failure{ErrorType: "http_502"}, b.runs()["t1"]...)
		b.settle(d)
		b.Clock.Turn(4 * time.Minute)
		b.settle(d)
		b.running(0, "t1")
		b.Clock.Turn(time.Minute)
		b.settle(d)
		b.running(1, "t1")
	})
}

func TestPeopleAreToldOfAnOpenCircuitWhileTheLastModelThatWaitedTriesIt(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.probed(d, 1)
		probe := b.runs()["t1"]
		_, told := b.Scores(b.Store.Keys.Blockers)["circuit:host=t1"]
		stopIf(t, len(probe) != 1 || !told, "want one probe, and the circuit among the blockers, got %v, %t", probe, told)
		b.finish(probe...)
		b.Clock.Turn(time.Minute)
		b.settle(d)
		blockers := b.Scores(b.Store.Keys.Blockers)
		failIf(t, len(blockers) != 0, "want a closed circuit forgotten, got %v", blockers)
	})
}

func TestAProbeThatNobodyTriedOrThatWasStoppedIsMadeAgainAtOnce(t *testing.T) {
	for name, end := range map[string]func(*model.Model, time.Time) model.Decision{
		"withdrawn": func(m *model.Model, now time.Time) model.Decision { return m.Withdraw(now) },
		"interrupted": func(m *model.Model, now time.Time) model.Decision {
			return decided(m.Handle(model.Message{Type: model.MessageInterrupted, AttemptUID: m.AttemptUID}, now))
		},
		"disabled": func(m *model.Model, now time.Time) model.Decision { d, _ := m.Disable("", "", now); return d },
		"removed":  func(*model.Model, time.Time) model.Decision { return model.Decision{Event: model.EventRemove} },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				b.probed(d, 2)
				probe := b.runs()["t1"]
				records, err := b.Store.Load(t.Context(), probe)
				stopIf(t, err != nil || len(probe) != 1, "%v, %v", probe, err)
				r := records[probe[0]]
				b.Commit(b.now(), r.Decide(end(&r.Model, b.now()), b.now()))
				b.settle(d)
				b.running(1, "t1")
			})
		})
	}
}

// A worker that postpones says nothing of the key: the circuit stays as it is, and the next probe comes when it has asked for it, at most the pause
// of the circuit later.
func TestAPostponedProbeNeitherClosesTheCircuitNorLetsTheNextStartAtOnce(t *testing.T) {
	for asked, pause := range map[time.Duration]time.Duration{time.Minute: time.Minute, 2 * time.Hour: 5 * time.Minute} {
		t.Run(asked.String(), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				b.probed(d, 3)
				probe, opened := b.runs()["t1"], b.circuit("host=t1")["opened_at"]
				records, err := b.Store.Load(t.Context(), probe)
				stopIf(t, err != nil || len(probe) != 1, "%v, %v", probe, err)
				r := records[probe[0]]
				b.Commit(b.now(), r.Decide(r.Postpone(asked, b.now()), b.now()))
				b.settle(d)
				b.running(0, "t1")
				if hash := b.circuit("host=t1"); hash["opened_at"] != opened || hash["probe"] != "" {
					t.Errorf("want it open as before, and without a probe, got %v", hash)
				}
				b.Clock.Turn(pause - time.Second)
				b.settle(d)
				b.running(0, "t1")
				b.Clock.Turn(time.Second)
				b.settle(d)
				b.running(1, "t1")
				equal(t, []string{"circuit_opened"}, b.events(b.Store.Keys.Journal, "circuit_opened", "circuit_closed"))
			})
		})
	}
}

func TestAFailureThatTheCircuitDoesNotCountClosesIt(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.probed(d, 2)
		b.failWith(policy.Failure{ErrorType: "http_404"}, b.runs()["t1"]...)
		b.settle(d)
		hash := b.circuit("host=t1")
		failIf(t, hash["opened_at"] != "", "the host has answered, and the circuit is %v", hash)
	})
}

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

// running checks how many models of a tenant run.
func (b *bundle) running(want int, tenant string) {
	b.t.Helper()
	runs := b.runs()[tenant]
	failIf(b.t, len(runs) != want, "want %d of %s running, got %v", want, tenant, runs)
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
