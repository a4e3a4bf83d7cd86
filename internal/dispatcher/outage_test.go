package dispatcher_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// onGrace runs a test on a queue whose dispatchers grant a grace after an outage, as they do where nobody turns the clock. Its attempt "tbl_1", taken,
// has a timeout of a minute.
func onGrace(t *testing.T, test func(t *testing.T, b *bundle, d *dispatcher.Dispatcher)) {
	t.Helper()
	both(t, func(t *testing.T, b *bundle) {
		clients := redis.Clients{Read: b.Redis, Write: b.Redis, Block: b.Redis}
		part := check.Got(store.New(&clients, store.Config{Clock: b.Clock.Now, Grace: 15 * time.Second}))(t)
		d := b.dispatcher(part, dispatcher.Config{})
		b.put("tbl_1")
		b.round(d)
		b.Take()
		test(t, b, d)
	})
}

// live lets a dispatcher do its rounds for so many seconds, and returns after how many of them the attempt has ended; -1: it has not.
func (b *bundle) live(d *dispatcher.Dispatcher, seconds int) int {
	b.t.Helper()
	for second := range seconds {
		b.Clock.Turn(time.Second)
		round := b.round(d)
		if round.TimedOut+round.Taken+round.Withdrawn > 0 {
			return second + 1
		}
		failIf(b.t, round.Sleep <= 0, "the dispatcher spins: %+v", round)
	}
	return -1
}

func TestAfterAnOutageNothingExpiresBeforeWorkersCouldHaveSpokenAgain(t *testing.T) {
	onGrace(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		failIf(t, b.live(d, 50) != -1, "it ended early")
		b.Clock.Turn(5 * time.Minute)
		failIf(t, b.round(d).TimedOut != 0, "it ended at once after the outage")
		if got := b.live(d, 30); got != 15 {
			t.Errorf("expected its end 15 s after the outage, found %d s", got)
		}
	})
}

func TestAnAttemptThatHadExpiredLongBeforeAnOutageHasNoGrace(t *testing.T) {
	onGrace(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		for range 20 { // dispatchers that crash at once, and begin again after five seconds
			b.Clock.Turn(5 * time.Second)
			if b.round(d).TimedOut > 0 {
				passed := b.now().Sub(fixture.Start) - time.Minute
				failIf(t, passed > 25*time.Second, "expected its end within 25 s, found it after %s", passed)
				return
			}
		}
		t.Error("expected its end, found it running: a crash loop gives grace for ever")
	})
}

func TestARestartBesideALivingDispatcherAndAQuickOneGiveNoGrace(t *testing.T) {
	onGrace(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		failIf(t, b.live(d, 58) != -1, "it ended early")
		other := b.dispatcher(b.Store, dispatcher.Config{Owner: "other"})
		b.round(other)
		b.Clock.Turn(1900 * time.Millisecond)
		b.round(d)
		if got := b.live(d, 5); got != 1 {
			t.Errorf("expected its end at the deadline, found %d s after it", got)
		}
	})
}
