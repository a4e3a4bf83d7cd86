// Package backoff paces what fails again and again, and keeps its log short.
package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"
)

// Config says how to pace one activity and what to log about it.
type Config struct {
	// Part and What name the activity in the log: "dispatcher" and "round".
	Part, What string
	// First is the first pause after a failure; it doubles up to Max. First is above 0 and at most Max.
	First, Max time.Duration
	// Log receives the lines. Required.
	Log *zerolog.Logger
	// Clock tells how long trouble lasts. Without one that is not told, and trouble that comes back at once is told at once.
	Clock func() time.Time
}

// Backoff paces one activity while it fails, and tells of it in few lines: the 1st, 2nd, 4th, 8th ... failure of each kind, and
// the end. One goroutine only.
type Backoff struct {
	config   Config
	failures int // in a row
	pause    time.Duration
	since    time.Time // of the first failure in a row
	told     bool      // a line about this row was written
	kinds    Sampler
}

// New returns a Backoff that has met none.
func New(config Config) *Backoff { return &Backoff{config: config} }

// After notes how a call ended and returns how long to wait before the next one: 0 after a success, else between a half and the
// whole of the pause, because those who lost Redis together must not come back together.
func (t *Backoff) After(err error) time.Duration {
	if err == nil {
		t.over()
		return 0
	}
	now := t.now()
	if t.failures == 0 {
		t.since = now
	}
	t.failures++
	t.pause = min(max(t.config.First, 2*t.pause), t.config.Max)
	if count, tell := t.kinds.Sample(err.Error(), now); tell {
		t.told = true
		t.config.Log.Error().Err(err).Int("failures", t.failures).Int("like_this", count).Dur("pause_ms", t.pause).
			Msg(t.config.Part + ": " + t.config.What + " failed")
	}
	return t.pause/2 + rand.N(t.pause/2+1)
}

// over ends a row of failures. One of which no line was written, because it is like others shortly before, ends without one.
func (t *Backoff) over() {
	if t.told {
		line := t.config.Log.Info().Int("failures", t.failures)
		if t.config.Clock != nil {
			line = line.Dur("lasted_ms", t.now().Sub(t.since))
		}
		line.Msg(t.config.Part + ": " + t.config.What + " works again")
	}
	t.failures, t.pause, t.told = 0, 0, false
	if t.config.Clock == nil {
		t.kinds = Sampler{}
	}
}

func (t *Backoff) now() time.Time {
	if t.config.Clock == nil {
		return time.Time{}
	}
	return t.config.Clock()
}
