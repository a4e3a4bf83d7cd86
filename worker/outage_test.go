package worker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func TestThePoolOutlivesARestartOfRedis(t *testing.T) {
	server := testkit.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	r, b := newFixture(t, server), newBench()
	r.block = true
	run(t, r, quick(), b.handle)
	r.offer("before")
	testkit.Await(t, b.began, "the attempt")
	r.toldOf(model.MessageStarted)
	server.Kill(t)
	b.result <- nil // its result has to wait
	server.Restart(t)
	testkit.Eventually(t, "redis has loaded its data", func() bool { return r.redis.Ping(context.Background()).Err() == nil })
	if m := r.toldOf(model.MessageSuccess); m.UID != "before" {
		t.Errorf("success of %s", m.UID)
	}
	r.offer("after")
	testkit.Await(t, b.began, "an attempt after the restart")
	b.result <- nil
	if m := r.toldOf(model.MessageSuccess); m.UID != "after" {
		t.Errorf("success of %s", m.UID)
	}
}

func TestAMessageIsPushedAgainUntilRedisTakesIt(t *testing.T) {
	r := newFixture(t, testkit.Miniredis(t))
	refusals := make(chan struct{}, 5)
	for range cap(refusals) {
		refusals <- struct{}{}
	}
	q := &faulty{Queue: r, push: func([]store.Answer) error {
		select {
		case <-refusals:
			return errBroken
		default:
			return nil
		}
	}}
	run(t, q, quick(), func(context.Context, *Attempt) error { return nil })
	r.offer("m")
	if first, second := r.told(), r.told(); first.Type != model.MessageStarted || second.Type != model.MessageSuccess {
		t.Errorf("told %s, %s; want started, success", first.Type, second.Type)
	}
	if n := len(r.left()); n > 0 || len(refusals) > 0 {
		t.Errorf("%d more messages, %d refusals not met", n, len(refusals))
	}
}

func TestNothingIsTakenWhileRedisRefusesResults(t *testing.T) {
	r := newFixture(t, testkit.Miniredis(t))
	refused := make(chan struct{}, 1)
	q := &faulty{Queue: r, push: func([]store.Answer) error {
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
		testkit.Await(t, refused, "a refusal")
	}
	if s := p.Stats(); s.Taken > 2 {
		t.Errorf("%d taken while nothing could be told, want at most 2", s.Taken)
	}
	q.change(func() { q.push = nil })
	for range 10 {
		r.toldOf(model.MessageSuccess)
	}
}

func TestEntriesWhoseReplyWasLostAreWorkedOnOnce(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
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
			testkit.Await(t, b.began, "an attempt")
			b.result <- nil
			r.toldOf(model.MessageSuccess)
		}
		r.must(p.stop())
		if s := p.Stats(); s.Taken != 3 || s.Succeeded != 3 {
			t.Errorf("counters: %+v, want each attempt taken once", s)
		}
	})
}

func TestErrorsAreLoggedAtPowersOfTwoAndPausesGrowToABound(t *testing.T) {
	lines := 0
	log := zerolog.New(nil).Hook(zerolog.HookFunc(func(*zerolog.Event, zerolog.Level, string) { lines++ })).Output(discard{})
	config := Config{Backoff: 50 * time.Millisecond, MaxBackoff: time.Second, Log: &log}
	retry := config.retry("testing")
	for i := range 100 {
		pause := retry.After(errBroken)
		full := min(50*time.Millisecond<<min(i, 10), time.Second)
		failIf(t, pause < full/2 || pause > full, "pause %d is %s, want %s to %s", i, pause, full/2, full)
	}
	if lines != 7 { // 1 2 4 8 16 32 64
		t.Errorf("%d lines for 100 failures, want 7", lines)
	}
	if pause := retry.After(nil); pause != 0 || lines != 8 {
		t.Errorf("after the success: pause %s, %d lines; want 0 and 8", pause, lines)
	}
	if pause := retry.After(errBroken); pause > 50*time.Millisecond {
		t.Errorf("the next error begins with a pause of %s", pause)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
