package worker

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/scripts"
)

// watch compares the attempts in hand with Redis, all of them with one call: about once a second, and as soon as a deadline
// has passed on the own timer. Redis has the last word on a deadline, because `started` moves it.
type watch struct {
	session *session
	every   time.Duration
	kicked  chan struct{}
	retry   *backoff.Backoff // run goroutine only
}

func newWatch(s *session, config *Config) *watch {
	return &watch{s, config.FenceEvery, make(chan struct{}, 1), config.retry("checking the attempts in hand")}
}

// kick asks for a check now.
func (w *watch) kick() { signal(w.kicked) }

func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.kicked:
		}
		// No pause after trouble: the ticker paces the calls, and an overdue attempt must not wait for one.
		w.retry.After(w.checkOnce(ctx))
	}
}

// checkOnce looks at every attempt in hand. While Redis does not answer, fences count as held and the deadlines last heard
// of as true.
func (w *watch) checkOnce(ctx context.Context) error {
	flights := w.session.inHand()
	if len(flights) == 0 {
		return nil
	}
	fences, now, err := w.read(ctx, flights)
	for i, f := range flights {
		switch {
		case err == nil && fences[i].Err == nil:
			w.judge(f, fences[i], now)
		case f.isOverdue():
			f.cancel(ErrDeadline)
		}
	}
	return err
}

func (w *watch) read(ctx context.Context, flights []*flight) ([]scripts.Fence, time.Time, error) {
	uids := make([]string, len(flights))
	for i, f := range flights {
		uids[i] = f.UID
	}
	ctx, cancel := context.WithTimeout(ctx, w.every)
	defer cancel()
	return w.session.queue.Fences(ctx, uids)
}

func (w *watch) judge(f *flight, fence scripts.Fence, now time.Time) {
	switch {
	case fence.AttemptUID != f.AttemptUID:
		f.cancel(ErrFenceLost)
	case !fence.DeadlineAt.IsZero() && !fence.DeadlineAt.After(now):
		f.cancel(ErrDeadline)
	case !fence.DeadlineAt.IsZero():
		f.due(fence.DeadlineAt, now, w.kick)
	case f.isOverdue():
		f.cancel(ErrDeadline)
	}
}
