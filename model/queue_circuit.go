package model

import (
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// QueueCircuitKey is the key of the circuit of the queue. No policy has such a key.
const QueueCircuitKey = "queue"

// QueueCircuit is the circuit of a queue. When more than a share of attempts fail within a window, the outage is taken to be on our side: while
// it is open, nobody is disabled and retries are rarer. It parks nothing, so that what still succeeds goes on.
type QueueCircuit struct {
	On     bool // it opens and closes by itself
	Open   bool
	Share  float64       // of failed attempts that opens it, 0 to 1; at less than half of it it closes
	Window time.Duration // over which attempts are counted
	Min    int           // attempts within the window below which it does not open
}

// DefaultQueueCircuit is what the circuit of a queue is set to until somebody sets it. It is off.
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

// heldDelay is the least delay of a retry while the circuit of the queue is open, and that of a final failure held back.
const heldDelay = 5 * time.Minute

// heldSpread is the jitter of a held failure: what failed together must not come back together.
const heldSpread = 0.5
