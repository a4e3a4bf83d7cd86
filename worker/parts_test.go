package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// newParts returns queues that stand for the parts of one.
func newParts(t *testing.T, server *testkit.Server, count int) (parts []*queueFixture, queues []Queue) {
	t.Helper()
	client := server.Client(t)
	for i := range count {
		store, err := store.New(&store.Clients{Read: client, Write: client, Block: client}, store.Config{Queue: fmt.Sprintf("{q:%d}", i)})
		must(t, err)
		r := &queueFixture{Pool: store.Pool(), t: t, redis: client}
		parts, queues = append(parts, r), append(queues, r)
	}
	return parts, queues
}

// runParts runs a pool over several queues until the test ends.
func runParts(t *testing.T, queues []Queue, config Config, handler Handler) {
	t.Helper()
	pool, err := NewForParts(queues, handler, config)
	must(t, err)
	testkit.Run(t, pool.Run)
}

func TestAPoolTakesFromAllPartsInTurnAndAnswersWhereItHasTaken(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		parts, queues := newParts(t, server, 3)
		for i, r := range parts {
			for n := range 20 {
				r.offer(fmt.Sprintf("%d/%d", i, n))
			}
		}
		b, config := newBench(), quick()
		config.Concurrency, config.Grace = 1, -1
		runParts(t, queues, config, b.handle)
		count := map[string]int{}
		for range 30 {
			part, _, _ := strings.Cut(testkit.Await(t, b.began, "an attempt").UID, "/")
			count[part]++
			b.result <- nil
		}
		for part := range parts {
			if n := count[fmt.Sprint(part)]; n < 8 || n > 12 {
				t.Errorf("want about 10 of 30 attempts from each part, got %v", count)
			}
		}
		for part, r := range parts {
			if m := r.toldOf(model.MessageSuccess); !strings.HasPrefix(m.UID, fmt.Sprint(part, "/")) {
				t.Errorf("part %d was told of %s", part, m.UID)
			}
		}
	})
}

func TestAPartWhoseRedisFailsKeepsNoOtherFromItsTurn(t *testing.T) {
	parts, queues := newParts(t, testkit.Miniredis(t), 2)
	queues[0] = &faulty{Queue: queues[0], take: func(store.TakeRequest) (store.Taken, error) { return store.Taken{}, errBroken }}
	b, config := newBench(), quick()
	config.Concurrency, config.Grace = 1, -1
	runParts(t, queues, config, b.handle)
	for n := range 50 {
		parts[1].offer(fmt.Sprint("m", n))
		testkit.Await(t, b.began, "an attempt of the other part")
		b.result <- nil
	}
}

func TestAPoolOfNoPartsIsRefused(t *testing.T) {
	handler := func(context.Context, *Attempt) error { return nil }
	for _, queues := range [][]Queue{nil, {}, {nil}} {
		if _, err := NewForParts(queues, handler, Config{}); err == nil {
			t.Errorf("%v: want a refusal", queues)
		}
	}
}

// TestAPartThatDoesNotAnswerIsAskedOutsideOfTheTurn lets the calls of a part hang, each until the test ends but the first.
func TestAPartThatDoesNotAnswerIsAskedOutsideOfTheTurn(t *testing.T) {
	parts, queues := newParts(t, testkit.Miniredis(t), 2)
	stuck := &stuckQueue{Queue: queues[0], taken: make(chan struct{}, 100), end: make(chan struct{})}
	queues[0] = stuck
	b, config := newBench(), quick()
	config.Concurrency, config.Grace = 1, -1
	runParts(t, queues, config, b.handle)
	t.Cleanup(func() { close(stuck.end) })
	testkit.Await(t, stuck.taken, "the first try")
	for n := range 50 {
		parts[1].offer(fmt.Sprint("m", n))
		testkit.Await(t, b.began, "an attempt of the other part")
		b.result <- nil
	}
	if again := len(stuck.taken); again > 0 {
		t.Errorf("want nothing taken from a part that does not answer, got %d tries", again)
	}
}

// stuckQueue fails to take, and then waits without an answer.
type stuckQueue struct {
	Queue
	taken chan struct{}
	end   chan struct{}
}

func (s *stuckQueue) Take(context.Context, store.TakeRequest) (store.Taken, error) {
	s.taken <- struct{}{}
	return store.Taken{}, errBroken
}

func (s *stuckQueue) WaitInput(context.Context) (bool, error) {
	<-s.end
	return false, errBroken
}
