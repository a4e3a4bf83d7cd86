package poller

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/store"
)

// Config has the fields of the public poller.Config, which explains them.
type Config struct {
	Owner   string
	Batch   int
	Lease   time.Duration
	Tick    time.Duration
	Backoff time.Duration
	NewUID  func() string
	Log     *zerolog.Logger
	Clock   func() time.Time
	Observe func() (ended func(error))
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Owner = cmp.Or(c.Owner, store.NewOwner(c.Clock))
	c.Batch = cmp.Or(c.Batch, 100)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Tick = cmp.Or(c.Tick, min(time.Second, c.Lease/4))
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
	case strings.ContainsAny(c.Owner, "{} ") || strings.ContainsFunc(c.Owner, unicode.IsControl) || len(c.Owner) > 100:
		return fmt.Errorf("owner: expected at most 100 characters without braces, spaces and control characters, found %q", c.Owner)
	case c.Owner == store.CommandOwner:
		return fmt.Errorf("owner: expected another name than that of the list of commands, found %q", c.Owner)
	case c.Batch < 2 || c.Batch > 1000:
		return fmt.Errorf("batch: expected 2 to 1000, found %d", c.Batch)
	case c.Tick < 10*time.Millisecond || c.Tick > time.Minute:
		return fmt.Errorf("tick: expected 10ms to 1m, found %s", c.Tick)
	case c.Lease < 4*c.Tick:
		return fmt.Errorf("lease: expected at least four ticks of %s, found %s", c.Tick, c.Lease)
	case c.Backoff < time.Millisecond || c.Backoff > c.Tick:
		return fmt.Errorf("backoff: expected 1ms to the tick of %s, found %s", c.Tick, c.Backoff)
	}
	return nil
}
