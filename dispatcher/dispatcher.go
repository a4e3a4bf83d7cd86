// Package dispatcher does everything that time triggers: it starts due models and ends attempts whose deadline has passed.
//
// A dispatcher keeps no state. Any number may run side by side.
package dispatcher

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/dispatcher"
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
	// Clock measures how long errors last, for the log only. Defaults to none.
	Clock func() time.Time
	// Observe is called when a round begins, and what it returns when that round has ended. Both must be quick. Defaults to
	// nil: no calls.
	Observe func() (ended func(error))
}

// Dispatcher starts due models and ends expired attempts of one queue.
type Dispatcher struct{ loop *dispatcher.Dispatcher }

// Open connects to the Redis at an address, such as redis://127.0.0.1:6379 (docs/cli.md has all forms), and returns a dispatcher of a queue of one part.
// Call stop when Run has returned: it ends the connections.
func Open(ctx context.Context, address, queue string, config Config) (d *Dispatcher, stop func() error, err error) {
	return store.DialPart(ctx, "dispatcher", address, queue, func(part *store.Store) (*Dispatcher, error) {
		loop, err := dispatcher.New(dispatcher.RoomsOf(part), dispatcher.Config(config))
		return &Dispatcher{loop}, err
	})
}

// Run works until ctx ends, finishes the round in hand, and returns nil. It logs errors of Redis and tries again.
func (d *Dispatcher) Run(ctx context.Context) error { return d.loop.Run(ctx) }
