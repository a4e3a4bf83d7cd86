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

// Config tunes a poller. The zero value is usable.
type Config struct {
	// Owner names the poller's claimed list; no two pollers may share it at the same time. Defaults to host:pid and some random letters
	// and digits.
	Owner string
	// Batch is how many messages are claimed at once. 2 to 1,000, so that results and commands both find room. Defaults to 100.
	Batch int
	// Lease is how long a poller may give no heartbeat before others adopt its claimed messages. At least four ticks. Defaults to
	// 10 s. Too short a lease costs work done twice, never a message.
	Lease time.Duration
	// Tick is the longest sleep between two heartbeats. 10 ms to 1 min. Defaults to 1 s.
	Tick time.Duration
	// Backoff is the first pause after an error of Redis; it doubles up to Tick. Defaults to 50 ms.
	Backoff time.Duration
	// Log receives one line per batch, every error, sampled, and what becomes of models: final failures, recoveries and rejected messages as
	// warnings or info, sampled, and each transition at debug level. Defaults to none.
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
	c.Batch = cmp.Or(c.Batch, 100)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Tick = cmp.Or(c.Tick, min(time.Second, c.Lease/4))
	c.Backoff = cmp.Or(c.Backoff, min(50*time.Millisecond, c.Tick))
	c.Log = cmp.Or(c.Log, new(zerolog.Nop()))
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
