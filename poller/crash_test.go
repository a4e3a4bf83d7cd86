package poller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/poller"
)

// stored wraps a store with something that happens between reading the models and applying the decisions.
type stored struct {
	*store.Store
	meanwhile func()
	lost      bool // the reply of the next Apply is lost
	crash     bool // the next Apply does not reach Redis
}

var errRedis = errors.New("redis is gone")

func (s *stored) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	if s.meanwhile != nil {
		meanwhile := s.meanwhile
		s.meanwhile = nil
		meanwhile()
	}
	if s.crash {
		s.crash = false
		return nil, errRedis
	}
	codes, err := s.Store.Commit(ctx, batch)
	if s.lost {
		s.lost = false
		return nil, errRedis
	}
	return codes, err
}

func TestACrashBeforeApplyingReplaysTheBatch(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.Say(b.result("success", "a"), "garbage", b.result("failure", "b"))
		p := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{})
		if _, err := p.RunOnce(context.Background()); !errors.Is(err, errRedis) {
			t.Fatalf("want the crash told, got %v", err)
		}
		if left := len(b.List(b.Store.Keys.Claimed("p1"))); left != 3 {
			t.Fatalf("want 3 messages still claimed, got %d", left)
		}
		b.roundOf(p)
		stats := b.Stats()
		if stats["success"] != 1 || stats["failure"] != 1 || stats["malformed"] != 1 || stats["duplicate"] != 0 {
			t.Errorf("want each message applied once, got %v", stats)
		}
	})
}

func TestALostReplyAppliesNothingTwice(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.Say(b.result("success", "a"))
		b.Command(`{"type":"run","uid":"b","force":true}`)
		p := b.poller(&stored{Store: b.Store, lost: true}, poller.Config{})
		if _, err := p.RunOnce(context.Background()); !errors.Is(err, errRedis) {
			t.Fatalf("want the lost reply told, got %v", err)
		}
		before := b.Server.Dump(t)
		if round := b.roundOf(p); round.Claimed != 0 {
			t.Errorf("want nothing left to claim, got %+v", round)
		}
		after := b.Server.Dump(t)
		equal(t, before, after)
	})
}

func TestAMessageIsDecidedAgainWhenItsModelChangedMeanwhile(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.Take()
		b.Say(b.result("started", "a"), b.result("success", "a"), b.result("success", "a"), b.result("success", "b"))
		other := b.poller(b.Store, poller.Config{Owner: "p1"}) // holds the lane
		meanwhile := func() {
			b.Command(put("a", `"refresh":"now"`))
			b.roundOf(other)
		}
		round := b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "p2"}))
		equal(t, poller.Round{Claimed: 4, Applied: 3, Settled: 1}, round)
		if hash := b.Model("a"); hash["refresh_why"] != "saved while running: again" || hash["last_success_at"] == "" {
			t.Errorf("want the success on top of the save, got %v", hash)
		}
		if stats := b.Stats(); stats["duplicate"] != 1 || stats["success"] != 2 {
			t.Errorf("want 2 successes and 1 duplicate, got %v", stats)
		}
	})
}

func TestTheClaimedMessagesOfADeadPollerAreAdopted(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.Say(b.result("success", "a"), b.result("success", "b"), "garbage")
		dead := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{Owner: "dead"})
		if _, err := dead.RunOnce(context.Background()); err == nil {
			t.Fatal("want a crash")
		}
		adopter := b.poller(b.Store, poller.Config{Owner: "adopter", Lease: 10 * time.Second})
		b.Clock.Turn(9999 * time.Millisecond)
		b.roundOf(adopter)
		if got := len(b.List(b.Store.Keys.Claimed("dead"))); got != 3 {
			t.Fatalf("want nothing adopted within the lease, got %d left", got)
		}
		b.Clock.Turn(3 * time.Second)
		b.roundOf(adopter) // adopts
		b.roundOf(adopter) // applies
		if stats := b.Stats(); stats["success"] != 2 || stats["malformed"] != 1 {
			t.Errorf("want every message applied once, got %v", stats)
		}
		if owners := b.Scores(b.Store.Keys.Pollers); owners["dead"] != 0 || owners["adopter"] == 0 {
			t.Errorf("want only the adopter known, got %v", owners)
		}
	})
}

func TestAPollerThatWasOnlyPausedAppliesNothingThatAnotherAdopted(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.Say(b.result("failure", "a"), "garbage")
		adopter := b.poller(b.Store, poller.Config{Owner: "adopter"})
		meanwhile := func() {
			b.Clock.Turn(time.Minute / 2)
			b.roundOf(adopter)
			b.roundOf(adopter)
			b.dispatch() // the retry: the paused poller's decision would now hit a new attempt
		}
		round := b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "paused"}))
		failIf(t, round.Applied+round.Settled+round.Left != 0, "want nothing done by the paused poller, got %+v", round)
		if stats := b.Stats(); stats["failure"] != 1 || stats["malformed"] != 1 || stats["start"] != 2 {
			t.Errorf("want one failure, one rejected message and two starts, got %v", stats)
		}
	})
}

func TestACommandThatAnotherPollerAdoptedIsNotAppliedTwice(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.Command(`{"type":"run","uid":"a","force":true}`)
		adopter := b.poller(b.Store, poller.Config{Owner: "adopter"})
		meanwhile := func() {
			b.Clock.Turn(time.Minute / 2)
			b.roundOf(adopter)
			b.roundOf(adopter)
			b.dispatch()
		}
		b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{}))
		if stats := b.Stats(); stats["run"] != 1 || stats["start"] != 2 || b.Attempt("a") == "" {
			t.Errorf("want one run and its attempt left alone, got %v", stats)
		}
	})
}
