package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestThePoolOutlivesARestartOfRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	r, b := newFixture(t, server), newBench()
	r.block = true
	run(t, r, quick(), b.handle)
	r.offer("before")
	check.Await(t, b.began, "the attempt")
	r.toldOf(model.MessageStarted)
	server.Kill(t)
	b.result <- nil // its result has to wait
	server.Restart(t)
	check.Eventually(t, "redis has loaded its data", func() bool { return r.redis.Ping(context.Background()).Err() == nil })
	m := r.toldOf(model.MessageSuccess)
	failIf(t, m.UID != "before", "success of %s", m.UID)
	r.offer("after")
	check.Await(t, b.began, "an attempt after the restart")
	b.result <- nil
	m = r.toldOf(model.MessageSuccess)
	failIf(t, m.UID != "after", "success of %s", m.UID)
}

func TestAMessageIsPushedAgainUntilRedisTakesIt(t *testing.T) {
	r := newFixture(t, testkit.Miniredis(t))
	refusals := make(chan struct{}, 5)
	for range cap(refusals) {
		refusals <- struct{}{}
	}
	q := &faulty{Queue: r, push: func(string, []store.Answer) error {
		select {
		case <-refusals:
			return errBroken
		default:
			return nil
		}
	}}
	run(t, q, quick(), func(context.Context, *Attempt) error { return nil })
	r.offer("m")
	first, second := r.told(), r.told()
	failIf(t, first.Type != model.MessageStarted || second.Type != model.MessageSuccess, "told %s, %s; want started, success", first.Type, second.Type)
	n := len(r.left())
	failIf(t, n > 0 || len(refusals) > 0, "%d more messages, %d refusals not met", n, len(refusals))
}

func TestNothingIsTakenWhileRedisRefusesResults(t *testing.T) {
	r := newFixture(t, testkit.Miniredis(t))
	refused := make(chan struct{}, 1)
	q := &faulty{Queue: r, push: func(string, []store.Answer) error {
		defer backoff.Signal(refused)
		return errBroken
	}}
	config := quick()
	config.Concurrency, config.PushBatch = 1, 2
	config.FlushTimeout = time.Millisecond
	p := run(t, q, config, func(context.Context, *Attempt) error { return nil })
	for i := range 10 {
		r.offer(fmt.Sprint("m", i))
	}
	for range 10 {
		check.Await(t, refused, "a refusal")
	}
	s := p.Stats()
	failIf(t, s.Taken > 2, "%d taken while nothing could be told, want at most 2", s.Taken)
	q.change(func() { q.push = nil })
	for range 10 {
		r.toldOf(model.MessageSuccess)
	}
}

func TestEntriesWhoseReplyWasLostAreWorkedOnOnce(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		q, lost := &faulty{Queue: r}, 0
		q.take = func(taking store.TakeRequest) (store.Taken, error) {
			taken, err := r.Take(t.Context(), taking)
			if lost++; lost%2 == 1 && err == nil {
				return store.Taken{}, errBroken
			}
			return taken, err
		}
		r.offer("a", "b", "c")
		p := run(t, q, quick(), b.handle)
		for range 3 {
			check.Await(t, b.began, "an attempt")
			b.result <- nil
			r.toldOf(model.MessageSuccess)
		}
		r.must(p.stop())
		s := p.Stats()
		failIf(t, s.Taken != 3 || s.Succeeded != 3, "counters: %+v, want each attempt taken once", s)
	})
}

func newParts(t *testing.T, server *testkit.Server, count int) (parts []*queueFixture, queues []Queue) {
	t.Helper()
	client := server.Client(t)
	for i := range count {
		store, err := store.New(&redis.Clients{Read: client, Write: client, Block: client}, store.Config{Queue: fmt.Sprintf("{q:%d}", i)})
		must(t, err)
		r := &queueFixture{Part: fixture.Whole(store), t: t, redis: client}
		parts, queues = append(parts, r), append(queues, r)
	}
	return parts, queues
}

func runParts(t *testing.T, queues []Queue, config Config, handler Handler) {
	t.Helper()
	pool, err := NewForParts(queues, handler, config)
	must(t, err)
	check.Run(t, pool.Run)
}

func TestAPoolTakesFromAllPartsInTurnAndAnswersWhereItHasTaken(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
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
			part, _, _ := strings.Cut(check.Await(t, b.began, "an attempt").UID, "/")
			count[part]++
			b.result <- nil
		}
		for part := range parts {
			n := count[fmt.Sprint(part)]
			failIf(t, n < 8 || n > 12, "want about 10 of 30 attempts from each part, got %v", count)
		}
		for part, r := range parts {
			m := r.toldOf(model.MessageSuccess)
			failIf(t, !strings.HasPrefix(m.UID, fmt.Sprint(part, "/")), "part %d was told of %s", part, m.UID)
		}
	})
}

// A part that does not answer is asked outside of the turn: of its calls the first fails, and the next hangs until the test ends.
func TestAPartWhoseRedisFailsOrDoesNotAnswerKeepsNoOtherFromItsTurn(t *testing.T) {
	for name, hangs := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			parts, queues := newParts(t, testkit.Miniredis(t), 2)
			tried, end := make(chan struct{}, 1000), make(chan struct{})
			queues[0] = &faulty{Queue: queues[0], take: func(store.TakeRequest) (store.Taken, error) {
				tried <- struct{}{}
				return store.Taken{}, errBroken
			}, before: func(call string) {
				if call == "wait" && hangs {
					<-end
				}
			}}
			b, config := newBench(), quick()
			config.Concurrency, config.Grace = 1, -1
			runParts(t, queues, config, b.handle)
			t.Cleanup(func() { close(end) })
			check.Await(t, tried, "the first try")
			for n := range 50 {
				parts[1].offer(fmt.Sprint("m", n))
				check.Await(t, b.began, "an attempt of the other part")
				b.result <- nil
			}
			again := len(tried)
			failIf(t, hangs && again > 0, "want nothing taken from a part that does not answer, got %d tries", again)
		})
	}
}
