package poller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

// saved is a put of a one-shot whose payload is numbered.
func saved(uid string, n int) string {
	return fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":%d}}`, uid, n)
}

func (b *bundle) payload(uid string) string {
	return b.Redis.Get(context.Background(), b.Store.Keys.Payload(uid)).Val()
}

// Whoever holds the lane next begins with what the dead one left.
func TestTheCommandsOfADeadPollerComeBeforeNewerOnes(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(saved("a", 1))
		dead := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{Owner: "dead"})
		_, err := dead.RunOnce(t.Context())
		stopIf(t, !errors.Is(err, errRedis), "want a crash, got %v", err)
		b.Command(saved("a", 2))
		other := b.poller(b.Store, poller.Config{Owner: "other", Lease: 10 * time.Second})
		b.Clock.Turn(9999 * time.Millisecond)
		round := b.roundOf(other)
		failIf(t, round.Leads, "want the lane left to its holder within the lease")
		b.Clock.Turn(time.Millisecond)
		round = b.roundOf(other)
		failIf(t, round.Claimed != 1 || !round.Leads, "want the older command finished first, got %+v", round)
		got := b.payload("a")
		failIf(t, got != `{"n":1}`, "want the older save, got %s", got)
		b.roundOf(other)
		got = b.payload("a")
		failIf(t, got != `{"n":2}`, "want the later save, got %s", got)
	})
}

// A poller that was only paused finds that its commands are another's now, even one that was pushed again, word for word.
func TestAPollerThatHasLostTheLaneAppliesNoCommand(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(saved("a", 1))
		other := b.poller(b.Store, poller.Config{Owner: "other"})
		meanwhile := func() {
			b.Clock.Turn(time.Minute / 2)
			b.roundOf(other)
			b.Command(saved("a", 2))
			b.Command(saved("a", 1))
			_, err := b.Store.Claim(t.Context(), "other", 100, time.Minute)
			failIf(t, err != nil, "%v", err)
		}
		paused := b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "paused"})
		round := b.roundOf(paused)
		failIf(t, round.Applied != 0 || round.Left != 0, "want nothing applied by the paused one, got %+v", round)
		lane := b.List(b.Store.Keys.ClaimedCommands)
		failIf(t, len(lane) != 2, "want the two later commands left alone, got %q", lane)
		b.roundOf(other)
		if got := b.payload("a"); got != `{"n":1}` || b.Stats()["update"] != 2 {
			t.Errorf("want each command applied once, got %s and %v", got, b.Stats())
		}
	})
}

// One connection saves every model five times and removes every third one, while three pollers share the work.
func TestAStormOfCommandsLeavesEachModelAsItWasLastSaid(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		const models, saves, pollers = 60, 5, 3
		b := &bundle{fixture.Live(t, server), t}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for i := range pollers {
			p := b.poller(b.Store, poller.Config{Owner: fmt.Sprint("p", i), Batch: 4, Tick: 10 * time.Millisecond})
			running.Go(func() { _ = p.Run(ctx) })
		}
		for n := range saves {
			for i := range models {
				b.Command(saved(fmt.Sprint("m", i), n))
			}
		}
		for i := 0; i < models; i += 3 {
			b.Command(`{"type":"remove","uid":"m` + fmt.Sprint(i) + `"}`)
		}
		testkit.Eventually(t, "all commands are applied", func() bool {
			return len(b.List(b.Store.Keys.Control))+len(b.List(b.Store.Keys.ClaimedCommands)) == 0
		})
		stop()
		running.Wait()
		last := fmt.Sprintf(`{"n":%d}`, saves-1)
		for i := range models {
			uid, want := fmt.Sprint("m", i), last
			if i%3 == 0 {
				want = ""
			}
			got := b.payload(uid)
			failIf(t, got != want, "%s: want %q, got %q", uid, want, got)
		}
		rejected := b.List(b.Store.Keys.Rejected)
		failIf(t, len(rejected) > 0, "want nothing rejected, got %s", strings.Join(rejected, "\n"))
	})
}

// A second poller that finds newer commands leaves them to the one that is busy with older ones.
func TestCommandsAreAppliedInTheOrderInWhichTheyWerePushed(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(saved("a", 1))
		b.Command(`{"type":"put","uid":"b"}`)
		first := b.poller(b.Store, poller.Config{Owner: "first"})
		second := b.poller(b.Store, poller.Config{Owner: "second"})
		meanwhile := func() {
			b.Command(saved("a", 2))
			b.Command(`{"type":"remove","uid":"b"}`)
			round := b.roundOf(second)
			failIf(t, round.Claimed != 0 || round.Leads, "want nothing claimed by the second, got %+v", round)
		}
		b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "first"}))
		b.roundOf(second)
		b.roundOf(first)
		got := b.payload("a")
		failIf(t, got != `{"n":2}`, "want the later save, got %s", got)
		failIf(t, len(b.Model("b")) > 0, "want the model removed")
	})
}
