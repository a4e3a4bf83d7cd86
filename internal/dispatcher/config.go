package dispatcher

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/store"
)

// Config tunes a dispatcher. The zero value is usable.
type Config struct {
	// Owner names the dispatcher among those that share the work; no two may have the same name. Defaults to host:pid
	// and some random letters.
	Owner string
	// Batch is how many models one round reads of each kind, due and expired. 1 to 1,000. Defaults to 500.
	Batch int
	// MaxQueued is the high-water mark of the input list: no attempt is started while so many wait, so that a deadline is
	// not spent waiting in line. At least 1. Defaults to 1,000.
	MaxQueued int
	// Tick is the longest sleep between two rounds. 10 ms to 1 min. Defaults to 1 s.
	Tick time.Duration
	// FullTick is the sleep while the input list is full. At most Tick. Defaults to 20 ms.
	FullTick time.Duration
	// WorkerLease is how long a worker may give no heartbeat before what it had taken is requeued. At least four ticks and four heartbeats of the
	// workers, at most 1 h. Defaults to 5 s, or four longer ticks. Too short a lease costs work done twice, never a result.
	WorkerLease time.Duration
	// Backoff is the first pause after an error of Redis; it doubles up to Tick. Defaults to 50 ms.
	Backoff time.Duration
	// NewUID makes the uid of an attempt, at least 128 random bits. Defaults to crypto/rand, 26 letters and digits.
	NewUID func() string
	// Log receives one line per round that changed anything, every error, sampled, and what becomes of models: final failures and timed-out
	// attempts as warnings, sampled, and each transition at debug level. Defaults to none.
	Log *zerolog.Logger
	// Clock tells how long errors last, for the log only. Defaults to none.
	Clock func() time.Time
	// Observe is called when a round begins, and what it returns when that round has ended. Both must be quick. Defaults to
	// nil: nobody is told.
	Observe func() (ended func(error))
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Owner = cmp.Or(c.Owner, store.NewOwner(c.Clock))
	c.Batch = cmp.Or(c.Batch, 500)
	c.MaxQueued = cmp.Or(c.MaxQueued, 1000)
	c.Tick = cmp.Or(c.Tick, time.Second)
	c.FullTick = cmp.Or(c.FullTick, min(20*time.Millisecond, c.Tick))
	c.WorkerLease = cmp.Or(c.WorkerLease, max(5*time.Second, 4*c.Tick))
	c.Backoff = cmp.Or(c.Backoff, min(50*time.Millisecond, c.Tick))
	c.Log = cmp.Or(c.Log, new(zerolog.Nop()))
	if c.NewUID == nil {
		c.NewUID = func() string { return strings.ToLower(rand.Text()) }
	}
	if c.Observe == nil {
		c.Observe = func() func(error) { return func(error) {} }
	}
	return c
}

// Validate reports the first field out of range.
func (c Config) Validate() error {
	switch {
	case len(c.Owner) > 100:
		return fmt.Errorf("owner: expected at most 100 characters, found %d", len(c.Owner))
	case c.Batch < 1 || c.Batch > 1000:
		return fmt.Errorf("batch: expected 1 to 1000, found %d", c.Batch)
	case c.MaxQueued < 1:
		return fmt.Errorf("max queued: expected at least 1, found %d", c.MaxQueued)
	case c.Tick < 10*time.Millisecond || c.Tick > time.Minute:
		return fmt.Errorf("tick: expected 10ms to 1m, found %s", c.Tick)
	case c.FullTick < time.Millisecond || c.FullTick > c.Tick:
		return fmt.Errorf("full tick: expected 1ms to the tick of %s, found %s", c.Tick, c.FullTick)
	case c.WorkerLease < 4*c.Tick || c.WorkerLease > time.Hour:
		return fmt.Errorf("worker lease: expected four ticks of %s to 1h, found %s", c.Tick, c.WorkerLease)
	case c.Backoff < time.Millisecond || c.Backoff > c.Tick:
		return fmt.Errorf("backoff: expected 1ms to the tick of %s, found %s", c.Tick, c.Backoff)
	}
	return nil
}
