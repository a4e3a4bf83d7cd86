package poller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// start runs a poller on the clock of Redis and returns what ends it.
func (b *bundle) start(config poller.Config) (stop func()) {
	b.t.Helper()
	p, err := poller.New(poller.RoomsOf(b.Store), config)
	must(b.t, err)
	return check.Background(b.t, p.Run)
}

// awaitWake blocks as a dispatcher does until a model is due at once.
func (b *bundle) awaitWake() {
	b.t.Helper()
	err := b.Redis.BLPop(context.Background(), 0, b.Store.Keys.Wake).Err()
	stopIf(b.t, err != nil, "wait for a wake call: %v", err)
}

func TestAnIdlePollerAnswersAMessageFromEitherList(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := &bundle{fixture.Live(t, server), t}
		stop := b.start(poller.Config{})
		b.Command(put("a"))
		b.awaitWake()
		b.dispatch()
		b.Say(b.result("failure", "a"))
		b.awaitWake() // the retry at once
		stop()
		owners := b.Scores(b.Store.Keys.Pollers)
		failIf(t, len(owners) != 0, "want a stopped poller to have resigned, got %v", owners)
	})
}

// With a tick of a minute only the signal of a list can be in time.
func TestAPollerThatRestsAfterEachMessageMissesNone(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := &bundle{fixture.Live(t, server), t}
		defer b.start(poller.Config{Tick: time.Minute, Lease: 4 * time.Minute})()
		for i := range 30 {
			for range i % 3 {
				b.Say("garbage")
			}
			b.Command(put(fmt.Sprint("m", i)))
			b.awaitWake()
		}
	})
}

func TestAPollerOutlivesErrorsOfRedis(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	lines := make(check.Lines, 1)
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
		{poller.Config{Owner: "a b"}, `owner: expected at most 100 characters without braces, spaces and control characters, found "a b"`},
		{poller.Config{Batch: 5000}, "batch: expected 2 to 1000, found 5000"},
		{poller.Config{Tick: time.Hour}, "tick: expected 10ms to 1m, found 1h0m0s"},
		{poller.Config{Lease: time.Second, Tick: time.Second}, "lease: expected at least four ticks of 1s, found 1s"},
		{poller.Config{Backoff: time.Minute}, "backoff: expected 1ms to the tick of 1s, found 1m0s"},
	}
	for _, c := range cases {
		_, err := poller.New(poller.Rooms{}, c.config)
		got := fmt.Sprint(err)
		failIf(t, got != c.want, "%+v: want %q, got %q", c.config, c.want, got)
	}
}

func TestAPollerWithNothingToDoDoesARoundATickAndAsksRedisLittle(t *testing.T) {
	const idleFor, tick = time.Minute, time.Second
	for name, test := range map[string]struct {
		pollers int
		prepare func(b *bundle)
	}{
		"empty lists":            {1, func(*bundle) {}},
		"a Redis that fails":     {1, func(b *bundle) { b.Server.Mini.SetError("LOADING Redis is loading the dataset in memory") }},
		"a list of another type": {1, func(b *bundle) { b.Redis.Set(b.t.Context(), b.Store.Keys.Output, "text", 0) }},
		"others that live": {3, func(b *bundle) {
			for range 2 {
				b.t.Cleanup(b.start(poller.Config{Tick: tick}))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bundle{fixture.Virtual(t), t}
				test.prepare(b)
				calls, rounds, failed := b.Count(), 0, 0
				stop := b.start(poller.Config{Tick: tick, Observe: func() func(error) {
					rounds++
					return func(err error) {
						if err != nil {
							failed++
						}
					}
				}})
				time.Sleep(idleFor)
				stop()
				b.Server.Mini.SetError("")
				failIf(t, name == "a Redis that fails" && failed != rounds || name == "empty lists" && failed > 0, "of %d rounds %d were told to fail", rounds, failed)
				seconds := int(idleFor / time.Second)
				// The pauses after errors are half a tick at least, and shorter after the first ones.
				if least, most := seconds-1, 2*seconds+10; rounds < least || rounds > most {
					t.Errorf("want %d to %d rounds, got %d", least, most, rounds)
				}
				// A round claims; each list is waited for once a second, and expired pollers are looked for four times in a lease.
				counts := calls.Counts()
				for command, most := range map[string]int{"evalsha": 2*seconds + 10, "blmove": 2*seconds + 10, "zrangebyscore": 2 * seconds} {
					failIf(t, counts[command] > test.pollers*most, "want at most %d of %s, got %v", test.pollers*most, command, counts)
				}
				notes := 0 // of its zone data, at the beginning, when zones are loaded, and once a minute
				for _, command := range []string{"watch", "unwatch", "hgetall", "hset", "time", "zrange", "exec", "multi", "hdel", "del", "zadd"} {
					notes += counts[command]
					delete(counts, command)
				}
				if name == "a Redis that fails" { // each round begins with it
					notes -= rounds
				}
				failIf(t, notes > test.pollers*40, "want at most %d calls to note the zone data, got %d", test.pollers*40, notes)
				if len(counts) > 6 { // and eval, hello and multi
					t.Errorf("want no other commands, got %v", counts)
				}
			})
		})
	}
}

// stuck is a store whose waits for messages end only when they are released, whatever happens to their context.
type stuck struct {
	*store.Store
	waiting chan struct{}
	release map[string]chan struct{}
}

func (s *stuck) wait(list string) (bool, error) {
	s.waiting <- struct{}{}
	<-s.release[list]
	return false, nil
}

func (s *stuck) WaitOutput(context.Context) (bool, error)  { return s.wait("output") }
func (s *stuck) WaitControl(context.Context) (bool, error) { return s.wait("control") }

func TestRunReturnsWhenItsListenersHaveEndedAndNotBefore(t *testing.T) {
	for _, last := range []string{"output", "control"} {
		t.Run(last, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bundle{fixture.Virtual(t), t}
				store := &stuck{b.Store, make(chan struct{}), map[string]chan struct{}{"output": make(chan struct{}), "control": make(chan struct{})}}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- b.poller(store, poller.Config{}).Run(ctx) }()
				<-store.waiting
				<-store.waiting
				cancel()
				for list, release := range store.release {
					if list != last {
						close(release)
					}
				}
				synctest.Wait()
				failIf(t, len(ended) > 0, "Run has returned while it waited for %s: the caller closes Redis next", last)
				close(store.release[last])
				err := <-ended
				failIf(t, err != nil, "%v", err)
			})
		})
	}
}
