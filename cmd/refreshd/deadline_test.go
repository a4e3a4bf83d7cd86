package main

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/worker"
)

// watched signals each look of a pool at its fences.
type watched struct {
	store.Pool
	looked chan struct{}
}

func (w watched) Fences(ctx context.Context, uids []string) ([]store.Fence, time.Time, error) {
	fences, now, err := w.Pool.Fences(ctx, uids)
	backoff.Signal(w.looked)
	return fences, now, err
}

func TestAPoolWorksUntilTheDeadlineThatStartedHasMoved(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		n := openNamed(t, server, "--model-name", "banner_uid")
		n.queue.Command(`{"type":"put","uid":"b","policy":{"timeout":"1m"}}`)
		n.round()
		n.queue.Clock.Turn(50 * time.Second) // it has waited in line
		attempts, finish := make(chan *worker.Attempt, 1), make(chan struct{})
		queue := watched{n.part.Pool(), make(chan struct{}, 1)}
		pool, err := worker.New(queue, func(ctx context.Context, a *worker.Attempt) error {
			attempts <- a
			select {
			case <-finish:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, worker.Config{FenceEvery: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- pool.Run(ctx) }()
		attempt := testkit.Await(t, attempts, "the attempt")
		old := attempt.Deadline()
		testkit.Eventually(t, "started is said", func() bool { return len(n.queue.List(n.part.Keys.Output)) == 1 })
		n.round()
		n.queue.Clock.Turn(15 * time.Second) // past the deadline of the entry
		for range 3 {                        // the first may have begun before that
			testkit.Await(t, queue.looked, "a look at the deadline")
		}
		if want := old.Add(50 * time.Second); !attempt.Deadline().Equal(want) || !attempt.DeadlineAt.Equal(old) {
			t.Errorf("expected the deadline moved from %s to %s, found %s and %s", old, want, attempt.DeadlineAt, attempt.Deadline())
		}
		close(finish)
		stop()
		if err := testkit.Await(t, ended, "the end of the pool"); err != nil {
			t.Fatal(err)
		}
		n.round()
		if stats := n.queue.Stats(); stats["success"] != 1 || stats["late"] != 0 || stats["timeout"] != 0 {
			t.Errorf("expected a success in time, found %v", stats)
		}
	})
}
