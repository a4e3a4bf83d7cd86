package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
)

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
