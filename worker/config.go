package worker

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/model"
)

// Config tunes a pool. The zero value is usable.
type Config struct {
	// Concurrency is how many attempts are worked on at the same time. 1 to 10,000. Defaults to 4.
	Concurrency int
	// Name is who works, for people: it is stored with the attempt. At most 60 bytes are kept. Defaults to the host's name.
	Name string
	// FenceEvery is how often all attempts in hand are compared with Redis. One comparison may take as long, or 1 s if that is more.
	// 10 ms to 1 min. Defaults to 1 s.
	FenceEvery time.Duration
	// Lease is how long the pool may give no heartbeat before a dispatcher requeues what it had taken. The dispatchers decide that: say here what
	// their WorkerLease is. At least four heartbeats, at most 1 h. Defaults to 5 s.
	Lease time.Duration
	// Heartbeat is how often the pool gives a heartbeat, and how long that may take. 10 ms to 1 min. Defaults to 1 s, or a quarter of a shorter
	// lease.
	Heartbeat time.Duration
	// StatusEvery is the shortest time between two statuses of one attempt; of those in between only the
	// last is sent. 10 ms to 1 min. Defaults to 250 ms.
	StatusEvery time.Duration
	// SignsEvery is how often a sign of life of an attempt is sent, at most, and only if its handler gave one since: see Attempt.Alive. It is
	// announced, so that a policy with silent_after finds what hangs. At most 1 h. Defaults to 0: nothing is announced.
	SignsEvery time.Duration
	// PushBatch is how many messages are pushed with one command, at most. While more than that wait because Redis refuses
	// them, no new attempt is taken. 1 to 10,000. Defaults to 500.
	PushBatch int
	// Grace is how long Run waits, after its context has ended, for the work in hand before it hands it back. 0 to 1 h;
	// negative means 0. Defaults to 10 s.
	Grace time.Duration
	// Linger is how long, after the grace, handlers may take to return before they are abandoned.
	// 1 ms to 1 h. Defaults to 5 s.
	Linger time.Duration
	// FlushTimeout is how long Run tries to push the rest at the end. 1 ms to 1 h. Defaults to 3 s.
	FlushTimeout time.Duration
	// Backoff is the first pause after an error of Redis; it doubles up to MaxBackoff. At least 1 ms. Defaults to 50 ms.
	Backoff time.Duration
	// MaxBackoff is the longest pause after an error of Redis. From Backoff to 1 min. Defaults to 1 s, so that messages are
	// pushed soon when Redis is back.
	MaxBackoff time.Duration
	// Trace is called when the work of an attempt with a Traceparent begins, with the instant by the clock of Redis. It returns a function to
	// call at the end with the type of the message, or none. It may set the Traceparent to a part of its own. Both must be quick. Defaults to
	// nil: no tracing.
	Trace func(attempt *Attempt, begun time.Time) (ended func(model.MessageType))
	// Log receives every error and, at debug level, what became of each attempt; at info level what became of one that failed
	// with a Reason other than its error. Defaults to none.
	Log *zerolog.Logger
	// Clock measures how long errors last, for the log only. Defaults to none.
	Clock func() time.Time
	// Hurry, when it is closed, ends the grace. Defaults to nil: only time ends it.
	Hurry <-chan struct{}
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 4)
	if c.Name == "" {
		c.Name, _ = os.Hostname() // without a name of its own a worker is anonymous, which is allowed
	}
	c.FenceEvery = cmp.Or(c.FenceEvery, time.Second)
	c.Lease = cmp.Or(c.Lease, max(5*time.Second, 4*c.Heartbeat))
	c.Heartbeat = cmp.Or(c.Heartbeat, min(time.Second, c.Lease/4))
	c.StatusEvery = cmp.Or(c.StatusEvery, 250*time.Millisecond)
	c.PushBatch = cmp.Or(c.PushBatch, 500)
	c.Grace = max(0, cmp.Or(c.Grace, 10*time.Second))
	c.Linger = cmp.Or(c.Linger, 5*time.Second)
	c.FlushTimeout = cmp.Or(c.FlushTimeout, 3*time.Second)
	c.MaxBackoff = cmp.Or(c.MaxBackoff, max(time.Second, c.Backoff))
	c.Backoff = cmp.Or(c.Backoff, min(50*time.Millisecond, c.MaxBackoff))
	c.Log = cmp.Or(c.Log, new(zerolog.Nop()))
	return c
}

// Validate reports the first field out of range.
func (c Config) Validate() error {
	if c.Concurrency < 1 || c.Concurrency > 10_000 {
		return fmt.Errorf("concurrency: expected 1 to 10000, found %d", c.Concurrency)
	}
	if c.PushBatch < 1 || c.PushBatch > 10_000 {
		return fmt.Errorf("push batch: expected 1 to 10000, found %d", c.PushBatch)
	}
	for _, field := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"fence every", c.FenceEvery, 10 * time.Millisecond, time.Minute},
		{"heartbeat", c.Heartbeat, 10 * time.Millisecond, time.Minute},
		{"lease", c.Lease, 4 * c.Heartbeat, time.Hour},
		{"status every", c.StatusEvery, 10 * time.Millisecond, time.Minute},
		{"signs every", c.SignsEvery, 0, time.Hour},
		{"grace", c.Grace, 0, time.Hour},
		{"linger", c.Linger, time.Millisecond, time.Hour},
		{"flush timeout", c.FlushTimeout, time.Millisecond, time.Hour},
		{"max backoff", c.MaxBackoff, time.Millisecond, time.Minute},
		{"backoff", c.Backoff, time.Millisecond, c.MaxBackoff},
	} {
		if field.value < field.least || field.value > field.most {
			return fmt.Errorf("%s: expected %s to %s, found %s", field.name, field.least, field.most, field.value)
		}
	}
	return nil
}

// retry paces one activity, named by a verb phrase, while Redis refuses it.
func (c *Config) retry(what string) *backoff.Backoff {
	return backoff.New(backoff.Config{Part: "worker", What: what, First: c.Backoff, Max: c.MaxBackoff, Log: c.Log, Clock: c.Clock})
}
