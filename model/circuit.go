package model

import (
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// CircuitState is the circuit of a key, as it was read. The zero value is closed.
type CircuitState struct {
	OpenedAt time.Time `json:"opened_at"` // zero: it is closed
	ProbeAt  time.Time `json:"probe_at"`  // from when on one model may start to try it
	Probe    string    `json:"probe"`     // the model that tries it; empty: none
}

// Open reports whether the circuit keeps models from starting.
func (c *CircuitState) Open() bool { return !c.OpenedAt.IsZero() }

// probes reports whether the next start may try an open circuit.
func (c *CircuitState) probes(now time.Time) bool {
	return c.Open() && c.Probe == "" && !c.ProbeAt.After(now)
}

// CircuitKey is the key of the circuit of a model; empty: it has none.
func (m *Model) CircuitKey() string {
	if m.Policy.Circuit == nil {
		return ""
	}
	return m.Policy.Circuit.Key.Of(m.Payload, m.Labels, m.PolicyKey())
}

// CircuitOutcome is the effect of an attempt's end on the circuit of its key.
type CircuitOutcome string

// The outcomes.
const (
	CircuitUnsettled CircuitOutcome = ""  // nothing: nobody has tried
	CircuitAnswered  CircuitOutcome = "0" // it answers, also with an error that the circuit does not count
	CircuitFailed    CircuitOutcome = "1"
)

// QueueCircuitKey is the key of the circuit of the queue. No policy has such a key.
const QueueCircuitKey = "queue"

// QueueCircuit is the circuit of a queue. It opens when more than a share of attempts fail within a window: the fault is ours then. While it is
// open, nobody is disabled and retries are rarer. It parks nothing.
type QueueCircuit struct {
	On     bool // it opens and closes by itself
	Open   bool
	Share  float64       // of failed attempts that opens it, 0 to 1; at less than half of it it closes
	Window time.Duration // over which attempts are counted
	Min    int           // attempts within the window below which it does not open
}

// DefaultQueueCircuit is the circuit of a queue until somebody sets it. It is off.
func DefaultQueueCircuit() QueueCircuit {
	return QueueCircuit{Share: 0.5, Window: 5 * time.Minute, Min: 20}
}

// Validate reports the first field out of range.
func (c QueueCircuit) Validate() error {
	switch {
	case !(c.Share >= 0.05 && c.Share <= 1):
		return document.Refuse("share", "5% to 100%", document.Found(c.Share))
	case c.Window < 10*time.Second || c.Window > 24*time.Hour:
		return document.Refuse("window", "10s to 1d", document.FormatDuration(c.Window))
	case c.Min < 1 || c.Min > 1_000_000:
		return document.Refuse("min", "1 to 1000000 attempts", document.Found(c.Min))
	default:
		return nil
	}
}

// heldDelay is the least delay of a retry or of a held failure while the circuit of the queue is open.
const heldDelay = 5 * time.Minute

const heldSpread = 0.5
