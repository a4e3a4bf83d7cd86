package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/ui/health"
)

// zscore is a member of a sorted set by time.
func zscore(uid string, at time.Time) redis.Z {
	return redis.Z{Score: float64(at.UnixMilli()), Member: uid}
}

// start runs a dispatcher on the clock of Redis and returns what ends it.
func (b *bundle) start(config dispatcher.Config) (stop func()) {
	b.t.Helper()
	return check.Background(b.t, b.dispatcher(b.Store, config).Run)
}

// awaitEntry blocks as a worker does until an attempt arrives.
func (b *bundle) awaitEntry() string {
	b.t.Helper()
	reply, err := b.Redis.BLPop(context.Background(), 0, b.Store.Keys.Input).Result()
	stopIf(b.t, err != nil, "wait for an attempt: %v", err)
	return reply[1]
}

func TestADispatcherSleepsUntilTheDeadlineAndNoLonger(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := &bundle{fixture.Live(t, server), t}
		b.put("tbl_1")
		b.Redis.HSet(context.Background(), b.Store.Keys.Policies, b.Model("tbl_1")["policy"], `{"timeout":"300ms","retries":[0]}`)
		stop := b.start(dispatcher.Config{Tick: time.Minute})
		defer stop()
		b.awaitEntry()
		b.awaitEntry() // the immediate retry, after a timeout that only the deadline can have caused
	})
}

func TestADispatcherOutlivesErrorsOfRedis(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	lines := make(check.Lines, 1)
	log := zerolog.New(lines).Level(zerolog.ErrorLevel)
	stop := b.start(dispatcher.Config{Tick: 20 * time.Millisecond, Backoff: time.Millisecond, Log: &log})
	defer stop()
	for i, answer := range []string{"LOADING Redis is loading the dataset in memory", "READONLY You can't write", "ERR broken"} {
		b.Server.Mini.SetError(answer)
		<-lines // the dispatcher has met it
		b.Server.Mini.SetError("")
		b.put(fmt.Sprint("tbl_", i))
		b.awaitEntry()
	}
}

func TestADispatcherCanBeStoppedAtAnyMoment(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	var running sync.WaitGroup
	for range 10 {
		running.Go(func() {
			for range 3 {
				b.start(dispatcher.Config{})()
			}
		})
	}
	running.Wait()
}

// away is a store that Redis fails so many times, and then no more. Each failure is seen by met.
type away struct {
	*store.Store
	left int // run goroutine only
	met  func()
	back chan struct{}
}

// The test does not measure Retire: its duration depends on the machine.
func (s *away) Retire(context.Context, string) error { return nil }

func (s *away) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	if s.left--; s.left >= 0 {
		s.met()
		return store.Due{}, errors.New("dial tcp 127.0.0.1:6379: connect: connection refused")
	}
	if s.left == -2 {
		close(s.back)
	}
	return s.Store.ReadDue(ctx, asked)
}

func TestAnOutageIsOneFaultInTheLogAndNoProgressAndNoEnd(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	checks := health.NewChecks(time.Hour, clock)
	progress := checks.Loop("dispatcher", time.Second, false)
	var text bytes.Buffer
	log := zerolog.New(&text)
	store := &away{Store: b.Store, left: 300, met: func() { now = now.Add(time.Second) }, back: make(chan struct{})}
	d := b.dispatcher(store, dispatcher.Config{Tick: 10 * time.Millisecond, Backoff: time.Millisecond, Log: &log, Clock: clock, Observe: progress.Begin})
	stop := check.Background(t, d.Run)
	check.Await(t, store.back, "the end of the outage")
	stop()
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	failIf(t, len(lines) != 10 || !strings.Contains(lines[9], `"failures":300,"lasted_ms":299000,"message":"dispatcher: round works again"`),
		"want 9 lines about 300 failures and one about their end, got\n%s", text.String())
	state := progress.State(time.Hour)
	failIf(t, !state.Ready || state.Failures != 0, "want a healthy loop after the outage, got %+v", state)
}

func TestAFaultThatManyModelsShareIsToldInFewLines(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		var uids []string
		for i := range 100 {
			uids = append(uids, "m"+strings.Repeat("x", i))
		}
		b.put(uids...)
		b.Redis.Del(context.Background(), b.Store.Keys.Policies)
		var text bytes.Buffer
		log := zerolog.New(&text).Level(zerolog.WarnLevel)
		round := b.round(b.dispatcher(b.Store, dispatcher.Config{Log: &log}))
		failIf(t, round.Started != 100, "want all started, got %+v", round)
		if lines := strings.Count(text.String(), "model with a fault"); lines != 7 { // 1, 2, 4 ... 64
			t.Errorf("want 7 lines about 100 models, got %d:\n%s", lines, text.String())
		}
	})
}

// idleFor is how long daemons are watched that have nothing to do, on a clock that costs no time.
const idleFor = time.Minute

func TestADispatcherWithNothingToDoDoesARoundATickAndAsksRedisLittle(t *testing.T) {
	const tick, full = time.Second, 20 * time.Millisecond
	for name, test := range map[string]struct {
		prepare func(b *bundle)
		pace    time.Duration // between two rounds
	}{
		"an empty queue": {func(*bundle) {}, tick},
		"a model that is due tomorrow": {func(b *bundle) {
			b.put("tbl_1")
			b.Redis.HSet(b.t.Context(), b.Store.Keys.Model("tbl_1"), "refresh_at", time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339))
			b.Redis.ZAdd(b.t.Context(), b.Store.Keys.Due, zscore("tbl_1", time.Now().Add(24*time.Hour)))
		}, tick},
		"a full input list": {func(b *bundle) {
			b.put("tbl_1")
			b.Redis.RPush(b.t.Context(), b.Store.Keys.Input, "an entry")
		}, full},
		"a Redis that fails": {func(b *bundle) { b.Server.Mini.SetError("LOADING Redis is loading the dataset in memory") }, tick / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bundle{fixture.Virtual(t), t}
				test.prepare(b)
				calls, rounds := b.Count(), 0
				stop := b.start(dispatcher.Config{MaxQueued: 1, Tick: tick, FullTick: full, Observe: func() func(error) {
					rounds++
					return func(error) {}
				}})
				time.Sleep(idleFor)
				stop()
				b.Server.Mini.SetError("")
				// The pauses after the first errors are shorter.
				least, most := int(idleFor/(tick+10*time.Millisecond)), int(idleFor/test.pace)+10
				failIf(t, rounds < least || rounds > most, "want %d to %d rounds, got %d", least, most, rounds)
				// A round reads once; once a second the circuit of the queue is measured, and a wake call waited for.
				seconds := int(idleFor/time.Second) + 10
				counts := calls.Counts()
				retired := counts["zrem"]
				failIf(t, retired > 1 || counts["hdel"] != retired || retired == 0 && name != "a Redis that fails", "want one farewell to the other dispatchers, got %v", counts)
				looks := counts["lrange"] - counts["hsetnx"] // a sample reads the head once
				failIf(t, looks > 2*4*seconds || looks > 0 && name != "a full input list", "want four looks a second at what waits in line, got %v", counts)
				trims := counts["xinfo"]
				failIf(t, trims > int(idleFor/time.Minute)+2, "want one look a minute at who reads the outbox, got %v", counts)
				delete(counts, "zrem")
				delete(counts, "hdel")
				delete(counts, "lrange")
				delete(counts, "xinfo")
				dead := counts["zrangebyscore"]
				failIf(t, dead > 2*seconds, "want one look a second for dead workers, got %v", counts)
				delete(counts, "zrangebyscore")
				hours, once := counts["hsetnx"], 0 // the minute may have two hours
				for _, name := range []string{"hsetnx", "hgetall", "multi", "exec", "time", "zcard", "zcount", "zrange", "llen", "xlen", "xrange", "hkeys", "hmget", "watch", "unwatch", "hset", "del", "zadd"} {
					once += counts[name]
					delete(counts, name)
				}
				if name == "a Redis that fails" { // the zone data is what each round begins with
					once -= rounds
				}
				failIf(t, hours > 2 || once > 40*hours+30, "want an hour noted once, with at most 40 calls, and the zone data once a minute, with at most ten, got %d for %d", once, hours)
				if counts["evalsha"]+counts["eval"] > rounds+seconds+2 || counts["blpop"] > seconds || len(counts) > 4 { // and hello
					t.Errorf("want at most %d scripts and %d calls that wait, got %v", rounds+seconds+2, seconds, counts)
				}
			})
		})
	}
}

// stuck is a store whose wait for a wake call ends only when it is released, whatever happens to its context.
type stuck struct {
	*store.Store
	waiting, release chan struct{}
}

func (s *stuck) WaitWake(context.Context) (bool, error) {
	close(s.waiting)
	<-s.release
	return false, nil
}

func TestRunReturnsWhenItsListenerHasEndedAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{fixture.Virtual(t), t}
		store := &stuck{b.Store, make(chan struct{}), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.dispatcher(store, dispatcher.Config{}).Run(ctx) }()
		<-store.waiting
		cancel()
		synctest.Wait()
		failIf(t, len(ended) > 0, "Run has returned while a call of its listener was under way: the caller closes Redis next")
		close(store.release)
		err := <-ended
		failIf(t, err != nil, "%v", err)
	})
}

func TestASleepingDispatcherWakesWhenAModelIsPut(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := &bundle{fixture.Live(t, server), t}
		// With a tick of a minute only the wake call can be in time.
		stop := b.start(dispatcher.Config{Tick: time.Minute})
		defer stop()
		for _, uid := range []string{"first", "second", "third"} {
			b.put(uid)
			b.awaitEntry()
		}
	})
}
