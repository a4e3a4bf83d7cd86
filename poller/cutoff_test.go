package poller_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
)

// faulty is a store of which one call fails once.
type faulty struct {
	*store.Store
	call string // that fails
}

func (s *faulty) fails(call string) error {
	if s.call != call {
		return nil
	}
	s.call = ""
	return errRedis
}

func (s *faulty) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	if err := s.fails("read"); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx, uids, commands)
}

func (s *faulty) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	if err := s.fails("commit"); err != nil {
		return nil, err
	}
	return s.Store.Commit(ctx, batch)
}

func (s *faulty) ExpiredPollers(ctx context.Context, now time.Time, lease time.Duration) ([]string, error) {
	if err := s.fails("expired"); err != nil {
		return nil, err
	}
	return s.Store.ExpiredPollers(ctx, now, lease)
}

func (s *faulty) Adopt(ctx context.Context, expired, owner string, lease time.Duration, limit int) (int, error) {
	if err := s.fails("adopt"); err != nil {
		return 0, err
	}
	return s.Store.Adopt(ctx, expired, owner, lease, limit)
}

func (s *faulty) Resign(ctx context.Context, owner string) error {
	if err := s.fails("resign"); err != nil {
		return err
	}
	return s.Store.Resign(ctx, owner)
}

func TestARoundThatRedisCutsOffIsToldAndTheNextOneFinishesIt(t *testing.T) {
	for _, call := range []string{"read", "commit", "expired", "adopt"} {
		t.Run(call, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.running("a", "b")
				b.Say(b.result("success", "b"))
				if _, err := b.Store.Claim(t.Context(), "dead", 10, time.Minute); err != nil {
					t.Fatal(err)
				}
				b.Clock.Turn(30 * time.Second)
				b.Say(b.result("success", "a"), "garbage")
				p := b.poller(&faulty{b.Store, call}, poller.Config{})
				if _, err := p.RunOnce(t.Context()); !errors.Is(err, errRedis) {
					t.Fatalf("want the error returned, got %v", err)
				}
				for range 3 {
					b.roundOf(p)
				}
				if stats := b.Stats(); stats["success"] != 2 || stats["malformed"] != 1 || stats["duplicate"] != 0 {
					t.Errorf("want each message applied once, got %v", stats)
				}
			})
		})
	}
}

func TestAPollerThatCannotResignSaysSoAndEndsAllTheSame(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	var text bytes.Buffer // written by Run alone
	log := zerolog.New(&text)
	p := b.poller(&faulty{b.Store, "resign"}, poller.Config{Log: &log})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
	if !strings.Contains(text.String(), "resigning failed") {
		t.Errorf("want the error logged, got %q", text.String())
	}
}

func TestAMessageThatIsTooLargeIsRejectedWithItsSizesAndItsBeginning(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.Say(strings.Repeat("x", 1<<20+1), b.result("success", "a"))
		b.Command(`{"type":"run","uid":"a","reason":"` + strings.Repeat("y", 1<<20) + `"}`)
		if round := b.round(); round.Rejected != 2 || round.Applied != 1 {
			t.Errorf("want two rejected and one applied, got %+v", round)
		}
		rejected := strings.Join(b.List(b.Store.Keys.Rejected), "\n")
		if stats := b.Stats(); stats[model.CounterOversized] != 2 || !strings.Contains(rejected, "expected at most 1048576 bytes, found 1048577") {
			t.Errorf("want two oversized, got %v and %.300s", stats, rejected)
		}
	})
}

// A worker may take the queued attempt between the look at its model and the command that supersedes it.
func TestAForcedRunSupersedesAnAttemptThatIsTakenInTheLastMoment(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		first := b.Attempt("a")
		b.Command(`{"type":"run","uid":"a","force":true}`)
		take := func() {
			if _, ok := b.Take(); !ok {
				t.Error("want an attempt to take")
			}
		}
		round := b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: take}, poller.Config{}))
		if round.Applied != 1 || round.Left != 0 || b.Attempt("a") != "" || b.Stats()["run"] != 1 {
			t.Errorf("want the run applied at once, got %+v and %v", round, b.Model("a"))
		}
		b.Say(fixture.Result("success", "a", first))
		b.round()
		if stats := b.Stats(); stats["success"] != 0 {
			t.Errorf("want the superseded attempt to count for nothing, got %v", stats)
		}
	})
}
