// Package backoff spaces out the calls of an operation that fails, samples what is logged about it, and reads how
// long servers want to be left alone.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"
)

// Config describes one operation: how long to pause when it fails, and what to log.
type Config struct {
	// Part and What name the operation in the log, as in "dispatcher: round failed".
	Part, What string
	// First is the pause after the first failure. Each further failure doubles it, up to Max. 0 < First <= Max.
	First, Max time.Duration
	// Log receives the lines. Required.
	Log *zerolog.Logger
	// Clock is what durations are measured with. Nil: how long the operation failed is not logged, and every success ends
	// the sampling, so that the next failure is logged.
	Clock func() time.Time
}

// Backoff follows one operation. It logs the 1st, 2nd, 4th, 8th ... failure of each kind, see Sampler, and the first success
// after a logged failure. One goroutine only.
type Backoff struct {
	config   Config
	failures int // in a row
	pause    time.Duration
	since    time.Time // of the first failure in a row
	logged   bool      // a failure of this row was logged
	sampler  Sampler
}

// New returns a Backoff without failures.
func New(config Config) *Backoff { return &Backoff{config: config} }

// After takes how a call ended and returns how long to wait before the next one: 0 after a success, else 50 to 100 % of the
// pause. Jittered, to avoid a thundering herd when Redis returns.
func (b *Backoff) After(err error) time.Duration {
	now := time.Time{}
	if b.config.Clock != nil {
		now = b.config.Clock()
	}
	if err == nil {
		if b.logged {
			line := b.config.Log.Info().Int("failures", b.failures)
			if b.config.Clock != nil {
				line = line.Dur("lasted_ms", max(0, now.Sub(b.since)))
			}
			line.Msg(b.config.Part + ": " + b.config.What + " works again")
		}
		b.failures, b.pause, b.logged = 0, 0, false
		if b.config.Clock == nil {
			b.sampler = Sampler{}
		}
		return 0
	}
	if b.failures == 0 {
		b.since = now
	}
	b.failures++
	b.pause = min(max(b.config.First, 2*b.pause), b.config.Max)
	if count, log := b.sampler.Sample(err.Error(), now); log {
		b.logged = true
		b.config.Log.Error().Err(err).Int("failures", b.failures).Int("like_this", count).Dur("pause_ms", b.pause).
			Msg(b.config.Part + ": " + b.config.What + " failed")
	}
	return b.pause/2 + rand.N(b.pause/2+1)
}

// Recent reports whether an instant lies less than a while before now. One that lies ahead does not: the clock was set back, and nobody
// knows how long ago it was.
func Recent(at, now time.Time, while time.Duration) bool {
	since := now.Sub(at)
	return since >= 0 && since < while
}

// Rest waits for a while, but no longer than until a signal or the end of ctx, and reports whether it was a signal. A nil channel gives
// none.
func Rest(ctx context.Context, pause time.Duration, wake <-chan struct{}) (signalled bool) {
	if pause <= 0 {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
		return true
	case <-timer.C:
	}
	return false
}

// Signal wakes whoever waits for a channel with room for one signal, now or next time.
func Signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // a signal is waiting already
	}
}
