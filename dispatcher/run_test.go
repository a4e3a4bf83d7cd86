package dispatcher_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// zscore is a member of a sorted set by time.
func zscore(uid string, at time.Time) redis.Z {
	return redis.Z{Score: float64(at.UnixMilli()), Member: uid}
}

// start runs a dispatcher on the clock of Redis and returns what ends it.
func (b *bundle) start(config dispatcher.Config) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := b.dispatcher(b.Store, config)
	var running sync.WaitGroup
	running.Go(func() {
		if err := d.Run(ctx); err != nil {
			b.t.Error(err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// awaitEntry blocks as a worker does until an attempt arrives.
func (b *bundle) awaitEntry() string {
	b.t.Helper()
	reply, err := b.Redis.BLPop(context.Background(), 0, b.Store.Keys.Input).Result()
	if err != nil {
		b.t.Fatalf("wait for an attempt: %v", err)
	}
	return reply[1]
}

func TestASleepingDispatcherWakesWhenAModelIsPut(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
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

func TestADispatcherSleepsUntilTheDeadlineAndNoLonger(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := &bundle{fixture.Live(t, server), t}
		b.put("tbl_1")
		b.Redis.HSet(context.Background(), b.Store.Keys.Policies, b.Model("tbl_1")["policy"], `{"timeout":"300ms","retries":[0]}`)
		stop := b.start(dispatcher.Config{Tick: time.Minute})
		defer stop()
		b.awaitEntry()
		b.awaitEntry() // the retry at once, after a timeout that nothing but the deadline can have told
	})
}

func TestADispatcherOutlivesErrorsOfRedis(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	lines := make(testkit.Lines, 1)
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
