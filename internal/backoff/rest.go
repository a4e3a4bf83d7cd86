package backoff

import (
	"context"
	"time"
)

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
