package model

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// CircuitState is the circuit of a key, as it was read. The zero value is closed.
type CircuitState struct {
	OpenedAt time.Time // zero: it is closed
	ProbeAt  time.Time // from when on one model may start to try it
	Probe    string    // the model that tries it; empty: none
}

// Open reports whether the circuit keeps models from starting.
func (c *CircuitState) Open() bool { return !c.OpenedAt.IsZero() }

// Probes reports whether the next start may try an open circuit.
func (c *CircuitState) Probes(now time.Time) bool {
	return c.Open() && c.Probe == "" && !c.ProbeAt.After(now)
}

// CircuitKey is the key of the circuit of a model; empty: it has none.
func (m *Model) CircuitKey() string {
	if m.Policy.Circuit == nil {
		return ""
	}
	return m.Policy.Circuit.Key.Of(m.Payload, m.Labels, cmp.Or(m.PolicyName, policy.DefaultName))
}

// CircuitOutcome is what the end of an attempt says of its key.
type CircuitOutcome string

// The outcomes.
const (
	CircuitUnsettled CircuitOutcome = ""  // nothing: nobody has tried
	CircuitAnswered  CircuitOutcome = "0" // it answers, also with an error that the circuit does not count
	CircuitFailed    CircuitOutcome = "1"
)

func (m *Model) circuitOutcome(event Event, failure policy.Failure) CircuitOutcome {
	switch {
	case m.Policy.Circuit == nil:
		return CircuitUnsettled
	case event == EventSuccess:
		return CircuitAnswered
	case event != EventFailure && event != EventTimeout:
		return CircuitUnsettled
	case m.Policy.Circuit.Counts(failure.ErrorType):
		return CircuitFailed
	default:
		return CircuitAnswered
	}
}
