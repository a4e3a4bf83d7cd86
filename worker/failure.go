package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The causes for which the context of an attempt ends; ask context.Cause. After the first two nothing that the handler
// returns is told to anybody: it would be stale.
var (
	// ErrDeadline means that the deadline has passed.
	ErrDeadline = errors.New("the deadline of the attempt has passed")
	// ErrFenceLost means that the model is no longer running this attempt: whatever it writes now is stale.
	ErrFenceLost = errors.New("the model is no longer running this attempt")
	// ErrHandedBack means that the pool gave no sign of life for a lease, so that another one has been given the attempt. It is an
	// ErrFenceLost.
	ErrHandedBack = fmt.Errorf("another worker has been given the attempt: %w", ErrFenceLost)
	// ErrShutdown means that the pool has to stop; the attempt is handed back unless the handler still succeeds.
	ErrShutdown = errors.New("the worker is stopping")
)

// stopped returns the cause of an ended context in place of err, which is then only its echo.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

type retryableError struct {
	error
	retryable bool
}

type retryAfterError struct {
	error
	after time.Duration
	at    time.Time // instead of after, when not zero
}

type postponeError struct{ after time.Duration }

type typedError struct {
	error
	kind string
}

type friendlyError struct {
	error
	text string
}

func (e *retryableError) Unwrap() error  { return e.error }
func (e *retryAfterError) Unwrap() error { return e.error }
func (e *typedError) Unwrap() error      { return e.error }
func (e *friendlyError) Unwrap() error   { return e.error }
func (e *postponeError) Error() string   { return "postponed for " + e.after.String() }

// NotRetryable marks a failure that no retry can mend: the model is disabled at once. Nil stays nil, as with all of these.
func NotRetryable(err error) error {
	if err == nil {
		return nil
	}
	return &retryableError{err, false}
}

// Retryable marks a failure that a retry may mend, whatever the policy thinks of its kind. Around NotRetryable it wins.
func Retryable(err error) error {
	if err == nil {
		return nil
	}
	return &retryableError{err, true}
}

// RetryAfter asks that the next attempt starts no sooner than after d. At most a year; negative counts as 0.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{error: err, after: min(max(0, d), maxWait)}
}

// RetryAt asks that the next attempt starts no sooner than at an instant.
func RetryAt(err error, at time.Time) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{error: err, at: at}
}

// Postpone is not a failure: the work cannot be done now and is to be tried again after d, without counting. At most a year;
// negative counts as 0. It wins over everything that it is wrapped in.
func Postpone(d time.Duration) error { return &postponeError{min(max(0, d), maxWait)} }

// maxWait is the longest wait that the poller accepts of a worker.
const maxWait = 365 * 24 * time.Hour

// ErrorType names the kind of a failure, such as "RateLimited", for policies and statistics.
func ErrorType(err error, kind string) error {
	if err == nil {
		return nil
	}
	return &typedError{err, kind}
}

// UserFriendly adds what the owner of the model may read, such as "The feed is empty".
func UserFriendly(err error, text string) error {
	if err == nil {
		return nil
	}
	return &friendlyError{err, text}
}
