package operate

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model/document"
)

// RetryFor is how long calls are repeated while Redis does not answer: longer than a fail-over takes, or most loads of a snapshot.
const RetryFor = 2 * time.Minute

// WithRetry returns a context in which a call is repeated, for a time, if Redis does not answer, see redis.WithRetry. The error of the first call
// that is given up ends with then; later calls are not repeated.
func WithRetry(ctx context.Context, patience time.Duration, log *zerolog.Logger, then string) context.Context {
	var gone atomic.Bool // later calls do not wait again
	return redis.WithRetry(ctx, func(ctx context.Context) func(error) error {
		left, stop := context.WithTimeout(ctx, patience)
		retry := backoff.New(backoff.Config{Part: "redis", What: "a call", First: 100 * time.Millisecond, Max: 5 * time.Second, Log: log})
		return func(err error) error {
			if err != nil && gone.Load() {
				stop()
				return err
			}
			backoff.Rest(left, retry.After(err), nil)
			if err != nil && left.Err() == nil {
				return nil
			}
			if stop(); err != nil && ctx.Err() == nil {
				gone.Store(true)
				err = fmt.Errorf("%w; asked again for %s%s", err, document.FormatDuration(patience), then)
			}
			return err
		}
	})
}
