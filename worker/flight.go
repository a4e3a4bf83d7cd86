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

// flight is an attempt in flight: its context, its deadline, and whether its end has been told.
type flight struct {
	*Attempt
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  func(model.MessageType) // tells of its end; nil: nobody is told
	begun  atomic.Bool             // Redis has told that its `started` was applied

	mu       sync.Mutex
	timer    *time.Timer // guarded by mu; nil: no deadline is known
	turn     int         // guarded by mu: which timer counts
	overdue  bool        // guarded by mu: the deadline last heard of has passed
	released bool        // guarded by mu: the end was told, or is not to be told
}

// due sets how long after now the deadline is; then overdue is called. No deadline, no call.
func (f *flight) due(deadline, now time.Time, overdue func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deadline.Store(&deadline)
	if f.timer != nil {
		f.timer.Stop()
	}
	f.overdue = false
	if f.released || deadline.IsZero() || now.IsZero() {
		return
	}
	// A clock that stands still (a test, a simulation) must not make this a busy loop.
	f.turn++
	turn := f.turn
	f.timer = time.AfterFunc(max(deadline.Sub(now), 10*time.Millisecond), func() {
		if f.pass(turn) {
			overdue()
		}
	})
}

// pass notes that a deadline has passed, unless a newer one was set while the timer fired.
func (f *flight) pass(turn int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.overdue = f.overdue || f.turn == turn
	return f.overdue
}

func (f *flight) isOverdue() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.overdue
}

// release says once, and only once, that the caller may tell how the attempt ended.
func (f *flight) release() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
	first := !f.released
	f.released = true
	return first
}

// errGone is what a handler leaves that ended its goroutine instead of returning.
var errGone = ErrorType(errors.New("the handler ended its goroutine"), "panic")

// call runs the handler and turns a panic into an error. The stack is for the log only: it may hold what owners must not see.
func (f *flight) call(handler Handler, config *Config) (err error) {
	defer func() {
		if value := recover(); value != nil {
			config.Log.Error().Str("uid", f.UID).Str("attempt_uid", f.AttemptUID).Str("panic", fmt.Sprint(value)).
				Bytes("stack", debug.Stack()).Msg("worker: a handler panicked")
			err = ErrorType(fmt.Errorf("panic: %v", value), "panic")
		}
	}()
	return handler(f.ctx, f.Attempt)
}

// ending is what is to be told of an attempt whose handler returned err; false: nothing, because it would be stale: another worker
// has been given it, or the model has another attempt, or the dispatcher ends this one. One whose deadline passed while Redis did not tell
// that it had begun may have waited in line until then: it is handed back.
func (f *flight) ending(err error) (message, bool) {
	cause := context.Cause(f.ctx)
	switch {
	case errors.Is(cause, ErrFenceLost), errors.Is(cause, ErrDeadline) && f.begun.Load():
		return message{}, false
	case cause != nil && err != nil:
		// Whether the handler failed or only stopped cannot be told apart: in doubt it is not the model's fault.
		return f.message(model.MessageInterrupted), true
	default:
		return f.outcome(err), true
	}
}
