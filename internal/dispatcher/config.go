package dispatcher

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/store"
)

// Config has the fields of the public dispatcher.Config, which explains them.
type Config struct {
	Owner       string
	Batch       int
	MaxQueued   int
	Tick        time.Duration
	FullTick    time.Duration
	WorkerLease time.Duration
	Backoff     time.Duration
	NewUID      func() string
	Log         *zerolog.Logger
	Clock       func() time.Time
	Observe     func() (ended func(error))
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
		c.NewUID = store.NewAttemptUID
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
