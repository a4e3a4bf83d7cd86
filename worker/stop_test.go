package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

func TestWorkInFlightMayFinishWhenThePoolIsToldToStop(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		r.block = true
		p := run(t, r, quick(), b.handle)
		r.hand(b)
		p.cancel()
		r.offer("next")
		b.result <- nil
		r.must(p.wait())
		got := ends(r.left())
		failIf(t, !slices.Contains(got, model.MessageSuccess), "told %v, want a success", got)
		// What was taken at the last moment is handed back, what was not stays in the list.
		left := r.redis.LLen(t.Context(), r.Keys.Input).Val()
		back := len(ends(r.left())) - 1
		failIf(t, int64(back)+left != 1, "%d handed back and %d left in the list, want one in all", back, left)
	})
}

func TestWorkThatOutlastsTheGraceIsHandedBackWhichHurryEndsAtOnce(t *testing.T) {
	for name, grace := range map[string]time.Duration{"grace": time.Millisecond, "hurry": time.Hour} {
		t.Run(name, func(t *testing.T) {
			onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
				hurry, config := make(chan struct{}), quick()
				config.Grace, config.Hurry = grace, hurry
				p := run(t, r, config, b.handle)
				r.hand(b)
				p.cancel()
				if grace == time.Hour {
					close(hurry)
				}
				cause := check.Await(t, b.causes, "the end of the context")
				failIf(t, !errors.Is(cause, ErrShutdown), "cause: %v, want ErrShutdown", cause)
				r.must(p.wait())
				equal(t, []model.MessageType{model.MessageStarted, model.MessageInterrupted}, kinds(r.left()))
			})
		})
	}
}

func TestASuccessAfterTheGraceStillCounts(t *testing.T) {
	r := newFixture(t, testkit.Miniredis(t))
	config := quick()
	config.Grace = -1
	began := make(chan struct{})
	p := run(t, r, config, func(ctx context.Context, _ *Attempt) error {
		close(began)
		<-ctx.Done()
		return nil
	})
	r.offer("m")
	check.Await(t, began, "the attempt")
	r.must(p.stop())
	got := ends(r.left())
	failIf(t, !slices.Equal(got, []model.MessageType{model.MessageSuccess}), "told %v, want a success", got)
}

func TestAHandlerThatIgnoresItsContextIsAbandonedAndHandedBackOnce(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, _ *bench) {
		config := quick()
		config.Grace, config.Linger = -1, time.Millisecond
		began, release, gone := make(chan struct{}, 2), make(chan struct{}), make(chan struct{}, 2)
		p := run(t, r, config, func(_ context.Context, attempt *Attempt) error {
			defer func() { gone <- struct{}{} }()
			began <- struct{}{}
			<-release
			attempt.Status("too late", 100)
			return nil
		})
		r.offer("a", "b")
		check.Await(t, began, "an attempt")
		check.Await(t, began, "the other attempt")
		err := p.stop()
		failIf(t, err == nil || !strings.Contains(err.Error(), "2 handlers"), "Run returned %v, want an error about 2 handlers", err)
		close(release)
		check.Await(t, gone, "a handler")
		check.Await(t, gone, "the other handler")
		want := []model.MessageType{model.MessageInterrupted, model.MessageInterrupted}
		equal(t, want, ends(r.left()))
	})
}

func TestAFenceIsStillWatchedDuringTheGrace(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	p := run(t, r, quick(), b.handle)
	r.hand(b)
	p.cancel()
	r.set("m", "attempt_uid", "newer")
	cause := check.Await(t, b.causes, "the end of the context")
	failIf(t, !errors.Is(cause, ErrFenceLost), "cause: %v, want ErrFenceLost", cause)
	r.must(p.wait())
	got := ends(r.left())
	failIf(t, len(got) > 0, "told %v", got)
}

func TestEntriesThatArriveWhenThePoolIsToldToStopAreHandedBack(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	q := &faulty{Queue: r}
	r.offer("m")
	stop := make(chan func())
	q.take = func(taking store.TakeRequest) (store.Taken, error) {
		taken, err := r.Take(t.Context(), taking)
		(<-stop)() // the reply is under way when the pool is stopped
		return taken, err
	}
	p := run(t, q, quick(), b.handle)
	stop <- p.cancel
	r.must(p.wait())
	equal(t, []model.MessageType{model.MessageInterrupted}, kinds(r.left()))
}

func TestTheResultOfAnAttemptThatOthersHaveIsNotTold(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		q, config := &faulty{Queue: r}, quick()
		config.Concurrency = 1
		p := run(t, q, config, b.handle)
		r.hand(b)
		r.toldOf(model.MessageStarted)
		q.change(func() { // the pool must not be quicker than the other one
			q.take = func(store.TakeRequest) (store.Taken, error) { return store.Taken{}, errBroken }
		})
		owners := r.workers()
		_, err := r.Leave(t.Context(), owners[0]) // as another pool hands it back
		r.must(err)
		r.takeAs("other", 1)
		b.result <- nil
		r.must(p.stop())
		got := r.left()
		failIf(t, len(got) > 0, "told %+v", got)
		entries := r.standing()
		failIf(t, len(entries) != 1, "entries %q, want that of the other", entries)
	})
}

func TestEveryEndOfAnAttemptClearsItsEntry(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		config := quick()
		config.Concurrency = 1
		p := run(t, r, config, b.handle)
		r.queue("", "garbage") // unreadable
		r.hand(b)
		r.set("m", "attempt_uid", "newer") // superseded during the work
		cause := check.Await(t, b.causes, "the end of the context")
		failIf(t, !errors.Is(cause, ErrFenceLost) || errors.Is(cause, ErrRequeued), "cause: %v, want ErrFenceLost", cause)
		r.offer("stale")
		r.set("stale", "attempt_uid", "newer")
		r.offerUntil("late", 0)
		r.offer("failing")
		for a := range b.began { // stale may be begun before it is superseded
			if a.UID == "failing" {
				break
			}
		}
		b.result <- errBroken
		r.toldOf(model.MessageFailure)
		check.Eventually(t, "no entry stands in a taken list", func() bool { return len(r.standing()) == 0 })
		r.must(p.stop())
		got := r.workers()
		failIf(t, len(got) > 0, "workers %q, want none", got)
	})
}

func TestWhatCouldNotBeToldIsCountedAndHandedBackAtTheEnd(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, _ *bench) {
		q := &faulty{Queue: r, push: func(string, []store.Answer) error { return errBroken }}
		config := quick()
		config.FlushTimeout = 20 * time.Millisecond
		done := make(chan struct{})
		p := run(t, q, config, func(context.Context, *Attempt) error {
			close(done)
			return nil
		})
		r.offer("m")
		check.Await(t, done, "the attempt")
		err := p.stop()
		failIf(t, err == nil || !strings.Contains(err.Error(), "2 messages"), "Run returned %v, want an error about 2 messages", err)
		if left := r.redis.LLen(t.Context(), r.Keys.Input).Val(); left != 1 || len(r.workers())+len(r.standing()) > 0 {
			t.Errorf("%d in the input list, workers %q, entries %q; want the attempt in the list only", left, r.workers(), r.standing())
		}
	})
}

// frozenQueue takes messages until the test freezes it: then a push lasts as long as it may.
type frozenQueue struct {
	Queue
	frozen atomic.Bool
	pushes chan struct{}
}

func (q *frozenQueue) Answer(ctx context.Context, owner string, answers []store.Answer) ([]bool, error) {
	if !q.frozen.Load() {
		return q.Queue.Answer(ctx, owner, answers)
	}
	backoff.Signal(q.pushes)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAPoolWhoseRedisIsFrozenEndsWithinOneFlush(t *testing.T) {
	t.Parallel()
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	q, config := &frozenQueue{Queue: r, pushes: make(chan struct{}, 1)}, quick()
	config.FlushTimeout = 2 * time.Second
	p := run(t, q, config, b.handle)
	r.hand(b)
	r.toldOf(model.MessageStarted)
	q.frozen.Store(true)
	b.result <- nil
	check.Await(t, q.pushes, "the push that hangs")
	begun := time.Now()
	err := p.stop()
	took := time.Since(begun)
	failIf(t, err == nil || took > 3500*time.Millisecond, "ended after %s with %v, want one flush and an error", took, err)
}
