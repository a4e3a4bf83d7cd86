package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/model"
)

// execution is an attempt in work: its context, its deadline, and whether its end was reported.
type execution struct {
	*Attempt
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  func(model.MessageType) // reports its end; nil: nobody asks
	begun  atomic.Bool             // Redis has answered that its `started` was applied
	// overdue: the deadline last heard of has passed. Written with mu held.
	overdue atomic.Bool

	mu       sync.Mutex
	timer    *time.Timer // guarded by mu; nil: no deadline is known
	turn     int         // guarded by mu: which timer counts
	released bool        // guarded by mu: the end was sent, or is not to be sent
}

// due sets how long after now the deadline is; then overdue is called. No deadline, no call.
func (e *execution) due(deadline, now time.Time, overdue func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline.Store(&deadline)
	if e.timer != nil {
		e.timer.Stop()
	}
	e.overdue.Store(false)
	if e.released || deadline.IsZero() || now.IsZero() {
		return
	}
	// If the clock does not move (a test, a simulation), this must not be a busy loop.
	e.turn++
	turn := e.turn
	e.timer = time.AfterFunc(max(deadline.Sub(now), 10*time.Millisecond), func() {
		if e.pass(turn) {
			overdue()
		}
	})
}

// pass notes that a deadline has passed, unless a newer one was set while the timer fired.
func (e *execution) pass(turn int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.turn == turn {
		e.overdue.Store(true)
	}
	return e.overdue.Load()
}

// release returns true once: the caller then reports how the attempt ended.
func (e *execution) release() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
	first := !e.released
	e.released = true
	return first
}

// kills reports whether workers keep dying over the attempt: one death may be chance.
func (e *execution) kills() bool { return e.Deaths >= 2 }

// errGone is the error of a handler that ended its goroutine instead of returning.
var errGone = ErrorType(errors.New("the handler ended its goroutine"), "panic")

// call runs the handler and turns a panic into an error. The stack is for the log only: it may hold what owners must not see.
func (e *execution) call(handler Handler, config *Config) (err error) {
	defer func() {
		if value := recover(); value != nil {
			config.Log.Error().Str("uid", e.UID).Str("attempt_uid", e.AttemptUID).Str("panic", fmt.Sprint(value)).
				Bytes("stack", debug.Stack()).Msg("worker: a handler panicked")
			err = ErrorType(fmt.Errorf("panic: %v", value), "panic")
		}
	}()
	return handler(e.ctx, e.Attempt)
}

// ending returns the last message of an attempt whose handler returned err; false: none, because it would be stale: another worker or another
// attempt has the model, or the dispatcher ends this one. If the deadline passed before Redis confirmed the begin, the attempt is handed back.
func (e *execution) ending(err error) (m message, wanted bool) {
	cause := context.Cause(e.ctx)
	verdict, _ := factOf[withheld](err)
	switch {
	case errors.Is(cause, ErrFenceLost), verdict == withheld(model.VerdictStale), errors.Is(cause, ErrDeadline) && e.begun.Load():
		return message{}, false
	case cause != nil && err != nil:
		// Perhaps the handler failed, perhaps it only stopped: in doubt the model is not at fault.
		m = e.message(model.MessageInterrupted)
	default:
		m = e.outcome(err)
	}
	if log := e.log.Load(); log != nil {
		m.Log = model.KeptLog(*log)
	}
	return m, true
}
