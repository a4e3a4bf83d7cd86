package dispatcher_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

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
				if least, most := int(idleFor/(tick+10*time.Millisecond)), int(idleFor/test.pace)+10; rounds < least || rounds > most {
					t.Errorf("want %d to %d rounds, got %d", least, most, rounds)
				}
				// A round reads once; once a second the circuit of the queue is measured, and a wake call waited for.
				seconds := int(idleFor/time.Second) + 10
				counts := calls.Counts()
				if retired := counts["zrem"]; retired > 1 || retired == 0 && name != "a Redis that fails" {
					t.Errorf("want one farewell to the other dispatchers, got %v", counts)
				}
				if looks := counts["lrange"]; looks > 2*4*seconds || looks > 0 && name != "a full input list" {
					t.Errorf("want four looks a second at what waits in line, got %v", counts)
				}
				if trims := counts["xinfo"]; trims > int(idleFor/time.Minute)+2 {
					t.Errorf("want one look a minute at who reads the outbox, got %v", counts)
				}
				delete(counts, "zrem")
				delete(counts, "lrange")
				delete(counts, "xinfo")
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
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
