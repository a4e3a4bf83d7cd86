package poller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

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
				calls, rounds := b.Count(), 0
				stop := b.start(poller.Config{Tick: tick, Observe: func() func(error) {
					rounds++
					return func(error) {}
				}})
				time.Sleep(idleFor)
				stop()
				b.Server.Mini.SetError("")
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
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
