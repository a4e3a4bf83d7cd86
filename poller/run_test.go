package poller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

// start runs a poller on the clock of Redis and returns what ends it.
func (b *bundle) start(config poller.Config) (stop func()) {
	b.t.Helper()
	p, err := poller.New(b.Store, config)
	must(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			b.t.Error(err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// awaitWake blocks as a dispatcher does until a model is due at once.
func (b *bundle) awaitWake() {
	b.t.Helper()
	if err := b.Redis.BLPop(context.Background(), 0, b.Store.Keys.Wake).Err(); err != nil {
		b.t.Fatalf("wait for a wake call: %v", err)
	}
}

func TestAnIdlePollerAnswersAMessageFromEitherList(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := &bundle{fixture.Live(t, server), t}
		stop := b.start(poller.Config{})
		b.Command(put("a"))
		b.awaitWake()
		b.dispatch()
		b.Say(b.result("failure", "a"))
		b.awaitWake() // the retry at once
		stop()
		if owners := b.Scores(b.Store.Keys.Pollers); len(owners) != 0 {
			t.Errorf("want a stopped poller to have resigned, got %v", owners)
		}
	})
}

func TestAPollerOutlivesErrorsOfRedis(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	lines := make(testkit.Lines, 1)
	log := zerolog.New(lines).Level(zerolog.ErrorLevel)
	stop := b.start(poller.Config{Tick: 20 * time.Millisecond, Backoff: time.Millisecond, Log: &log})
	defer stop()
	for i, answer := range []string{"LOADING Redis is loading the dataset in memory", "READONLY You can't write", "ERR broken"} {
		b.Server.Mini.SetError(answer)
		<-lines // the poller has met it
		b.Server.Mini.SetError("")
		b.Command(put(fmt.Sprint("m", i)))
		b.awaitWake()
	}
}

func TestAPollerCanBeStoppedAtAnyMoment(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	var running sync.WaitGroup
	for range 10 {
		running.Go(func() {
			for range 3 {
				b.start(poller.Config{})()
			}
		})
	}
	running.Wait()
}

func TestConfigIsRefusedWithTheFieldAndItsRange(t *testing.T) {
	cases := []struct {
		config poller.Config
		want   string
	}{
		{poller.Config{}, "<nil>"},
		{poller.Config{Lease: time.Second}, "<nil>"},
		{poller.Config{Owner: "a b"}, `owner: expected at most 100 characters without braces and spaces, found "a b"`},
		{poller.Config{Batch: 5000}, "batch: expected 2 to 1000, found 5000"},
		{poller.Config{Tick: time.Hour}, "tick: expected 10ms to 1m, found 1h0m0s"},
		{poller.Config{Lease: time.Second, Tick: time.Second}, "lease: expected at least four ticks of 1s, found 1s"},
		{poller.Config{Backoff: time.Minute}, "backoff: expected 1ms to the tick of 1s, found 1m0s"},
	}
	for _, c := range cases {
		_, err := poller.New(nil, c.config)
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%+v: want %q, got %q", c.config, c.want, got)
		}
	}
}
