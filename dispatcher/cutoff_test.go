package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// faulty is a store whose calls fail by name, when their turn has come: Redis can go away between any two of them.
type faulty struct {
	*store.Store
	call string // that fails
	skip int    // times that it works before
}

var errGone = errors.New("redis is gone")

func (s *faulty) fails(call string) error {
	if s.call != call {
		return nil
	}
	if s.skip--; s.skip >= 0 {
		return nil
	}
	s.call = ""
	return errGone
}

func (s *faulty) MeasureCircuit(ctx context.Context, now time.Time) (store.CircuitChange, error) {
	if err := s.fails("circuit"); err != nil {
		return "", err
	}
	return s.Store.MeasureCircuit(ctx, now)
}

func (s *faulty) Load(ctx context.Context, uids []string) (map[string]*store.Record, error) {
	if err := s.fails("load"); err != nil {
		return nil, err
	}
	return s.Store.Load(ctx, uids)
}

func (s *faulty) Forget(ctx context.Context, uid string, gate model.Blocker) error {
	if err := s.fails("forget"); err != nil {
		return err
	}
	return s.Store.Forget(ctx, uid, gate)
}

// taking is a store in which a worker takes everything between the look at a model and the decision about it.
type taking struct {
	dispatcher.Store
	take func()
}

func (s *taking) Load(ctx context.Context, uids []string) (map[string]*store.Record, error) {
	records, err := s.Store.Load(ctx, uids)
	s.take()
	return records, err
}

func TestARoundThatRedisCutsOffIsToldAndTheNextOneFinishesIt(t *testing.T) {
	for name, test := range map[string]struct {
		store faulty
		taken bool             // the expired attempt is taken in the last moment
		want  dispatcher.Round // of the rounds after it, together
	}{
		"at the circuit of the queue":   {faulty{call: "circuit"}, false, dispatcher.Round{Started: 2, Withdrawn: 1}},
		"reading the models":            {faulty{call: "load"}, false, dispatcher.Round{Started: 2, Withdrawn: 1}},
		"forgetting a broken one":       {faulty{call: "forget"}, false, dispatcher.Round{Started: 1}},
		"reading a model that is taken": {faulty{call: "load", skip: 2}, true, dispatcher.Round{Taken: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.put("expired")
				b.round(b.dispatcher(b.Store, dispatcher.Config{NewUID: func() string { return "old" }}))
				b.Clock.Turn(time.Minute)
				b.put("due")
				b.spoil("bad")
				b.Redis.Set(t.Context(), b.Store.Keys.Model("bad"), "text", 0)
				store := test.store
				store.Store = b.Store
				take := func() {
					if test.taken {
						b.Take()
					}
				}
				d := b.dispatcher(&taking{&store, take}, dispatcher.Config{})
				if _, err := d.RunOnce(t.Context()); !errors.Is(err, errGone) {
					t.Fatalf("want the error returned, got %v", err)
				}
				var sum dispatcher.Round
				for range 3 {
					round := b.round(d)
					sum.Started, sum.Withdrawn, sum.TimedOut = sum.Started+round.Started, sum.Withdrawn+round.Withdrawn, sum.TimedOut+round.TimedOut
					sum.Taken += round.Taken
				}
				failIf(t, sum != test.want, "want %+v in the rounds after it, got %+v", test.want, sum)
			})
		})
	}
}

func TestWhatStandsInTheRunningSetByMistakeIsTakenOut(t *testing.T) {
	for name, test := range map[string]struct {
		spoil   func(b *bundle)
		orphans int64
	}{
		"a uid without a model": {func(*bundle) {}, 1},
		"an idle model": {func(b *bundle) {
			b.put("bad")
			b.Redis.HSet(b.t.Context(), b.Store.Keys.Model("bad"), "refresh_disabled_until_update", "1")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				test.spoil(b)
				before := b.Model("bad")
				b.Redis.ZAdd(t.Context(), b.Store.Keys.Running, zscore("bad", b.now()))
				b.put("good")
				d := b.dispatcher(b.Store, dispatcher.Config{})
				b.round(d)
				if running := b.Scores(b.Store.Keys.Running); len(running) != 1 || running["good"] == 0 {
					t.Errorf("want the good one alone running, got %v", running)
				}
				equal(t, before, b.Model("bad"))
				if stats := b.Stats(); stats["timeout"] != 0 || int64(stats["orphan"]) != test.orphans {
					t.Errorf("want no timeout and %d orphans counted, got %v", test.orphans, stats)
				}
				if round := b.round(d); round.Sleep == 0 {
					t.Errorf("want a dispatcher at rest, got %+v", round)
				}
			})
		})
	}
}

// The set may be behind the hash when a person has moved a deadline by hand.
func TestADeadlineThatWasMovedByHandIsKept(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.round(d)
		b.Redis.HSet(t.Context(), b.Store.Keys.Model("tbl_1"), "deadline_at", "2026-11-21T07:05:00.000Z")
		b.Clock.Turn(time.Minute)
		if round := b.round(d); round.Withdrawn+round.TimedOut != 0 {
			t.Errorf("want the attempt left alone, got %+v", round)
		}
		b.Clock.Turn(4 * time.Minute)
		if round := b.round(d); round.Withdrawn != 1 {
			t.Errorf("want it withdrawn at the new deadline, got %+v", round)
		}
	})
}

// changing is a store whose circuit of the queue changes as it is told, one measurement after the other.
type changing struct {
	*store.Store
	changes []store.CircuitChange
}

func (s *changing) MeasureCircuit(context.Context, time.Time) (store.CircuitChange, error) {
	change := s.changes[0]
	s.changes = s.changes[1:]
	return change, nil
}

func TestTheCircuitOfTheQueueIsMeasuredOnceASecondAndItsChangesAreTold(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	var text bytes.Buffer
	log := zerolog.New(&text)
	store := &changing{b.Store, []store.CircuitChange{store.CircuitUnchanged, store.CircuitOpened, store.CircuitClosed}}
	d := b.dispatcher(store, dispatcher.Config{Log: &log})
	for _, want := range []string{"", "error the circuit of the queue is open: too", "info the circuit of the queue is closed: attempts"} {
		for range 2 { // the second is within the second
			b.round(d)
		}
		level, words, _ := strings.Cut(want, " ")
		if got := text.String(); !strings.Contains(got, words) || !strings.Contains(got, level) || want == "" && got != "" {
			t.Errorf("want %q told, got %q", want, got)
		}
		text.Reset()
		b.Clock.Turn(time.Second)
	}
	if len(store.changes) != 0 {
		t.Errorf("want three measurements, %d are left", len(store.changes))
	}
}
