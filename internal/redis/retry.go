package redis

import (
	"context"
	"errors"
	"slices"

	goredis "github.com/redis/go-redis/v9"
)

type retryKey struct{}

// WithRetry returns a context that repeats a call without an answer, if it only reads or is a script, which compares before it writes. The caller of
// a script finds out what an unanswered try has done. The first such failure calls begin, which returns again. Each failure calls again with its
// error: it waits, and returns nil for another try, or the error to give up with. After the last try it is called with nil.
func WithRetry(ctx context.Context, begin func(context.Context) (again func(error) error)) context.Context {
	return context.WithValue(ctx, retryKey{}, begin)
}

type retriedKey struct{}

// TrackRetry returns a context, and whether a call in it was repeated: the first one may have been carried out.
func TrackRetry(ctx context.Context) (_ context.Context, retried *bool) {
	retried = new(bool)
	return context.WithValue(ctx, retriedKey{}, retried), retried
}

// transient are the errors of a Redis that is not ready.
var transient = []string{"LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "TRYAGAIN", "MOVED", "ASK"}

// IsTransient reports whether an error may be gone with the next try: Redis did not answer, or is not ready.
func IsTransient(err error) bool {
	if err == nil || errors.Is(err, ErrNotLoaded) {
		return false
	}
	return !Answered(err) || slices.ContainsFunc(transient, func(prefix string) bool { return goredis.HasErrorPrefix(err, prefix) })
}

// retryOf is how a context retries; nil: it does not.
func retryOf(ctx context.Context) func(context.Context) func(error) error {
	begin, _ := ctx.Value(retryKey{}).(func(context.Context) func(error) error)
	return begin
}

// Retry makes a call, and repeats it as the context says. Calls within the call are not repeated by themselves.
func Retry(ctx context.Context, call func(context.Context) error) error {
	begin := retryOf(ctx)
	if begin == nil {
		return call(ctx)
	}
	once := WithRetry(ctx, nil)
	err := call(once)
	transient := func() bool { return ctx.Err() == nil && IsTransient(err) }
	if !transient() {
		return err
	}
	again := begin(ctx)
	for ; transient(); err = call(once) {
		if ended := again(err); ended != nil {
			return ended
		}
		if retried, is := ctx.Value(retriedKey{}).(*bool); is {
			*retried = true
		}
	}
	_ = again(nil)
	return err
}

// RetryHook is the hook of a client that retries as the context of a call says.
type RetryHook struct {
	// Writes: the client writes too, and only its scripts are repeated.
	Writes bool
}

// DialHook changes nothing: a call dials again.
func (RetryHook) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook makes a call with retries.
func (i RetryHook) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, command goredis.Cmder) error {
		if name := command.Name(); i.Writes && name != "evalsha" && name != "script" {
			return next(ctx, command)
		}
		return Retry(ctx, func(ctx context.Context) error { return next(ctx, command) })
	}
}

// ProcessPipelineHook makes calls with retries: all of them are repeated together.
func (i RetryHook) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, commands []goredis.Cmder) error {
		if i.Writes || retryOf(ctx) == nil {
			return next(ctx, commands)
		}
		err := Retry(ctx, func(ctx context.Context) error {
			for _, command := range commands {
				command.SetErr(nil) // go-redis keeps the error of MULTI and EXEC
			}
			err := next(ctx, commands)
			for _, command := range commands {
				if IsTransient(command.Err()) { // it may hide behind a harmless one
					err = command.Err()
				}
			}
			return err
		})
		for _, command := range commands {
			if IsTransient(command.Err()) {
				command.SetErr(err)
			}
		}
		return err
	}
}
