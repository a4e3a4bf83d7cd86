package poller_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
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
		_, err := p.RunOnce(context.Background())
		stopIf(t, !errors.Is(err, errRedis), "want the crash told, got %v", err)
		left := len(b.List(b.Store.Keys.Claimed("p1")))
		stopIf(t, left != 3, "want 3 messages still claimed, got %d", left)
		b.roundOf(p)
		b.ExpectStats("want each message applied once", map[string]int{"success": 1, "failure": 1, "malformed": 1, "duplicate": 0})
	})
}

func TestALostReplyAppliesNothingTwice(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.Say(b.result("success", "a"))
		b.Command(`{"type":"run","uid":"b","force":true}`)
		p := b.poller(&stored{Store: b.Store, lost: true}, poller.Config{})
		_, err := p.RunOnce(context.Background())
		stopIf(t, !errors.Is(err, errRedis), "want the lost reply told, got %v", err)
		before := b.Server.Dump(t)
		round := b.roundOf(p)
		failIf(t, round.Claimed != 0, "want nothing left to claim, got %+v", round)
		after := b.Server.Dump(t)
		delete(before, b.Store.Keys.Heard) // that nothing is claimed any more is noted by the next claim
		delete(after, b.Store.Keys.Heard)
		equal(t, before, after)
	})
}

func TestAMessageIsDecidedAgainWhenItsModelChangedMeanwhile(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.Take()
		b.Say(b.result("started", "a"), b.result("success", "a"), b.result("success", "a"), b.result("success", "b"))
		other := b.poller(b.Store, poller.Config{Owner: "p1"}) // leads
		meanwhile := func() {
			b.Command(put("a", `"refresh":"now"`))
			b.roundOf(other)
		}
		round := b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "p2"}))
		equal(t, poller.Round{Claimed: 4, Applied: 3, Settled: 1}, round)
		hash := b.Model("a")
		failIf(t, hash["refresh_why"] != "saved while running: again" || hash["last_success_at"] == "", "want the success on top of the save, got %v", hash)
		b.ExpectStats("want 2 successes and 1 duplicate", map[string]int{"duplicate": 1, "success": 2})
	})
}

func TestTheClaimedMessagesOfADeadPollerAreAdopted(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.Say(b.result("success", "a"), b.result("success", "b"), "garbage")
		dead := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{Owner: "dead"})
		_, err := dead.RunOnce(context.Background())
		stopIf(t, err == nil, "want a crash")
		adopter := b.poller(b.Store, poller.Config{Owner: "adopter", Lease: 10 * time.Second})
		b.Clock.Turn(9999 * time.Millisecond)
		b.roundOf(adopter)
		got := len(b.List(b.Store.Keys.Claimed("dead")))
		stopIf(t, got != 3, "want nothing adopted within the lease, got %d left", got)
		b.Clock.Turn(3 * time.Second)
		b.roundOf(adopter) // adopts
		b.roundOf(adopter) // applies
		b.ExpectStats("want every message applied once", map[string]int{"success": 2, "malformed": 1})
		owners := b.Scores(b.Store.Keys.Pollers)
		failIf(t, owners["dead"] != 0 || owners["adopter"] == 0, "want only the adopter known, got %v", owners)
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
		stats := b.Stats()
		failIf(t, stats["run"] != 1 || stats["start"] != 2 || b.Attempt("a") == "", "want one run and its attempt left alone, got %v", stats)
	})
}

// jumps are the jumps of a clock in the life of a poller: it is set by hand, or by NTP after a long time without.
var jumps = map[string][]time.Duration{
	"it runs on":                       {0},
	"a second back":                    {-time.Second},
	"five seconds back":                {-5 * time.Second},
	"a minute back":                    {-time.Minute},
	"an hour back":                     {-time.Hour},
	"a minute forward":                 {time.Minute},
	"an hour forward":                  {time.Hour},
	"an hour forward, and back again":  {time.Hour, -time.Hour},
	"an hour back, and forward again":  {-time.Hour, time.Hour},
	"back again and again":             {-time.Minute, -time.Minute, -time.Minute, -time.Hour},
	"back at every round of the lease": {-5 * time.Second, -time.Second, -5 * time.Second, -time.Second, -time.Minute, -5 * time.Second, -time.Hour},
}

func TestADeadPollerIsAdoptedWithinItsLeaseHoweverTheClockJumps(t *testing.T) {
	const lease, tick = 10 * time.Second, time.Second
	for name, jumps := range jumps {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.running("a")
				b.Say(b.result("success", "a"))
				adopter := b.poller(b.Store, poller.Config{Owner: "adopter", Lease: lease})
				dead := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{Owner: "dead"})
				_, err := dead.RunOnce(t.Context())
				stopIf(t, err == nil, "want a crash")
				b.roundOf(adopter)
				rounds := 0
				// A look comes four times in a lease, and the round after it applies its findings.
				for most := int((lease+lease/4)/tick) + 1; b.Stats()["success"] == 0; rounds++ {
					stopIf(t, rounds > most, "want the message applied within %d rounds, got %v", most, b.Scores(b.Store.Keys.Pollers))
					if rounds < len(jumps) {
						b.Clock.Turn(jumps[rounds])
					}
					b.Clock.Turn(tick)
					b.roundOf(adopter)
				}
				t.Logf("applied in round %d after the jump", rounds)
			})
		})
	}
}

// Each call of a round fails in its turn: the error is reported, and the next rounds do the rest, and nothing twice.
func TestARoundOfWhichACallFailsIsToldAndTheNextRoundsDoTheRest(t *testing.T) {
	rounds := map[string]func(*poller.Poller) (poller.Round, error){
		"one batch":                   func(p *poller.Poller) (poller.Round, error) { return p.RunOnce(t.Context()) },
		"batches that are read ahead": func(p *poller.Poller) (poller.Round, error) { return p.RunPipelined(t.Context(), always, inTurn) },
	}
	for name, round := range rounds {
		t.Run(name, func(t *testing.T) {
			n := 1
			for setup(t, testkit.Miniredis(t)).failOnce(n, round) {
				n++
			}
			failIf(t, n < 5, "want more calls than %d", n)
		})
	}
}

// failOnce does a round whose n-th call fails, and the rounds that do the rest. It reports whether there was such a call.
func (b *bundle) failOnce(n int, round func(*poller.Poller) (poller.Round, error)) (struck bool) {
	b.t.Helper()
	b.running("a", "b", "c", "d")
	b.succeed("b")
	_, err := b.Store.Claim(b.t.Context(), "dead", store.Holding{}, 10, time.Minute)
	must(b.t, err)
	b.Clock.Turn(30 * time.Second)
	b.Say(b.result("success", "a"), "garbage")
	b.succeed("c", "d")
	p, fault := b.poller(b.Store, poller.Config{Batch: 2}), new(testkit.Fault)
	b.Intercept(fault)
	fault.Arm(n)
	_, err = round(p)
	struck = fault.Struck()
	fault.Arm(0)
	failIf(b.t, struck != (err != nil), "call %d: failed: %v, told: %v", n, struck, err)
	for range 4 {
		b.roundOf(p)
	}
	stats := b.Stats()
	failIf(b.t, stats["success"] != 4 || stats["malformed"] != 1 || stats["duplicate"] != 0, "call %d: want each message applied once, got %v", n, stats)
	return struck
}

type cannotResign struct{ *store.Store }

func (cannotResign) Resign(context.Context, string) error { return errRedis }

func TestAPollerThatCannotResignSaysSoAndEndsAllTheSame(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	var text bytes.Buffer // written by Run alone
	log := zerolog.New(&text)
	p := b.poller(cannotResign{b.Store}, poller.Config{Log: &log})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.Run(ctx)
	failIf(t, err != nil, "%v", err)
	failIf(t, !strings.Contains(text.String(), "resigning failed"), "want the error logged, got %q", text.String())
}

func TestAMessageThatIsTooLargeIsRejectedWithItsSizesAndItsBeginning(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.Say(strings.Repeat("x", 1<<20+1), b.result("success", "a"))
		b.Command(`{"type":"run","uid":"a","reason":"` + strings.Repeat("y", 1<<20) + `"}`)
		round := b.round()
		failIf(t, round.Rejected != 2 || round.Applied != 1, "want two rejected and one applied, got %+v", round)
		rejected := strings.Join(b.List(b.Store.Keys.Rejected), "\n")
		if stats := b.Stats(); stats[model.CounterOversized] != 2 || !strings.Contains(rejected, "expected at most 1048576 bytes, found 1048577") {
			t.Errorf("want two oversized, got %v and %.300s", stats, rejected)
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
		b.ExpectStats("want one failure, one rejected message and two starts", map[string]int{"failure": 1, "malformed": 1, "start": 2})
	})
}

// A worker may take the queued attempt between the look at its model and the command that supersedes it.
func TestAForcedRunSupersedesAnAttemptThatIsTakenInTheLastMoment(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		first := b.Attempt("a")
		b.Command(`{"type":"run","uid":"a","force":true}`)
		take := func() {
			_, ok := b.Take()
			failIf(t, !ok, "want an attempt to take")
		}
		round := b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: take}, poller.Config{}))
		failIf(t, round.Applied != 1 || round.Left != 0 || b.Attempt("a") != "" || b.Stats()["run"] != 1,
			"want the run applied at once, got %+v and %v", round, b.Model("a"))
		b.hear(fixture.Result("success", "a", first))
		b.ExpectStats("want the superseded attempt to count for nothing", map[string]int{"success": 0})
	})
}
