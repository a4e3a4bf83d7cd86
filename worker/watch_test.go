package worker

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func counting(r *queueFixture, checks chan struct{}) *faulty {
	return &faulty{Queue: r, fences: func(uids []string) ([]store.Fence, time.Time, error) {
		defer backoff.Signal(checks)
		return r.Fences(context.Background(), uids)
	}}
}

func TestALostFenceEndsTheWorkAndNothingIsTold(t *testing.T) {
	for name, lose := range map[string]func(*queueFixture){
		"superseded": func(r *queueFixture) { r.set("m", "attempt_uid", "newer") },
		"idle": func(r *queueFixture) {
			r.must(r.redis.HDel(context.Background(), r.Keys.Model("m"), "attempt_uid").Err())
		},
		"removed": func(r *queueFixture) { r.must(r.redis.Del(context.Background(), r.Keys.Model("m")).Err()) },
	} {
		t.Run(name, func(t *testing.T) {
			onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
				p := run(t, r, quick(), b.handle)
				r.offer("m", "other")
				check.Await(t, b.began, "an attempt")
				check.Await(t, b.began, "the other attempt")
				lose(r)
				cause := check.Await(t, b.causes, "the end of the context")
				failIf(t, !errors.Is(cause, ErrFenceLost), "cause: %v, want ErrFenceLost", cause)
				b.result <- nil
				r.must(p.stop())
				for _, m := range r.left() {
					failIf(t, m.UID == "m" && m.Type != model.MessageStarted, "told %+v", m)
				}
				s := p.Stats()
				failIf(t, s.Cancelled != 1 || s.Succeeded != 1, "counters: %+v, want 1 cancelled and the other one succeeded", s)
			})
		})
	}
}

func TestAPassedDeadlineEndsTheWorkAndNothingIsTold(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		r, clock := standstill(t, server)
		b := newBench()
		config := quick()
		config.FenceEvery = time.Minute // only the timer is left to notice
		p := run(t, r, config, b.handle)
		r.offerUntil("m", 300*time.Millisecond)
		check.Await(t, b.began, "the attempt")
		r.set("m", "processing_at", model.FormatTime(r.now()))
		clock.Turn(300 * time.Millisecond)
		cause := check.Await(t, b.causes, "the end of the context")
		failIf(t, !errors.Is(cause, ErrDeadline), "cause: %v, want ErrDeadline", cause)
		r.must(p.stop())
		got := ends(r.left())
		failIf(t, len(got) > 0, "told %v", got)
	})
}

// clockwork is a server whose clock and fence a test moves by hand.
type clockwork struct {
	*faulty
	now      time.Time
	deadline time.Time
	unbegun  bool // the message that the work has begun was not applied
	lost     bool // the model runs nothing
	err      error
	checks   chan struct{}
}

func newClockwork(r *queueFixture) *clockwork {
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	c := &clockwork{faulty: &faulty{Queue: r}, now: start, deadline: start.Add(30 * time.Millisecond), checks: make(chan struct{}, 1)}
	c.fences = func(uids []string) ([]store.Fence, time.Time, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		defer backoff.Signal(c.checks)
		if c.err != nil {
			return nil, time.Time{}, c.err
		}
		fences := make([]store.Fence, len(uids))
		for i, uid := range uids {
			if c.lost {
				continue
			}
			fences[i] = store.Fence{AttemptUID: uid + "-1", DeadlineAt: c.deadline, Begun: !c.unbegun}
		}
		return fences, c.now, nil
	}
	return c
}

func TestAMovedDeadlineEndsTheWorkWhenItComesAndNoSooner(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	c := newClockwork(r)
	config := quick()
	config.FenceEvery = time.Minute // only deadlines make the pool look
	run(t, c, config, b.handle)
	r.hand(b)
	check.Await(t, c.checks, "the look at the fence before the start")
	for range 3 { // each time the own timer has run out, and Redis has moved the deadline
		c.change(func() {
			c.now = c.deadline
			c.deadline = c.deadline.Add(30 * time.Millisecond)
		})
		check.Await(t, c.checks, "a look at the deadline")
	}
	stopIf(t, len(b.causes) > 0, "ended early")
	c.change(func() { c.now = c.deadline })
	cause := check.Await(t, b.causes, "the end of the context")
	failIf(t, !errors.Is(cause, ErrDeadline), "cause: %v, want ErrDeadline", cause)
}

// The dispatcher has the last word on an attempt that was taken at the deadline of its entry: its fence says so.
func TestADeadlineThatPassesWhileStartedIsOnItsWayEndsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		follows func(c *clockwork)
		cause   error // nil: the work goes on
	}{
		"it is applied, and the deadline moves": {func(c *clockwork) { c.unbegun, c.deadline = false, c.now.Add(time.Hour) }, nil},
		"the deadline moves as it waited":       {func(c *clockwork) { c.deadline = c.now.Add(time.Hour) }, nil},
		"it is applied, and the deadline stays": {func(c *clockwork) { c.unbegun = false }, ErrDeadline},
		"the dispatcher ends the attempt":       {func(c *clockwork) { c.lost = true }, ErrFenceLost},
	} {
		t.Run(name, func(t *testing.T) {
			r, b := newFixture(t, testkit.Miniredis(t)), newBench()
			c := newClockwork(r)
			c.unbegun = true
			p := run(t, c, quick(), b.handle)
			r.hand(b)
			c.change(func() { c.now = c.deadline })
			for range 5 {
				select {
				case <-c.checks:
				case cause := <-b.causes:
					t.Fatalf("ended while started was on its way: %v", cause)
				}
			}
			c.change(func() { test.follows(c) })
			if test.cause != nil {
				cause := check.Await(t, b.causes, "the end of the context")
				failIf(t, !errors.Is(cause, test.cause), "cause: %v, want %v", cause, test.cause)
				r.must(p.stop())
				got := ends(r.left())
				failIf(t, len(got) > 0, "told %v", got)
				return
			}
			for range 3 {
				check.Await(t, c.checks, "a look at the deadline")
			}
			b.result <- nil
			r.toldOf(model.MessageSuccess)
		})
	}
}

func TestAFenceThatCannotBeReadIsNotLost(t *testing.T) {
	for name, fail := range map[string]func(*clockwork){
		"none can": func(c *clockwork) { c.err = errBroken },
		"this one": func(c *clockwork) {
			c.fences = func([]string) ([]store.Fence, time.Time, error) {
				defer backoff.Signal(c.checks)
				return []store.Fence{{Err: errBroken}}, c.now, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, b := newFixture(t, testkit.Miniredis(t)), newBench()
			c := newClockwork(r)
			c.deadline = c.now.Add(time.Hour)
			run(t, c, quick(), b.handle)
			r.hand(b)
			c.change(func() { fail(c) })
			for range 5 {
				check.Await(t, c.checks, "a look at the fence")
			}
			b.result <- nil
			r.toldOf(model.MessageSuccess)
		})
	}
}

// Attempts without a confirmed start are handed back: they may have been queued for most of their time.
func TestTheDeadlineHoldsWhileRedisIsAway(t *testing.T) {
	for unbegun, want := range map[bool][]model.MessageType{false: {}, true: {model.MessageInterrupted}} {
		r, b := newFixture(t, testkit.Miniredis(t)), newBench()
		c := newClockwork(r)
		c.deadline, c.unbegun = c.now.Add(200*time.Millisecond), unbegun
		p := run(t, c, quick(), b.handle)
		r.hand(b)
		for range 2 { // the first may have been that before the start
			check.Await(t, c.checks, "a look at the fence")
		}
		c.change(func() { c.err = errBroken })
		cause := check.Await(t, b.causes, "the end of the context")
		failIf(t, !errors.Is(cause, ErrDeadline), "cause: %v, want ErrDeadline", cause)
		r.must(p.stop())
		equal(t, want, ends(r.left()))
	}
}

func TestATimerThatWasReplacedWhileItFiredEndsNothing(t *testing.T) {
	f := &execution{Attempt: &Attempt{}}
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	f.due(now.Add(time.Hour), now, nil)
	old := f.turn
	f.due(now.Add(2*time.Hour), now, nil)
	failIf(t, f.pass(old) || f.overdue.Load(), "the old deadline counts")
	failIf(t, !f.pass(f.turn) || !f.overdue.Load(), "the new deadline does not count")
	f.release()
}

// virtual is a queue in a bubble of testing/synctest.
func virtual(t *testing.T) (*queueFixture, *fixture.Queue) {
	t.Helper()
	q := fixture.Virtual(t)
	return &queueFixture{Part: fixture.Whole(q.Store), t: t, redis: q.Redis, block: true}, q
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
			map[string]int{"evalsha": 2}, // the pause is 0.5 to 1 s
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
		"beating": "heartbeat",
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
