package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
)

// The causes for which the context of an attempt ends; see context.Cause. After the first three, the result of the handler is dropped: it would be
// stale.
var (
	// ErrDeadline means that the deadline has passed. Before the poller has applied `started`, only an outage of Redis has this effect; the attempt
	// is then handed back unless the handler still succeeds.
	ErrDeadline = errors.New("the deadline of the attempt has passed")
	// ErrFenceLost means that the model is no longer running this attempt: whatever it writes now is stale.
	ErrFenceLost = errors.New("the model is no longer running this attempt")
	// ErrRequeued means that the pool gave no heartbeat for a lease, and another one has the attempt. It is an ErrFenceLost.
	ErrRequeued = fmt.Errorf("another worker has been given the attempt: %w", ErrFenceLost)
	// ErrShutdown means that the pool has to stop; the attempt is handed back unless the handler still succeeds.
	ErrShutdown = errors.New("the worker is stopping")
)

// MaxWait is the longest wait that a worker may ask for.
const MaxWait = 365 * 24 * time.Hour

// The marks of an error.
type (
	retryable  bool
	retryAfter struct{ wish any } // seconds, or a time
	byServer   bool
	postponed  struct{ wish json.Number }
	errorType  string
	ownerText  string
	toldReason string
	withheld   model.Verdict // no failure: this verdict was not to publish
)

type marked[T any] struct {
	error
	fact T
}

func (m *marked[T]) Unwrap() error { return m.error }

func mark[T any](err error, fact T) error {
	if err == nil {
		return nil
	}
	return &marked[T]{err, fact}
}

func factOf[T any](err error) (fact T, found bool) {
	if m, is := errors.AsType[*marked[T]](err); is {
		return m.fact, true
	}
	return fact, false
}

// NotRetryable marks a failure that no retry can mend: the model is disabled at once. Nil stays nil, as with all of these.
func NotRetryable(err error) error { return mark(err, retryable(false)) }

// Retryable marks a failure that a retry may mend, whatever the policy thinks of its kind. Around NotRetryable it wins.
func Retryable(err error) error { return mark(err, retryable(true)) }

// RetryAfter asks that the next attempt starts no sooner than after d. At most MaxWait; negative counts as 0.
func RetryAfter(err error, d time.Duration) error { return mark(err, retryAfter{seconds(d)}) }

// RetryAt asks that the next attempt starts no sooner than at an instant.
func RetryAt(err error, at time.Time) error {
	if at.IsZero() {
		return RetryAfter(err, 0)
	}
	return mark(err, retryAfter{model.FormatTime(at)})
}

// ByServer marks the wait of a RetryAfter or RetryAt as read from a header of a server, which may be mistaken: the policy bounds it by its
// max_retry_after.
func ByServer(err error) error { return mark(err, byServer(true)) }

// Postpone is no failure: the work is tried again after d, uncounted. At most MaxWait; negative counts as 0. It wins over everything that it wraps.
func Postpone(d time.Duration) error {
	return mark(fmt.Errorf("postponed for %s", min(max(0, d), MaxWait)), postponed{seconds(d)})
}

// ErrorType names the kind of a failure, such as "RateLimited", for policies and statistics.
func ErrorType(err error, kind string) error { return mark(err, errorType(kind)) }

// UserFriendly adds a text for the owner of the model, such as "The feed is empty".
func UserFriendly(err error, text string) error { return mark(err, ownerText(text)) }

// Reason replaces the text of err, which then is only in the log: the owner of a model may read reasons.
func Reason(err error, text string) error { return mark(err, toldReason(text)) }

func seconds(d time.Duration) json.Number {
	return json.Number(fmt.Sprintf("%.3f", min(max(0, d), MaxWait).Seconds()))
}
