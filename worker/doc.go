// Package worker does the refreshing: it takes attempts from the input list, runs a Handler for each, and pushes what came of
// it to the output list.
//
//	pool, err := worker.Open(ctx, "redis://127.0.0.1:6379", "feeds", func(ctx context.Context, attempt *worker.Attempt) error {
//		return refresh(ctx, attempt.UID)
//	}, worker.Config{})
//	if err != nil {
//		return err
//	}
//	defer pool.Close()
//	return pool.Run(ctx)
//
// A handler that returns nil has succeeded, an error is a failure, and a panic is one too. NotRetryable, RetryAfter,
// Postpone, ErrorType, Reason and UserFriendly say more about an error and may be nested.
//
// The context of a handler ends when its work no longer counts: at the deadline (ErrDeadline), when the model has a newer
// attempt or none (ErrFenceLost), when another pool was given the attempt (ErrRequeued), or when the pool has to stop
// (ErrShutdown): see context.Cause.
//
// An attempt is in a list of the pool in Redis until it is answered. When a pool dies, another one takes over its attempts
// within seconds: Pool.Run describes the guarantees and their limits.
//
// Package handlers has ready ones: a program, a web service, a download into a directory. Try runs a handler in a test.
package worker
