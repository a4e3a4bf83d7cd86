package scenarios

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

const feeds = 12

// onFleet runs a story of a dozen feeds that have one retry left and then nothing.
func onFleet(t *testing.T, tell func(t *testing.T, q *policyQueue)) {
	t.Helper()
	onQueue(t, func(t *testing.T, q *policyQueue) {
		for i := range feeds {
			q.Command(fmt.Sprintf(`{"type":"put","uid":"feed_%d","policy":{"timeout":"1m","retries":["1m"],"on_exhausted":"give_up"}}`, i))
		}
		q.poll()
		tell(t, q)
	})
}

// round starts the due models and lets every attempt end in the same way.
func (q *policyQueue) round(after time.Duration, outcome string) {
	q.t.Helper()
	q.Clock.Turn(after)
	q.dispatch()
	for entry, ok := q.Take(); ok; entry, ok = q.Take() {
		q.Say(fixture.Result(outcome, entry.UID, entry.AttemptUID, `"reason":"proxy down"`))
	}
	q.poll()
	q.Clock.Turn(time.Second) // a dispatcher looks at least once a second
	q.dispatch()
}

func (q *policyQueue) breaks(window time.Duration) {
	q.t.Helper()
	must(q.t, flow.Of(q.Store).SetQueueCircuit(q.t.Context(), model.QueueCircuit{On: true, Share: 0.5, Window: window, Min: 10}, "ann"))
}

// expectIncidents wants that the outbox reports the circuit of the queue, and nothing else.
func (q *policyQueue) expectIncidents(want ...string) {
	q.t.Helper()
	got := q.told(q.Store.Keys.Outbox)
	stopIf(q.t, !slices.Equal(got, want), "want the incidents %v and no disabled model, got %v", want, got)
}

const opened, closed = "circuit_opened <nil>", "circuit_closed <nil>"

func TestInAMassFailureNobodyIsDisabledAndOneIncidentIsTold(t *testing.T) {
	onFleet(t, func(t *testing.T, q *policyQueue) {
		q.breaks(5 * time.Minute)
		q.round(0, "failure")
		for range 6 { // each of these failures would be final
			q.round(8*time.Minute, "failure")
		}
		q.expectIncidents(opened)
		q.round(8*time.Minute, "success")
		q.round(time.Second, "success")
		q.expectIncidents(opened, closed)
		stats := q.Stats()
		failIf(t, stats["held"] < feeds || stats["final_failure"] != 0, "want %d final failures held and none done, got %v", feeds, stats)
	})
}

func TestWithoutTheCircuitOfTheQueueAMassFailureDisablesEveryModel(t *testing.T) {
	onFleet(t, func(t *testing.T, q *policyQueue) {
		q.round(0, "failure")
		q.round(8*time.Minute, "failure")
		if stats, told := q.Stats(), q.told(q.Store.Keys.Outbox); stats["final_failure"] != feeds || len(told) != feeds {
			t.Errorf("want %d disabled models, got %v and %v", feeds, stats, told)
		}
	})
}

func TestACircuitOfTheQueueClosedByHandForgetsWhatItCounted(t *testing.T) {
	onFleet(t, func(t *testing.T, q *policyQueue) {
		q.breaks(time.Hour)
		q.round(0, "failure")
		q.round(time.Second, "failure")
		status, err := flow.Of(q.Store).QueueCircuit(t.Context())
		stopIf(t, err != nil || !status.Open || status.Failures != feeds || status.Opened != 1,
			"want an open circuit with %d failures, got %+v, %v", feeds, status, err)
		_, err = flow.Of(q.Store).CloseCircuit(t.Context(), model.QueueCircuitKey, "ann", q.Clock.Now())
		stopIf(t, err != nil, "%v", err)
		q.round(2*time.Second, "success") // nothing is due: only the circuit is measured
		status, err = flow.Of(q.Store).QueueCircuit(t.Context())
		failIf(t, err != nil || status.Open || status.Failures != 0, "want a closed circuit that has counted nothing, got %+v, %v", status, err)
	})
}

func TestWhatSucceedsGoesOnWhileTheCircuitOfTheQueueIsOpen(t *testing.T) {
	onFleet(t, func(t *testing.T, q *policyQueue) {
		_, err := flow.Of(q.Store).OpenCircuit(t.Context(), model.QueueCircuitKey, "ann", "", q.Clock.Now().Add(time.Hour), q.Clock.Now())
		stopIf(t, err != nil, "%v", err)
		q.round(0, "success")
		for i := range feeds {
			q.Command(fmt.Sprintf(`{"type":"run","uid":"feed_%d"}`, i))
		}
		q.poll()
		q.round(time.Second, "success")
		stats := q.Stats()
		failIf(t, stats["success"] != 2*feeds || stats["parked"] != 0, "want all refreshed twice and none parked, got %v", stats)
		q.expectIncidents(opened) // it is open still
	})
}
