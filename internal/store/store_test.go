package store

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestEveryCallSaysWhatItWantedWhenRedisIsGone(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t), func(c *Config) { c.Clock = nil })
	transition := &Transition{uid: "m1"}
	b.server.Mini.SetError("LOADING Redis is loading the dataset in memory")
	ctx := t.Context()
	calls := map[string]func() error{
		"read the clock of redis: ": func() error { _, err := b.Now(ctx); return err },
		"read due models: ":         func() error { _, err := b.ReadDue(ctx, DueRequest{Limit: 1}); return err },
		`forget "m1": `:             func() error { return b.Forget(ctx, "m1", "") },
		"read models: ":             func() error { _, err := b.Load(ctx, list{"m1"}); return err },
		"read policies: ":           func() error { _, err := b.Policies(ctx, list{"p"}); return err },
		"read queued attempts: ":    func() error { _, err := b.Queued(ctx); return err },
		"claim messages: ":          func() error { _, err := b.Claim(ctx, "p1", 1, testLease); return err },
		"adopt messages: ":          func() error { _, err := b.Adopt(ctx, "p1", "p2", time.Second, 1); return err },
		"read pollers: ":            func() error { _, err := b.ExpiredPollers(ctx, b.now, time.Second); return err },
		"resign poller: ":           func() error { return b.Resign(ctx, "p1") },
		"commit a batch: ": func() error {
			_, err := b.Commit(ctx, Batch{Now: b.now, Owner: "p1", MaxQueued: 1, Items: []Item{{Transition: transition}}})
			return err
		},
		"wait for messages: ":    func() error { _, err := b.WaitControl(ctx); return err },
		"wait for a wake call: ": func() error { _, err := b.WaitWake(ctx); return err },
	}
	for prefix, call := range calls {
		err := call()
		if err == nil || !strings.HasPrefix(err.Error(), prefix) || !redis.HasErrorPrefix(err, "LOADING") {
			t.Errorf("error %v, want %q and the words of Redis", err, prefix)
		}
	}
}

func TestAWaitingCallReturnsAtOnceAndMovesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-output": list{"a", "b"}, "-control": list{"c", "d"}, "-input": list{"e", "f"}})
		for name, wait := range map[string]func(context.Context) (bool, error){
			"output": b.WaitOutput, "control": b.WaitControl, "input": b.Pool().WaitInput,
		} {
			b.unchanged(func() {
				if found, err := wait(t.Context()); !found || err != nil {
					t.Errorf("%s: %v, %v; want true", name, found, err)
				}
			})
		}
	})
}

func TestAWakeCallIsTakenByTheOneWhoHeardIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":wake": list{"1"}})
		if found, err := b.WaitWake(t.Context()); !found || err != nil {
			t.Errorf("WaitWake = %v, %v; want true", found, err)
		}
		b.expect(keys{})
	})
}

func TestWaitingForNothingEndsByItself(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		b := newBench(t, s)
		var waiting sync.WaitGroup
		for _, wait := range []func(context.Context) (bool, error){b.WaitOutput, b.WaitWake} {
			waiting.Go(func() {
				if found, err := wait(context.Background()); found || err != nil {
					t.Errorf("waiting for nothing = %v, %v; want false", found, err)
				}
			})
		}
		waiting.Wait()
	})
}

func TestTheClockIsThatOfRedisUnlessItIsReplaced(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		now, err := b.Now(t.Context())
		expectEqual(t, "replaced clock", b.now, now)
		must(t, err)
		b.config.Clock = nil
		before := b.redis.Time(t.Context()).Val().Truncate(time.Millisecond)
		if now, err = b.Now(t.Context()); err != nil || now.Before(before) || now.Location() != time.UTC || now.Nanosecond()%1e6 != 0 {
			t.Errorf("now %v, %v; want whole milliseconds of UTC from %v on", now, err, before)
		}
	})
}
