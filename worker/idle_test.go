package worker

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
					most := test.most[command]*int(idleFor/time.Second) + first
					failIf(t, count > most, "want at most %d of %s in %s, got %v", most, command, idleFor, counts)
				}
			})
		})
	}
}

func TestRunReturnsWhenAllThatItBeganHasEndedAndNotBefore(t *testing.T) {
	for name, call := range map[string]string{
		"taking": "take", "waiting": "wait", "reading the fences of what it took": "fences", "watching": "fences", "pushing": "answer",
		"beating": "heartbeat", "looking for the dead": "look",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := virtual(t)
				waiting, release := make(chan struct{}, 1), make(chan struct{})
				var passes atomic.Int64 // how many of these calls pass before one is stuck
				if name == "watching" {
					passes.Store(1)
				}
				queue := &faulty{Queue: r, before: func(called string) {
					if called == call && passes.Add(-1) == -1 {
						waiting <- struct{}{}
						<-release
					}
				}}
				p := run(t, queue, Config{Concurrency: 2}, newBench().handle)
				r.offer("a")
				<-waiting
				p.cancel()
				time.Sleep(time.Minute) // all time limits have passed
				failIf(t, len(p.ended) > 0, "Run has returned while a call was under way: the caller closes Redis next")
				close(release)
				err := p.wait()
				failIf(t, err != nil && call != "answer", "%v", err)
			})
		})
	}
}
