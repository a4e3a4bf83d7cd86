package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"
)

// trouble paces one activity while Redis refuses it, and keeps the log short: it tells the 1st, 2nd, 4th, 8th ... failure in
// a row and the end of them. One goroutine only.
type trouble struct {
	what        string // a verb phrase, for the log
	least, most time.Duration
	log         *zerolog.Logger
	failures    int
	pause       time.Duration
}

func (c *Config) trouble(what string) *trouble {
	return &trouble{what: what, least: c.Backoff, most: c.MaxBackoff, log: c.Log}
}

// met notes how a call ended and returns how long to wait before the next one: 0 after a success.
func (t *trouble) met(err error) time.Duration {
	if err == nil {
		if t.failures > 0 {
			t.log.Info().Int("failures", t.failures).Msg("worker: " + t.what + " works again")
		}
		t.failures, t.pause = 0, 0
		return 0
	}
	t.failures++
	t.pause = min(max(t.least, 2*t.pause), t.most)
	if t.failures&(t.failures-1) == 0 {
		t.log.Error().Err(err).Int("failures", t.failures).Dur("pause_ms", t.pause).Msg("worker: " + t.what + " failed")
	}
	// Workers that lost Redis together must not come back together.
	return t.pause/2 + rand.N(t.pause/2+1)
}

// rest waits for a while or until ctx ends.
func rest(ctx context.Context, pause time.Duration) {
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
