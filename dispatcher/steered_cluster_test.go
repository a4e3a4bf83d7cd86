package dispatcher_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestHoldsLimitsAndCircuitsKeepModelsFromStartingInACluster(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Cluster(t))
	d := b.dispatcher(b.Store, dispatcher.Config{})
	k := b.Store.Keys
	b.put("held")
	b.hold("h1", "uid=held", fixture.Start.Add(time.Hour))
	b.round(d)
	equal(t, []string{k.Parked}, b.sets("held"))
	b.broken(d, 2)
	if parked := b.Scores(k.ParkedBy("circuit:host=t1")); len(parked) != 2 {
		t.Errorf("want two parked by the circuit, got %v", parked)
	}
	b.finish("t2/m00")
	b.Clock.Turn(5 * time.Minute)
	b.settle(d)
	b.finish(b.runs()["t1"]...)
	if circuit := b.circuit("host=t1"); circuit["opened_at"] != "" {
		t.Errorf("want it closed by its probe, got %v", circuit)
	}
	b.settle(d)
	b.fleet(`{"timeout":"1m","limits":[{"key":"{label.tenant}","running":2}]}`, uidsOf("t4", 5)...)
	b.settle(d)
	if runs := b.runs()["t4"]; len(runs) != 2 {
		t.Errorf("want two of a tenant at a time, got %v", runs)
	}
	b.finish(b.runs()["t4"]...)
	b.settle(d)
	if runs := b.runs()["t4"]; len(runs) != 2 {
		t.Errorf("want the next two, got %v", runs)
	}
	b.Clock.Turn(time.Hour)
	b.settle(d)
	if b.Attempt("held") == "" {
		t.Errorf("want it started behind the hold, got %v", b.Model("held"))
	}
}
