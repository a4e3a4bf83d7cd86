package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func TestAnOpenCircuitLetsOneModelTryItFromItsProbeOn(t *testing.T) {
	for name, test := range map[string]struct {
		circuit      *CircuitState
		open, probes bool
		recheck      time.Time // zero: the model starts
	}{
		"not known":            {nil, false, false, time.Time{}},
		"closed":               {&CircuitState{ProbeAt: monday}, false, false, time.Time{}},
		"open, a probe later":  {&CircuitState{OpenedAt: monday, ProbeAt: monday.Add(1)}, true, false, monday.Add(1)},
		"open, a probe now":    {&CircuitState{OpenedAt: monday, ProbeAt: monday}, true, true, time.Time{}},
		"open, somebody tries": {&CircuitState{OpenedAt: monday, ProbeAt: monday, Probe: "b"}, true, false, monday.Add(recheckLater)},
	} {
		m := &Model{UID: "a", Payload: "{}", State: State{RefreshAt: monday}}
		must(t, m.Resolve(policyOf(t, `{"circuit":{"key":"{policy}","open_after":"3 of 10","probe":"1m"}}`), schedule.Parse))
		limiters := &Limiters{}
		limiters.Learn(Limiters{Circuits: map[string]*CircuitState{"policy=default": test.circuit}})
		failIf(t, test.circuit != nil && (test.circuit.Open() != test.open || test.circuit.probes(monday) != test.probes), "%s: got %+v", name, test.circuit)
		decision := new(Blockers).StartOrPark(m, limiters, "a1", monday)
		if !test.recheck.IsZero() {
			failIf(t, decision.Event != EventParked || decision.Next.ParkedBy != "circuit:policy=default" || !decision.Recheck.Equal(test.recheck),
				"%s: got %s until %s, want it parked until %s", name, decision.Event, decision.Recheck, test.recheck)
			continue
		}
		failIf(t, decision.Event != EventStart || decision.Probe != test.probes || decision.Next.Counted != "circuit:policy=default", "%s: got %+v", name, decision)
		failIf(t, test.probes && test.circuit.Probe != "a", "%s: the next model of the round tries it too: %+v", name, test.circuit)
	}
	failIf(t, (&Model{}).CircuitKey() != "", "a model without a circuit has a key")
}

func TestAnEndCountsForTheCircuitIfAWorkerHasTried(t *testing.T) {
	counted := policyOf(t, `{"circuit":{"key":"{policy}","open_after":"3 of 10","probe":"1m"}}`)
	some := counted
	some.Circuit = &policy.Circuit{}
	*some.Circuit = *counted.Circuit
	some.Circuit.On = []string{"Busy"}
	for name, test := range map[string]struct {
		policy  policy.Policy
		event   Event
		failure policy.Failure
		want    CircuitOutcome
	}{
		"a success":              {counted, EventSuccess, policy.Failure{}, CircuitAnswered},
		"a doubted success":      {counted, EventSuspect, policy.Failure{}, CircuitAnswered},
		"a failure":              {counted, EventFailure, policy.Failure{}, CircuitFailed},
		"a timeout":              {counted, EventTimeout, policy.TimedOut(), CircuitFailed},
		"deferred too often":     {counted, EventFailure, policy.Failure{Ours: true}, CircuitUnsettled},
		"postponed":              {counted, EventPostponed, policy.Failure{}, CircuitUnsettled},
		"without a circuit":      {policyOf(t, `{}`), EventFailure, policy.Failure{}, CircuitUnsettled},
		"a type that counts":     {some, EventFailure, policy.Failure{ErrorType: "Busy"}, CircuitFailed},
		"a type that counts not": {some, EventFailure, policy.Failure{ErrorType: "Gone"}, CircuitAnswered},
	} {
		m := &Model{Policy: test.policy, State: State{AttemptUID: "x", StartedAt: monday}}
		decision := Decision{Event: test.event, Next: m.State}
		decision.end(m, monday, test.failure, nil)
		failIf(t, decision.CircuitOutcome != test.want, "%s: got %q, want %q", name, decision.CircuitOutcome, test.want)
	}
}

func TestACircuitOfTheQueueIsAcceptedUpToItsBounds(t *testing.T) {
	good := DefaultQueueCircuit()
	for _, test := range []struct {
		change func(*QueueCircuit)
		field  string // "-": it is accepted
	}{
		{func(c *QueueCircuit) { c.Share = 0.05 }, "-"},
		{func(c *QueueCircuit) { c.Share = 0.0499 }, "share"},
		{func(c *QueueCircuit) { c.Share = 1 }, "-"},
		{func(c *QueueCircuit) { c.Share = 1.0001 }, "share"},
		{func(c *QueueCircuit) { c.Window = 10 * time.Second }, "-"},
		{func(c *QueueCircuit) { c.Window = 10*time.Second - 1 }, "window"},
		{func(c *QueueCircuit) { c.Window = 24 * time.Hour }, "-"},
		{func(c *QueueCircuit) { c.Window = 24*time.Hour + 1 }, "window"},
		{func(c *QueueCircuit) { c.Min = 1 }, "-"},
		{func(c *QueueCircuit) { c.Min = 1_000_000 }, "-"},
		{func(c *QueueCircuit) { c.Min = 1_000_001 }, "min"},
	} {
		circuit := good
		test.change(&circuit)
		err := circuit.Validate()
		failIf(t, err == nil != (test.field == "-") || refusedField(err) != test.field, "%+v: got %v, want a refusal of %q", circuit, err, test.field)
	}
}
