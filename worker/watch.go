package worker

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/worker/lease"
)

// every calls once at each tick, and when it is kicked, until ctx ends. what names the calls in the log.
func (s *session) every(ctx context.Context, interval time.Duration, kicked <-chan struct{}, what string, once func(context.Context) error) {
	retry := s.config.retry(what)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-kicked:
		}
		// No pause after an error: the ticker paces the calls, and an overdue attempt must not wait for one.
		retry.After(once(ctx))
	}
}

// watch compares the executions with Redis, all of them with one call: about once a second, and as soon as a deadline
// has passed on the own timer. Redis has the last word on a deadline, because `started` moves it.
func (s *session) watch(ctx context.Context) {
	s.every(ctx, s.config.FenceEvery, s.overdue, "checking the attempts in hand", s.checkOnce)
}

// checkOnce ends every execution that is over. While Redis does not answer, fences count as held and the deadlines last heard
// of as true. A deadline passes for nothing while `started` is on its way to the poller: it is moved when that is
// applied, or when the dispatcher sees that the attempt waited in line, and if neither happens the fence is lost.
func (s *session) checkOnce(ctx context.Context) error {
	executions := s.executing()
	fences, now, err := s.fences(ctx, executions)
	for i, e := range executions {
		if err != nil || fences[i].Err != nil {
			if e.overdue.Load() {
				e.cancel(ErrDeadline)
			}
			continue
		}
		fence := fences[i]
		e.begun.Store(fence.Begun)
		switch {
		case fence.AttemptUID != e.AttemptUID:
			e.cancel(ErrFenceLost)
		case isPast(fence.DeadlineAt, now) && !fence.Begun:
		case fence.DeadlineAt.IsZero() && e.overdue.Load(), isPast(fence.DeadlineAt, now):
			e.cancel(ErrDeadline)
		case !fence.DeadlineAt.IsZero():
			e.due(fence.DeadlineAt, now, s.kick)
		}
	}
	return err
}

func (s *session) fences(ctx context.Context, executions []*execution) ([]lease.Fence, time.Time, error) {
	if len(executions) == 0 {
		return nil, time.Time{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(s.config.FenceEvery, time.Second)) // on a busy machine one takes longer than the shortest time between two
	defer cancel()
	return s.queue.Fences(ctx, redis.Map(executions, func(e *execution) string { return e.UID }))
}

func (s *session) kick() { backoff.Signal(s.overdue) }

// isPast reports whether a deadline has come; no deadline never comes.
func isPast(deadline, now time.Time) bool {
	return !deadline.IsZero() && !now.IsZero() && !deadline.After(now)
}
