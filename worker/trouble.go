package worker

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/trouble"
)

// trouble paces one activity, named by a verb phrase, while Redis refuses it.
func (c *Config) trouble(what string) *trouble.Trouble {
	return trouble.New(trouble.Config{Part: "worker", What: what, Least: c.Backoff, Most: c.MaxBackoff, Log: c.Log, Clock: c.Clock})
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
