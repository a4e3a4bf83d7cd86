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

func TestTheResultOfAnAttemptThatOthersHaveIsNotTold(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
		q, config := &faulty{Queue: r}, quick()
		config.Concurrency = 1
		p := run(t, q, config, b.handle)
		r.offer("m")
		testkit.Await(t, b.began, "the attempt")
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
		if got := r.left(); len(got) > 0 {
			t.Errorf("told %+v", got)
		}
		if got := r.standing(); len(got) != 1 {
			t.Errorf("entries %q, want that of the other", got)
		}
	})
}

func TestEveryEndOfAnAttemptClearsItsEntry(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
		config := quick()
		config.Concurrency = 1
		p := run(t, r, config, b.handle)
		r.queue("", "garbage") // unreadable
		r.offer("m")
		testkit.Await(t, b.began, "the attempt")
		r.set("m", "attempt_uid", "newer") // superseded during the work
		if cause := testkit.Await(t, b.causes, "the end of the context"); !errors.Is(cause, ErrFenceLost) || errors.Is(cause, ErrRequeued) {
			t.Errorf("cause: %v, want ErrFenceLost", cause)
		}
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
		testkit.Eventually(t, "no entry stands in a taken list", func() bool { return len(r.standing()) == 0 })
		r.must(p.stop())
		if got := r.workers(); len(got) > 0 {
			t.Errorf("workers %q, want none", got)
		}
	})
}

func TestWhatCouldNotBeToldIsCountedAndHandedBackAtTheEnd(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r := newFixture(t, server)
		q := &faulty{Queue: r, push: func([]store.Answer) error { return errBroken }}
		config := quick()
		config.FlushTimeout = 20 * time.Millisecond
		done := make(chan struct{})
		p := run(t, q, config, func(context.Context, *Attempt) error {
			close(done)
			return nil
		})
		r.offer("m")
		testkit.Await(t, done, "the attempt")
		if err := p.stop(); err == nil || !strings.Contains(err.Error(), "2 messages") {
			t.Errorf("Run returned %v, want an error about 2 messages", err)
		}
		if left := r.redis.LLen(t.Context(), r.Keys.Input).Val(); left != 1 || len(r.workers())+len(r.standing()) > 0 {
			t.Errorf("%d in the input list, workers %q, entries %q; want the attempt in the list only", left, r.workers(), r.standing())
		}
	})
}

func TestMessagesOfTwoNamesArePushedApart(t *testing.T) {
	var owners []string
	o := newSender(ownerQueue{owners: &owners}, newHolding(), &Config{PushBatch: 10, FlushTimeout: testkit.Limit, Log: Config{}.WithDefaults().Log})
	for _, owner := range []string{"old", "old", "new", "old"} {
		o.add(message{Type: model.MessageSuccess, owner: owner})
	}
	o.drain(t.Context())
	if want := []string{"old", "new", "old"}; !slices.Equal(owners, want) {
		t.Errorf("pushed for %q, want %q", owners, want)
	}
}

// ownerQueue notes whose messages come together.
type ownerQueue struct {
	Queue
	owners *[]string
}

func (q ownerQueue) Wire() model.Wire { return model.Wire{} }

func (q ownerQueue) Answer(_ context.Context, owner string, _ []store.Answer) ([]store.Code, error) {
	*q.owners = append(*q.owners, owner)
	return nil, nil
}
