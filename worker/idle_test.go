package worker

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// virtual is a queue in a bubble of testing/synctest.
func virtual(t *testing.T) (*queueFixture, *fixture.Queue) {
	t.Helper()
	q := fixture.Virtual(t)
	return &queueFixture{Pool: q.Store.Pool(), t: t, redis: q.Redis, block: true}, q
}

func TestAPoolWithNothingToDoAsksRedisLittle(t *testing.T) {
	const idleFor = time.Minute
	files, err := filepath.Glob("../scripts/*.lua")
	must(t, err)
	for name, test := range map[string]struct {
		prepare func(r *queueFixture, q *fixture.Queue)
		most    map[string]int // a second
	}{
		"an empty list": {
			func(*queueFixture, *fixture.Queue) {},
			map[string]int{"evalsha": 2, "blmove": 1, "zrangebyscore": 2}, // it takes and gives a heartbeat, waits, looks for the dead
		},
		"an attempt in each slot": {
			func(r *queueFixture, _ *fixture.Queue) { r.offer("a", "b", "c") },
			map[string]int{"evalsha": 1, "zrangebyscore": 2, "hmget": 2, "time": 1}, // it takes no more, and looks at two fences
		},
		"a Redis that fails": {
			func(_ *queueFixture, q *fixture.Queue) {
				q.Server.Mini.SetError("LOADING Redis is loading the dataset in memory")
			},
			map[string]int{"evalsha": 1},
		},
		"a list of another type": {
			func(r *queueFixture, _ *fixture.Queue) {
				r.must(r.redis.Set(r.t.Context(), r.Keys.Input, "text", 0).Err())
			},
			map[string]int{"evalsha": 2, "zrangebyscore": 2, "blmove": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, q := virtual(t)
				test.prepare(r, q)
				calls := q.Count()
				p := run(t, r, Config{Concurrency: 2, Grace: -1}, newBench().handle)
				time.Sleep(idleFor)
				counts := calls.Counts()
				q.Server.Mini.SetError("")
				r.must(p.stop())
				for command, count := range counts {
					first := 20 // more is to do then
					if command == "script" {
						first = len(files) // each is loaded once
					}
					if most := test.most[command]*int(idleFor/time.Second) + first; count > most {
						t.Errorf("want at most %d of %s in %s, got %v", most, command, idleFor, counts)
					}
				}
			})
		})
	}
}

// stuck is a queue of which one call ends only when it is released, whatever happens to its context.
type stuck struct {
	Queue
	call             string
	passed           atomic.Int64 // how many of these calls may pass before
	waiting, release chan struct{}
}

func (s *stuck) at(call string) {
	if call == s.call && s.passed.Add(-1) == -1 {
		select {
		case s.waiting <- struct{}{}:
		default:
		}
		<-s.release
	}
}

func (s *stuck) Take(ctx context.Context, taking store.TakeRequest) (store.Taken, error) {
	s.at("take")
	return s.Queue.Take(ctx, taking)
}

func (s *stuck) WaitInput(ctx context.Context) (bool, error) {
	s.at("wait")
	return s.Queue.WaitInput(ctx)
}

func (s *stuck) Answer(ctx context.Context, owner string, answers []store.Answer) ([]store.Code, error) {
	s.at("answer")
	return s.Queue.Answer(ctx, owner, answers)
}

func (s *stuck) Fences(ctx context.Context, uids []string) ([]store.Fence, time.Time, error) {
	s.at("fences")
	return s.Queue.Fences(ctx, uids)
}

func (s *stuck) Heartbeat(ctx context.Context, owner string) (time.Time, bool, error) {
	s.at("heartbeat")
	return s.Queue.Heartbeat(ctx, owner)
}

func (s *stuck) ExpiredWorkers(ctx context.Context, now time.Time, lease time.Duration) ([]store.ExpiredWorker, error) {
	s.at("look")
	return s.Queue.ExpiredWorkers(ctx, now, lease)
}

func TestRunReturnsWhenAllThatItBeganHasEndedAndNotBefore(t *testing.T) {
	for name, call := range map[string]string{
		"taking": "take", "waiting": "wait", "reading the fences of what it took": "fences", "watching": "fences", "pushing": "answer",
		"beating": "heartbeat", "looking for the dead": "look",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := virtual(t)
				queue := &stuck{Queue: r, call: call, waiting: make(chan struct{}, 1), release: make(chan struct{})}
				if name == "watching" {
					queue.passed.Store(1)
				}
				p := run(t, queue, Config{Concurrency: 2}, newBench().handle)
				r.offer("a")
				<-queue.waiting
				p.cancel()
				time.Sleep(time.Minute) // all time limits have passed
				failIf(t, len(p.ended) > 0, "Run has returned while a call was under way: the caller closes Redis next")
				close(queue.release)
				if err := p.wait(); err != nil && call != "answer" {
					t.Error(err)
				}
			})
		})
	}
}
