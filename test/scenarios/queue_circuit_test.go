package scenarios

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
)

// fleet is a dozen feeds that one retry and then nothing is left for, and the two daemons that refresh them.
type fleet struct {
	*fixture.Queue
	t          *testing.T
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
}

const feeds = 12

func newFleet(t *testing.T, server *testkit.Server) *fleet {
	t.Helper()
	f := &fleet{Queue: fixture.New(t, server), t: t}
	var err error
	if f.dispatcher, err = dispatcher.New(f.Store, dispatcher.Config{}); err != nil {
		t.Fatal(err)
	}
	if f.poller, err = poller.New(f.Store, poller.Config{Owner: "p1"}); err != nil {
		t.Fatal(err)
	}
	for i := range feeds {
		f.Command(fmt.Sprintf(`{"type":"put","uid":"feed_%d","policy":{"timeout":"1m","retries":["1m"],"on_exhausted":"give_up"}}`, i))
	}
	f.poll()
	return f
}

func (f *fleet) poll() {
	f.t.Helper()
	if _, err := f.poller.RunOnce(context.Background()); err != nil {
		f.t.Fatal(err)
	}
}

// round starts what is due and lets every attempt end in the same way.
func (f *fleet) round(after time.Duration, outcome string) {
	f.t.Helper()
	f.Clock.Turn(after)
	f.dispatch()
	for entry, ok := f.Take(); ok; entry, ok = f.Take() {
		f.Say(fixture.Result(outcome, entry.UID, entry.AttemptUID, `"reason":"proxy down"`))
	}
	f.poll()
	f.Clock.Turn(time.Second) // a dispatcher looks at least once a second
	f.dispatch()
}

func (f *fleet) dispatch() {
	f.t.Helper()
	if _, err := f.dispatcher.RunOnce(context.Background()); err != nil {
		f.t.Fatal(err)
	}
}

// incidents lists the events of the outbox that tell of the circuit of the queue or of a disabled model.
func (f *fleet) incidents() (events []string) {
	f.t.Helper()
	entries, err := f.Redis.XRange(context.Background(), f.Store.Keys.Outbox, "-", "+").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, entry := range entries {
		events = append(events, fmt.Sprint(entry.Values["event"]))
	}
	return events
}

func TestInAMassFailureNobodyIsDisabledAndOneIncidentIsTold(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		f := newFleet(t, server)
		if err := f.Store.Fleet().SetQueueCircuit(t.Context(), model.QueueCircuit{On: true, Share: 0.5, Window: 5 * time.Minute, Min: 10}, "ann"); err != nil {
			t.Fatal(err)
		}
		f.round(0, "failure")
		for range 6 { // each of these failures would be final
			f.round(8*time.Minute, "failure")
		}
		if got := f.incidents(); !slices.Equal(got, []string{"circuit_opened"}) {
			t.Fatalf("want one incident and no disabled model, got %v", got)
		}
		f.round(8*time.Minute, "success")
		f.round(time.Second, "success")
		if got := f.incidents(); !slices.Equal(got, []string{"circuit_opened", "circuit_closed"}) {
			t.Fatalf("want the circuit closed by the successes, got %v", got)
		}
		if stats := f.Stats(); stats["held"] < feeds || stats["final_failure"] != 0 {
			t.Errorf("want %d final failures held and none done, got %v", feeds, stats)
		}
	})
}

func TestWithoutTheCircuitOfTheQueueAMassFailureDisablesEveryModel(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		f := newFleet(t, server)
		f.round(0, "failure")
		f.round(8*time.Minute, "failure")
		if stats := f.Stats(); stats["final_failure"] != feeds || len(f.incidents()) != feeds {
			t.Errorf("want %d disabled models, got %v and %v", feeds, stats, f.incidents())
		}
	})
}

func TestACircuitOfTheQueueClosedByHandForgetsWhatItCounted(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		f := newFleet(t, server)
		if err := f.Store.Fleet().SetQueueCircuit(t.Context(), model.QueueCircuit{On: true, Share: 0.5, Window: time.Hour, Min: 10}, "ann"); err != nil {
			t.Fatal(err)
		}
		f.round(0, "failure")
		f.round(time.Second, "failure")
		if status, err := f.Store.Fleet().QueueCircuit(t.Context()); err != nil || !status.Open || status.Failures != feeds || status.Opened != 1 {
			t.Fatalf("want an open circuit with %d failures, got %+v, %v", feeds, status, err)
		}
		if _, err := f.Store.Fleet().CloseCircuit(t.Context(), model.QueueCircuitKey, "ann", f.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		f.round(2*time.Second, "success") // nothing is due: only the circuit is measured
		if status, err := f.Store.Fleet().QueueCircuit(t.Context()); err != nil || status.Open || status.Failures != 0 {
			t.Errorf("want a closed circuit that has counted nothing, got %+v, %v", status, err)
		}
	})
}

func TestWhatSucceedsGoesOnWhileTheCircuitOfTheQueueIsOpen(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		f := newFleet(t, server)
		if _, err := f.Store.Fleet().OpenCircuit(t.Context(), model.QueueCircuitKey, "ann", "", f.Clock.Now().Add(time.Hour), f.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		f.round(0, "success")
		for i := range feeds {
			f.Command(fmt.Sprintf(`{"type":"run","uid":"feed_%d"}`, i))
		}
		f.poll()
		f.round(time.Second, "success")
		if stats := f.Stats(); stats["success"] != 2*feeds || stats["parked"] != 0 {
			t.Errorf("want all refreshed twice and none parked, got %v", stats)
		}
		if got := f.incidents(); !slices.Equal(got, []string{"circuit_opened"}) {
			t.Errorf("want it open still, and told once, got %v", got)
		}
	})
}
