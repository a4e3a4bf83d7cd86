// Package notifier delivers the entries of the outbox to people and programs: by webhook, by e-mail, or in a list of Redis. Each notice is delivered
// at least once.
//
// A notifier keeps no state; any number may run side by side. One script routes an entry to the mailboxes of its recipients and acknowledges it. A
// mailbox is delivered in order, as one message or as a digest, with retries until it succeeds or is given up.
package notifier

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
)

// Config tunes a notifier. The zero value is usable.
type Config struct {
	// Tick is how often the outbox and the mailboxes are read, 10 ms to 1 min. Defaults to 1 s.
	Tick time.Duration
	// Backoff is the first pause after an error of Redis; it doubles up to Tick. Defaults to 50 ms.
	Backoff time.Duration
	// Dashboard is the address of the queue in the dashboard, such as https://refreshd.example.com/q/bigtables, for links. Defaults to none.
	Dashboard string
	// Log receives messages that could not be delivered, and every error, sampled. Defaults to none.
	Log *zerolog.Logger
	// Clock measures how long errors last, for the log only. Defaults to none.
	Clock func() time.Time
	// Observe is called when a round begins, and its result when that round has ended. Both must be quick. Defaults to none.
	Observe func() (ended func(error))
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Tick = cmp.Or(c.Tick, time.Second)
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
	case c.Tick < 10*time.Millisecond || c.Tick > time.Minute:
		return errors.New("tick: expected 10ms to 1m, found " + c.Tick.String())
	case c.Backoff < time.Millisecond || c.Backoff > c.Tick:
		return errors.New("backoff: expected 1ms to the tick, found " + c.Backoff.String())
	}
	return nil
}

// Notifier delivers the notices of one queue.
type Notifier struct {
	store  *store.Store
	routes *Routes
	config Config
	owner  string
	adopt  time.Duration   // after it another notifier takes over entries that were read and not routed
	nobody backoff.Sampler // routing goroutine only

	counted  atomic.Int64 // notices for which a mailbox had no room, and that no line of the log tells
	loggedMs atomic.Int64 // when the last line told of some
}

// New returns a notifier. It opens nothing: the caller closes the connections of the store.
func New(store *store.Store, routes *Routes, config Config) (*Notifier, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Notifier{store: store, routes: routes, config: config, owner: strings.ToLower(rand.Text()), adopt: 30 * time.Second}, nil
}

// Run works until ctx ends, finishes the work in hand, and returns nil. Errors of Redis are logged and retried for ever. Each channel has a loop of
// its own, so that it delays no other.
func (n *Notifier) Run(ctx context.Context) error {
	defer n.routes.Close()
	var running sync.WaitGroup
	n.config.Observe()(nil) // it lives before the first round has ended
	for _, channel := range n.routes.channels {
		running.Go(func() {
			n.loop(ctx, "delivering by "+channel.Name, func(ctx context.Context) (bool, error) { return n.Deliver(ctx, channel.Name) })
		})
	}
	n.loop(ctx, "routing", func(ctx context.Context) (more bool, err error) {
		ended := n.config.Observe()
		defer func() { ended(err) }()
		return n.Route(ctx)
	})
	running.Wait()
	return nil
}

// loop does rounds until ctx ends: immediately while there is more to do, otherwise once a tick.
func (n *Notifier) loop(ctx context.Context, what string, round func(context.Context) (more bool, err error)) {
	retry := backoff.New(backoff.Config{
		Part: "notifier", What: what, First: n.config.Backoff, Max: n.config.Tick, Log: n.config.Log, Clock: n.config.Clock,
	})
	for ctx.Err() == nil {
		// A round is finished: the outcome of a cut one would be unknown.
		more, err := round(context.WithoutCancel(ctx))
		pause := retry.After(err)
		if err == nil && !more {
			pause = n.config.Tick
		}
		backoff.Rest(ctx, pause, nil)
	}
}
