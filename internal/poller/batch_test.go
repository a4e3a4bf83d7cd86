package poller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// told notes the requests of a poller to the queue.
type told struct {
	*store.Store
	calls     []string
	commits   int
	fails     bool             // the first commit
	conflicts func(n int) bool // whether the n-th commit does, so that nothing of it is applied
	meanwhile func()           // happens behind the first claim
}

func (s *told) Claim(ctx context.Context, owner string, holds store.Holding, limit int, lease time.Duration) (store.Claim, error) {
	claim, err := s.Store.Claim(ctx, owner, holds, limit, lease)
	s.calls = append(s.calls, fmt.Sprintf("claim %d behind %d", len(claim.Messages), holds.InHand))
	if s.meanwhile != nil && len(s.calls) == 1 {
		s.meanwhile()
	}
	return claim, err
}

func (s *told) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	s.calls = append(s.calls, fmt.Sprint("read ", uids))
	return s.Store.Read(ctx, uids, commands)
}

func (s *told) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	s.calls = append(s.calls, fmt.Sprint("commit ", len(batch.Items)))
	s.commits++
	if s.fails {
		s.fails = false
		return nil, errRedis
	}
	if s.conflicts != nil && s.conflicts(s.commits) {
		return slices.Repeat([]store.Code{store.CodeConflict}, len(batch.Items)), nil
	}
	return s.Store.Commit(ctx, batch)
}

// inTurn does at once the read that would run concurrently.
func inTurn(read func()) (wait func()) { read(); return func() {} }

func always() bool { return true }

// ahead does a round of batches of two, and returns what it asked for.
func (b *bundle) ahead(queue *told) (poller.Round, error) {
	b.t.Helper()
	queue.Store = b.Store
	return b.poller(queue, poller.Config{Batch: 2}).RunPipelined(b.t.Context(), always, inTurn)
}

func TestTheNextBatchIsReadBeforeTheLastIsCommittedUnlessThatMayChangeIt(t *testing.T) {
	cases := map[string]struct {
		say     []string // models with results
		command string   // that comes between the claims
		want    []string
	}{
		"results of others": {
			[]string{"a", "b", "c", "d"}, "",
			[]string{"claim 2 behind 0", "claim 2 behind 2", "read [c d]", "read [a b]", "commit 2", "claim 0 behind 2", "commit 2"},
		},
		"a model is in both": {
			[]string{"a", "b", "c", "a"}, "",
			[]string{"claim 2 behind 0", "claim 2 behind 2", "read [a b]", "commit 2", "claim 0 behind 2", "read [c a]", "commit 2"},
		},
		"a command is in the next": {
			[]string{"a", "b", "c"}, put("e"),
			[]string{"claim 2 behind 0", "claim 2 behind 2", "read [a b]", "commit 2", "read [c e]", "commit 2"},
		},
		"the first is not full": {
			[]string{"a"}, "", []string{"claim 1 behind 0", "read [a]", "commit 1"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.running("a", "b", "c", "d")
				b.succeed(test.say...)
				queue := &told{meanwhile: func() {
					if test.command != "" {
						b.Command(test.command)
					}
				}}
				round, err := b.ahead(queue)
				must(t, err)
				failIf(t, round.Applied+round.Settled != round.Claimed, "want all done, got %+v", round)
				equal(t, test.want, queue.calls)
			})
		})
	}
}

func TestABatchThatWasReadAheadIsReadAgainAfterAConflict(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b", "c", "d")
		b.succeed("a", "b", "c", "d")
		queue := &told{conflicts: func(n int) bool { return n == 2 }}
		round, err := b.ahead(queue)
		must(t, err)
		failIf(t, round.Applied != 4 || round.Left != 0, "want all applied, got %+v", round)
		equal(t, []string{"commit 2", "claim 0 behind 2", "commit 2", "read [c d]", "commit 2"}, queue.calls[4:])
	})
}

func TestARoundTellsWhatBecameOfAllItsBatches(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		b.Say(b.result("success", "a"), "garbage", b.result("success", "b"), "garbage")
		round, err := b.ahead(&told{})
		must(t, err)
		round.Leads = false
		equal(t, poller.Round{Claimed: 4, Applied: 2, Settled: 2, Rejected: 2}, round)
	})
}

func (b *bundle) succeed(uids ...string) {
	b.t.Helper()
	for _, uid := range uids {
		b.Say(b.result("success", uid))
	}
}

// The third message says again what the model says before the first.
func TestMessagesOfAModelThatAreInTwoBatchesAreDecidedInTheirOrder(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b")
		status := func(text string) string {
			return b.result("user_friendly_status", "a", fmt.Sprintf(`"status":%q`, text))
		}
		b.hear(status("half"))
		b.Say(status("most"), b.result("success", "b"), status("half"))
		check.Got(b.ahead(&told{}))(t)
		got := b.Model("a")["user_friendly_status"]
		failIf(t, got != "half", "want what was said last, got %q", got)
	})
}

func TestAnErrorEndsARoundAndTheNextBeginsWithAllThatStands(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b", "c", "d")
		b.succeed("a", "b", "c", "d")
		queue := &told{fails: true}
		_, err := b.ahead(queue)
		stopIf(t, !errors.Is(err, errRedis), "want the error told, got %v", err)
		queue.calls = nil
		round, err := b.ahead(queue)
		must(t, err)
		failIf(t, round.Applied != 4 || queue.calls[0] != "claim 4 behind 0", "want all four claimed again and applied, got %+v and %q", round, queue.calls)
		b.ExpectStats("want each applied once", map[string]int{"success": 4, "duplicate": 0})
	})
}

func TestTheNextBatchDoesNotOvertakeWhatIsLeftOfTheLast(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b", "c", "d")
		b.succeed("a", "b", "c", "d")
		queue := &told{conflicts: func(int) bool { return true }}
		round, err := b.ahead(queue)
		must(t, err)
		failIf(t, round.Left != 2 || slices.Contains(queue.calls, "claim 0 behind 2"), "want the round ended, got %+v and %q", round, queue.calls)
		queue.conflicts = nil
		_, err = b.ahead(queue)
		must(t, err)
		b.ExpectStats("want each applied once", map[string]int{"success": 4, "duplicate": 0})
	})
}

func TestWhatWaitsKeepsAPollerFromClaimingMoreAndMore(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b", "c", "d", "e", "f")
		b.succeed("a", "b", "c", "d", "e", "f")
		queue := &told{Store: b.Store, conflicts: func(int) bool { return true }}
		p := b.poller(queue, poller.Config{Batch: 2})
		for range 3 {
			check.Got(p.RunPipelined(t.Context(), always, inTurn))(t)
		}
		claim := check.Got(b.Store.Claim(t.Context(), "p1", store.Holding{}, 0, time.Second))(t)
		failIf(t, len(claim.Messages) != 4, "want no more than two batches in hand, found %d messages", len(claim.Messages))
	})
}

// stopping ends a poller in the middle of its first commit.
type stopping struct {
	*store.Store
	stop func()
}

func (s *stopping) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	s.stop()
	return s.Store.Commit(ctx, batch)
}

func TestAPollerThatIsStoppedFinishesAllThatItHasClaimed(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	uids := []string{"a", "b", "c", "d", "e", "f"}
	b.running(uids...)
	b.succeed(uids...)
	ctx, stop := context.WithCancel(t.Context())
	must(t, b.poller(&stopping{b.Store, stop}, poller.Config{Batch: 2}).Run(ctx))
	b.ExpectStats("want both batches applied", map[string]int{"success": 4})
	left := b.List(b.Store.Keys.Output)
	failIf(t, len(left) != 2 || len(b.Scores(b.Store.Keys.Pollers)) != 0, "want two messages for others, got %v, and no poller", left)
}

// paced notes behind how many results each claim asks, and ends a poller at the first claim of its second round.
type paced struct {
	*store.Store
	stop   func()
	behind []int
}

func (s *paced) Claim(ctx context.Context, owner string, holds store.Holding, limit int, lease time.Duration) (store.Claim, error) {
	if s.behind = append(s.behind, holds.InHand); holds.InHand == 0 && len(s.behind) > 1 {
		s.stop()
	}
	return s.Store.Claim(ctx, owner, holds, limit, lease)
}

func TestARoundEndsBehindEightBatchesHoweverMuchIsThere(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	b.Say(slices.Repeat([]string{"garbage"}, 20)...)
	ctx, stop := context.WithCancel(t.Context())
	queue := &paced{Store: b.Store, stop: stop}
	must(t, b.poller(queue, poller.Config{Batch: 2}).Run(ctx))
	equal(t, []int{0, 2, 2, 2, 2, 2, 2, 2, 0}, queue.behind)
	left := b.List(b.Store.Keys.Output)
	failIf(t, len(left) != 2, "want nine batches done, got %d messages left", len(left))
}
