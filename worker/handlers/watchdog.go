package handlers

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/worker"
)

// watchdog ends the context of a download that stalls: no response within a period, or too few bytes of the body in a later one.
type watchdog struct {
	io.ReadCloser // guarded by mu; nil: the response has not come

	ctx    context.Context
	cancel context.CancelCauseFunc
	period time.Duration
	least  int64 // bytes a second

	came atomic.Int64 // bytes of the body in this period

	mu    sync.Mutex
	timer *time.Timer // guarded by mu
	turn  int         // guarded by mu: of the timer; one that fired in an earlier turn has nothing to say
}

func newWatchdog(ctx context.Context, period time.Duration, least int64) *watchdog {
	w := &watchdog{period: period, least: least}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin()
	return w
}

// begin begins a period. The caller holds mu.
func (w *watchdog) begin() {
	w.turn++
	turn := w.turn
	w.timer = time.AfterFunc(w.period, func() { w.tick(turn) })
}

func (w *watchdog) end() {
	w.rest()
	w.cancel(nil)
}

// rest ends the periods: the next steps do not wait for the server.
func (w *watchdog) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.turn++
}

// respond begins the first period of the body. The caller reads the returned body, in the same goroutine.
func (w *watchdog) respond(body io.ReadCloser) io.ReadCloser {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ReadCloser = body
	w.timer.Stop()
	w.begin()
	return w
}

func (w *watchdog) Read(to []byte) (int, error) {
	n, err := w.ReadCloser.Read(to)
	w.came.Add(int64(n))
	if err != nil {
		w.rest()
	}
	return n, err
}

// Close ends the periods too.
func (w *watchdog) Close() error {
	w.rest()
	return w.ReadCloser.Close()
}

func (w *watchdog) tick(turn int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn != w.turn {
		return
	}
	came := w.came.Load()
	period, rate := document.FormatDuration(w.period), float64(came)/w.period.Seconds()
	switch {
	case w.ReadCloser == nil:
		err := fmt.Errorf("expected a response within %s, found none", period)
		w.cancel(worker.UserFriendly(worker.ErrorType(err, "stalled"), "The server of the feed did not answer within "+period+"."))
	case came == 0:
		err := fmt.Errorf("expected more of the body within %s, found nothing", period)
		w.cancel(worker.UserFriendly(worker.ErrorType(err, "stalled"), "The server of the feed sent nothing for "+period+"."))
	case rate < float64(w.least):
		err := fmt.Errorf("expected at least %d bytes a second within %s, found %.1f", w.least, period, rate)
		text := fmt.Sprintf("The server of the feed is too slow: it sent %s in %s.", size(came), period)
		w.cancel(worker.UserFriendly(worker.ErrorType(err, "too_slow"), text))
	default:
		w.came.Add(-came)
		w.begin()
	}
}
