package poller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// expired is how many attempts a dispatcher ends now by their deadline.
func (b *bundle) expired() int {
	b.t.Helper()
	d := check.Got(dispatcher.New(dispatcher.RoomsOf(b.Store), dispatcher.Config{Owner: "d"}))(b.t)
	round := check.Got(d.RunOnce(context.Background()))(b.t)
	failIf(b.t, round.Sleep == 0 && round.TimedOut == 0, "the dispatcher spins: %+v", round)
	return round.TimedOut + round.Withdrawn + round.Taken
}

// take has workers take all attempts that wait.
func (b *bundle) take() {
	b.t.Helper()
	for taken := true; taken; {
		_, taken = b.Take()
	}
}

func TestNothingExpiresWhileAMessageOfBeforeItsDeadlineStandsInOutput(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("done", "dead")
		b.take()
		b.round()
		b.Clock.Turn(50 * time.Second)
		b.Say(b.result("success", "done"))
		b.Clock.Turn(time.Hour) // no poller lives
		if got := b.expired(); got != 0 {
			t.Fatalf("expected both attempts to wait for a poller, found %d ended", got)
		}
		p := b.poller(b.Store, poller.Config{})
		b.roundOf(p)
		b.ExpectStats("the success counts", map[string]int{"success": 1, "late": 1, "duplicate": 0})
		b.roundOf(p)
		if got := b.expired(); got != 1 {
			t.Errorf("expected the attempt without a message to end, found %d", got)
		}
	})
}

func TestNothingExpiresWhileADeadPollerHoldsAMessageOfBeforeItsDeadline(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("done", "dead")
		b.take()
		b.round()
		b.Say(b.result("success", "done"))
		dies := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{Owner: "dies"})
		_, err := dies.RunOnce(context.Background())
		failIf(t, !errors.Is(err, errRedis), "expected it to die with a claimed message, found %v", err)
		b.Clock.Turn(2 * time.Minute)
		heir := b.poller(b.Store, poller.Config{Owner: "heir", Lease: time.Minute})
		if got := b.expired(); got != 0 {
			t.Fatalf("expected nothing to end before the message is applied, found %d", got)
		}
		b.roundOf(heir) // adopts it
		if got := b.expired(); got != 0 {
			t.Fatalf("expected nothing to end between the adoption and the round behind it, found %d", got)
		}
		for range 3 {
			b.roundOf(heir)
		}
		b.ExpectStats("the success counts", map[string]int{"success": 1})
		if got := b.expired(); got != 1 {
			t.Errorf("expected the attempt without a message to end, found %d", got)
		}
	})
}

// The output list of a busy queue is never empty. What pollers have applied is known all the same.
func TestAnAttemptExpiresThoughTheOutputListIsNeverEmpty(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("dead")
		b.take()
		p := b.poller(b.Store, poller.Config{Batch: 10})
		for i := range 20 {
			b.Say(fixture.Result("success", "nobody", fmt.Sprint("x", i)))
		}
		for second := range 100 {
			b.Clock.Turn(time.Second)
			for i := range 10 {
				b.Say(fixture.Result("success", "nobody", fmt.Sprint(second, "-", i)))
			}
			b.roundOf(p)
			failIf(t, len(b.List(b.Store.Keys.Output)) == 0, "the output list is empty")
			if b.expired() == 1 {
				failIf(t, second < 59 || second > 65, "expected the end soon after the deadline, found it after %d s", second)
				return
			}
		}
		t.Error("expected the attempt to expire, found it running")
	})
}

func TestAMessageThatWaitsForAKeyOfAnotherTypeKeepsNoAttemptFromExpiring(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("dead")
		b.take()
		b.round()
		must(t, b.Redis.Set(t.Context(), b.Store.Keys.Rejected, "no list", 0).Err())
		b.Say("garbage")
		p := b.poller(b.Store, poller.Config{})
		failIf(t, b.roundOf(p).Waiting != 1, "the garbage does not wait")
		b.Clock.Turn(time.Minute)
		failIf(t, b.roundOf(p).Waiting != 1, "the garbage does not wait")
		if got := b.expired(); got != 1 {
			t.Errorf("expected the attempt without a message to end, found %d", got)
		}
	})
}

func TestTheFirstSuccessOfAnAttemptThatHasTimedOutIsLateAndNoDuplicate(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.take()
		b.round()
		attempt := b.Attempt("a")
		b.Clock.Turn(time.Minute)
		failIf(t, b.expired() != 1, "it does not time out")
		before := b.Model("a")
		b.Clock.Turn(2 * time.Second)
		for _, kind := range []string{"user_friendly_status", "success", "success"} {
			b.hear(fixture.Result(kind, "a", attempt))
		}
		b.ExpectStats("one success is late", map[string]int{"late": 1, "late_within_3s": 1, "duplicate": 2, "success": 0})
		history := b.List(b.Store.Keys.History("a"))
		failIf(t, len(history) != 1 || !strings.Contains(history[0], `"late":2000`), "expected the record to say so, found %q", history)
		after := b.Model("a")
		delete(before, "rev")
		delete(after, "rev")
		equal(t, before, after)
		said := model.LateAnswers(map[string]int64{"late_within_3s": 10, "late_within_1m": 2})
		failIf(t, said != "12 answers came up to a minute after their deadline, and did not count", "%s", said)
	})
}

func TestWithoutAHistoryAnAnswerThatCameTooLateIsADuplicate(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		clients := redis.Clients{Read: b.Redis, Write: b.Redis, Block: b.Redis}
		b.Store = check.Got(store.New(&clients, store.Config{Clock: b.Clock.Now, HistoryCap: store.None}))(t)
		b.running("a")
		b.take()
		b.round()
		attempt := b.Attempt("a")
		b.Clock.Turn(time.Minute)
		failIf(t, b.expired() != 1, "it does not time out")
		b.hear(fixture.Result("success", "a", attempt))
		b.ExpectStats("it is a duplicate", map[string]int{"late": 0, "duplicate": 1})
	})
}

// A batch claimed behind another that is in hand is younger. When both are left, after a failed round, the older one counts.
func TestNothingExpiresBeforeTheOldestOfTheBatchesIsAppliedThatAPollerIsLeftWith(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("done")
		b.take()
		b.hear("garbage") // up to now all is claimed
		claims := func(inHand, want int) {
			t.Helper()
			claim := check.Got(b.Store.Claim(t.Context(), "p1", store.Holding{InHand: inHand}, 10, time.Hour))(t)
			failIf(t, len(claim.Messages) != want, "expected %d messages, found %v", want, claim.Messages)
		}
		b.Clock.Turn(50 * time.Second)
		b.Say(b.result("success", "done"))
		b.Clock.Turn(20 * time.Second) // its deadline has passed
		claims(0, 1)
		b.Clock.Turn(time.Second)
		b.Say("garbage")
		claims(1, 1)
		b.Clock.Turn(time.Second)
		claims(0, 2)
		if got := b.expired(); got != 0 {
			t.Fatalf("expected nothing to end before the older batch is applied, found %d", got)
		}
		b.round()
		b.ExpectStats("the success counts", map[string]int{"success": 1, "timeout": 0})
	})
}

// A note may be missing, as when its key was of another type.
func TestNothingExpiresBeforeMessagesAreAppliedThatAPollerFindsWithoutANote(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("done")
		b.take()
		b.round()
		b.Say(b.result("success", "done"))
		for range 2 { // the second time it claims nothing new
			must(t, b.Redis.HDel(t.Context(), b.Store.Keys.Heard, "poller p1").Err())
			_, err := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{}).RunOnce(t.Context())
			failIf(t, !errors.Is(err, errRedis), "expected it to fail with a claimed message, found %v", err)
		}
		b.Clock.Turn(2 * time.Minute)
		if got := b.expired(); got != 0 {
			t.Fatalf("expected nothing to end before the message is applied, found %d", got)
		}
		b.round()
		b.ExpectStats("the success counts", map[string]int{"success": 1, "timeout": 0})
	})
}

// A poller that has applied what it had claimed rests. Nobody waits for its next round.
func TestADeadlineIsJudgedAtOnceWhenTheMessagesOfBeforeAreApplied(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("done", "dead")
		b.take()
		b.Clock.Turn(59 * time.Second)
		b.hear(b.result("success", "done"))
		b.Clock.Turn(time.Second)
		if got := b.expired(); got != 1 {
			t.Errorf("expected the attempt to end whose deadline passes behind a result, found %d", got)
		}
		b.running("later")
		b.take()
		b.Clock.Turn(time.Minute)
		failIf(t, b.expired() == 0, "expected the attempt to end though no message has come meanwhile")
	})
}

func TestNothingExpiresBeforeTheBatchIsAppliedThatWasClaimedBehindAnother(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.take()
		b.hear("garbage")
		b.Clock.Turn(50 * time.Second)
		b.Say(b.result("success", "a"))
		p := b.poller(&stored{Store: b.Store, meanwhile: func() {
			b.Say(b.result("success", "b"))
			check.Got(b.Store.Claim(t.Context(), "p1", store.Holding{InHand: 1}, 10, time.Hour))(t)
		}}, poller.Config{})
		b.roundOf(p)
		b.Clock.Turn(time.Minute)
		failIf(t, b.expired() != 0, "an attempt has expired whose success was claimed")
		b.roundOf(p)
		b.ExpectStats("both successes count", map[string]int{"success": 2, "timeout": 0})
	})
}
