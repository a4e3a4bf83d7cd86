package handlers

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/worker"
)

// pace ends the context of a download that stalls: when no response comes within one period, or too little of its body in any
// later one. It is the body, whose bytes count.
type pace struct {
	io.ReadCloser // guarded by mu; nil: the response has not come

	ctx    context.Context
	cancel context.CancelCauseFunc
	period time.Duration
	least  int64 // bytes a second

	mu    sync.Mutex
	timer *time.Timer // guarded by mu
	turn  int         // guarded by mu: of the timer; one that fired in an earlier turn has nothing to say
	came  int64       // guarded by mu: bytes of the body in this period
}

// newPace begins the first period. The caller ends it.
func newPace(ctx context.Context, period time.Duration, least int64) *pace {
	p := &pace{period: period, least: least}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	return p
}

// begin begins a period. The caller holds mu.
func (p *pace) begin() {
	p.turn++
	turn := p.turn
	p.timer = time.AfterFunc(p.period, func() { p.tick(turn) })
}

// end lets go of the timer and of the context.
func (p *pace) end() {
	p.rest()
	p.cancel(nil)
}

// rest ends the periods: what follows does not wait for the server.
func (p *pace) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.turn++
}

// respond begins the first period of the body. The caller reads what it returns, in the same goroutine.
func (p *pace) respond(body io.ReadCloser) io.ReadCloser {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ReadCloser = body
	p.timer.Stop()
	p.begin()
	return p
}

func (p *pace) Read(to []byte) (int, error) {
	n, err := p.ReadCloser.Read(to)
	p.add(n)
	if err != nil {
		p.rest()
	}
	return n, err
}

func (p *pace) add(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came += int64(bytes)
}

// tick ends the period of a turn.
func (p *pace) tick(turn int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if turn != p.turn {
		return
	}
	if err := p.judge(); err != nil {
		p.cancel(err)
		return
	}
	p.came = 0
	p.begin()
}

// judge is the failure that a period means; nil: enough has come.
func (p *pace) judge() error {
	period, rate := document.FormatDuration(p.period), float64(p.came)/p.period.Seconds()
	switch {
	case p.ReadCloser == nil:
		err := fmt.Errorf("expected a response within %s, found none", period)
		return worker.UserFriendly(worker.ErrorType(err, "stalled"), "The server of the feed did not answer within "+period+".")
	case p.came == 0:
		err := fmt.Errorf("expected more of the body within %s, found nothing", period)
		return worker.UserFriendly(worker.ErrorType(err, "stalled"), "The server of the feed sent nothing for "+period+".")
	case rate < float64(p.least):
		err := fmt.Errorf("expected at least %d bytes a second within %s, found %.1f", p.least, period, rate)
		text := fmt.Sprintf("The server of the feed is too slow: it sent %s in %s.", size(p.came), period)
		return worker.UserFriendly(worker.ErrorType(err, "too_slow"), text)
	default:
		return nil
	}
}
