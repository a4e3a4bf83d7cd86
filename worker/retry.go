package worker

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
)

// retry paces one activity, named by a verb phrase, while Redis refuses it.
func (c *Config) retry(what string) *backoff.Backoff {
	return backoff.New(backoff.Config{Part: "worker", What: what, First: c.Backoff, Max: c.MaxBackoff, Log: c.Log, Clock: c.Clock})
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
