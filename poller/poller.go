// Package poller does everything that a message triggers: results of workers, and commands of applications.
//
// Any number may run side by side. When one dies, another applies the messages that it had claimed.
package poller

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/poller"
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
	// NewUID makes the uid of an attempt that is started in the place of one that has ended, at least 128 random bits. Defaults to crypto/rand, 26
	// letters and digits.
	NewUID func() string
	// Log receives one line per batch, every error, sampled, and what becomes of models: final failures, recoveries and rejected messages as
	// warnings or info, sampled, and each transition at debug level. Defaults to none.
	Log *zerolog.Logger
	// Clock measures how long errors last, for the log only. Defaults to none.
	Clock func() time.Time
	// Observe is called when a round begins, and what it returns when that round has ended. Both must be quick. Defaults to
	// nil: no calls.
	Observe func() (ended func(error))
}

// Poller applies the messages of one queue.
type Poller struct{ loop *poller.Poller }

// Open connects to the Redis at an address, such as redis://127.0.0.1:6379 (docs/cli.md has all forms), and returns a poller of a queue of one part.
// Call stop when Run has returned: it ends the connections.
func Open(ctx context.Context, address, queue string, config Config) (p *Poller, stop func() error, err error) {
	return store.DialPart(ctx, "poller", address, queue, func(part *store.Store) (*Poller, error) {
		loop, err := poller.New(poller.RoomsOf(part), poller.Config(config))
		return &Poller{loop}, err
	})
}

// Run works until ctx ends, finishes the batch in hand, and returns nil. It logs errors of Redis and tries again.
func (p *Poller) Run(ctx context.Context) error { return p.loop.Run(ctx) }
