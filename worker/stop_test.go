package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func TestWorkInFlightMayFinishWhenThePoolIsToldToStop(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
		r.block = true
		p := run(t, r, quick(), b.handle)
		r.offer("m")
		testkit.Await(t, b.began, "the attempt")
		p.cancel()
		r.offer("next")
		b.result <- nil
		r.must(p.wait())
		if got := ends(r.left()); !slices.Contains(got, model.MessageSuccess) {
			t.Errorf("told %v, want a success", got)
		}
		// What was taken at the last moment is handed back, what was not stays in the list.
		left := r.redis.LLen(t.Context(), r.Keys.Input).Val()
		if back := len(ends(r.left())) - 1; int64(back)+left != 1 {
			t.Errorf("%d handed back and %d left in the list, want one in all", back, left)
		}
	})
}

func TestWorkThatOutlastsTheGraceIsHandedBack(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
		config := quick()
		config.Grace = time.Millisecond
		p := run(t, r, config, b.handle)
		r.offer("m")
		testkit.Await(t, b.began, "the attempt")
		r.must(p.stop())
		if cause := testkit.Await(t, b.causes, "the end of the context"); !errors.Is(cause, ErrShutdown) {
			t.Errorf("cause: %v, want ErrShutdown", cause)
		}
		equal(t, []model.MessageType{model.MessageStarted, model.MessageInterrupted}, kinds(r.left()))
	})
}

func TestHurryEndsTheGraceAtOnceAndWhatIsInHandIsHandedBack(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
		hurry := make(chan struct{})
		config := quick()
		config.Grace, config.Hurry = time.Hour, hurry
		p := run(t, r, config, b.handle)
		r.offer("m")
		testkit.Await(t, b.began, "the attempt")
		p.cancel()
		close(hurry)
		if cause := testkit.Await(t, b.causes, "the end of the context"); !errors.Is(cause, ErrShutdown) {
			t.Errorf("cause: %v, want ErrShutdown", cause)
		}
		r.must(p.wait())
		equal(t, []model.MessageType{model.MessageInterrupted}, ends(r.left()))
	})
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
	testkit.Await(t, began, "the attempt")
	r.must(p.stop())
	if got := ends(r.left()); !slices.Equal(got, []model.MessageType{model.MessageSuccess}) {
		t.Errorf("told %v, want a success", got)
	}
}

func TestAHandlerThatIgnoresItsContextIsAbandonedAndHandedBackOnce(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r := newFixture(t, server)
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
		testkit.Await(t, began, "an attempt")
		testkit.Await(t, began, "the other attempt")
		err := p.stop()
		failIf(t, err == nil || !strings.Contains(err.Error(), "2 handlers"), "Run returned %v, want an error about 2 handlers", err)
		close(release)
		testkit.Await(t, gone, "a handler")
		testkit.Await(t, gone, "the other handler")
		want := []model.MessageType{model.MessageInterrupted, model.MessageInterrupted}
		equal(t, want, ends(r.left()))
	})
}

func TestAFenceIsStillWatchedDuringTheGrace(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	p := run(t, r, quick(), b.handle)
	r.offer("m")
	testkit.Await(t, b.began, "the attempt")
	p.cancel()
	r.set("m", "attempt_uid", "newer")
	if cause := testkit.Await(t, b.causes, "the end of the context"); !errors.Is(cause, ErrFenceLost) {
		t.Errorf("cause: %v, want ErrFenceLost", cause)
	}
	r.must(p.wait())
	if got := ends(r.left()); len(got) > 0 {
		t.Errorf("told %v", got)
	}
}

func TestEntriesThatArriveWhenThePoolIsToldToStopAreHandedBack(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	q := &faulty{Queue: r}
	r.offer("m")
	stop := make(chan func())
	q.take = func(taking store.TakeRequest) (store.Taken, error) {
		taken, err := r.Take(t.Context(), taking)
		(<-stop)() // the reply is under way when the pool is told to stop
		return taken, err
	}
	p := run(t, q, quick(), b.handle)
	stop <- p.cancel
	r.must(p.wait())
	equal(t, []model.MessageType{model.MessageInterrupted}, kinds(r.left()))
}

func TestTheEndOfAnAttemptIsToldByOneOnly(t *testing.T) {
	f := &flight{}
	if first, second := f.release(), f.release(); !first || second {
		t.Errorf("released %v, then %v; want once", first, second)
	}
}
