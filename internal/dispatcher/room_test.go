package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// loading notes which models a dispatcher reads.
type loading struct {
	*store.Store
	loaded []string
}

func (s *loading) Load(ctx context.Context, uids []string) (map[string]*store.Record, error) {
	s.loaded = append(s.loaded, uids...)
	return s.Store.Load(ctx, uids)
}

func TestOfAFreedKeyNoMoreModelsAreReadThanMayStart(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		s := &loading{Store: b.Store}
		d := b.dispatcher(s, dispatcher.Config{})
		b.fleet(fourAHost, append(uidsOf("t1", 20), uidsOf("t2", 20)...)...)
		b.settle(d)
		for freed := 1; freed <= 4; freed++ {
			b.finish(slices.Concat(b.runs()["t1"][:freed], b.runs()["t2"][:freed])...)
			s.loaded = nil
			total := b.settle(d)
			failIf(t, total.Started != 2*freed || len(s.loaded) != 2*freed, "want %d started and nothing else read, got %+v and %v", 2*freed, total, s.loaded)
		}
	})
}

func TestAllThatHasBecomeFreeOfAKeyIsTakenInOneRound(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(`{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":30}]}`, uidsOf("t1", 90)...)
		b.settle(d)
		b.finish(b.runs()["t1"]...)
		round := b.round(d)
		failIf(t, round.Started != 30, "want 30 started, got %+v", round)
	})
}

// TestALimitThatWasRaisedIsUsedAtOnce lets a dispatcher know the limit of before.
func TestALimitThatWasRaisedIsUsedAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(fourAHost, uidsOf("t1", 20)...)
		b.settle(d)
		limit := &model.Limit{Name: "host=t1", Running: 12, Since: b.now()}
		must(t, flow.Of(b.Store).PutLimit(t.Context(), limit, b.now()))
		b.settle(d)
		b.running(12, "t1")
	})
}

// TestAFreeSlotIsNotLeftWhenAStartIsRefused lets a save come between, which refuses the start of the only model that is read of the key.
func TestAFreeSlotIsNotLeftWhenAStartIsRefused(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		between := func() {}
		d := b.dispatcher(&interrupted{Store: b.Store, before: func() { between() }}, dispatcher.Config{})
		b.fleet(fourAHost, uidsOf("t1", 9)...)
		b.settle(d)
		b.finish("t1/m00")
		between = func() {
			between = func() {}
			b.decide(func(r *store.Record, now time.Time) model.Decision { return decided(r.Disable("", "me", now)) }, "t1/m04")
		}
		round := b.round(d)
		stopIf(t, round.Refused != 1, "want a start refused, got %+v", round)
		b.settle(d)
		equal(t, []string{"t1/m01", "t1/m02", "t1/m03", "t1/m05"}, b.runs()["t1"])
	})
}

// TestAModelWithALowerLimitOfTheKeyHoldsUpNoOther lets the first of those that wait start alone by its own limit, and a dispatcher that knows none yet.
func TestAModelWithALowerLimitOfTheKeyHoldsUpNoOther(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(fourAHost, uidsOf("t1", 4)...)
		b.settle(d)
		low := b.parse(`{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":1}]}`)
		low.Name = "low"
		b.save(low, model.Definition{Payload: `{"input_url":"http://t1/x"}`}, "t1/low")
		b.Clock.Turn(time.Second)
		b.fleet(fourAHost, "t1/m10", "t1/m11", "t1/m12", "t1/m13")
		b.settle(d)
		b.finish(b.runs()["t1"]...)
		b.settle(b.dispatcher(b.Store, dispatcher.Config{NewUID: func() string { return fmt.Sprint("other-", time.Now().UnixNano()) }}))
		equal(t, []string{"t1/low", "t1/m10", "t1/m11", "t1/m12"}, b.runs()["t1"])
	})
}

func TestKeysTakeTurnsWhereTheInputListHasRoomForFew(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{MaxQueued: 10})
		b.fleet(fourAHost, append(uidsOf("t1", 8), uidsOf("t2", 8)...)...)
		b.settle(d)
		b.finish(slices.Concat(b.runs()["t1"], b.runs()["t2"])...)
		b.Redis.RPush(t.Context(), b.Store.Keys.Input, "1", "2", "3", "4", "5", "6", "7", "8")
		b.round(d)
		equal(t, map[string]int{"t1": 1, "t2": 1}, counts(b.runs()))
	})
}

// TestTheFirstRoundStartsModelsOfEachKey lets more be due than a round reads, those of a key one behind the other.
func TestTheFirstRoundStartsModelsOfEachKey(t *testing.T) {
	for name, test := range map[string]struct{ wanted, rested bool }{
		"due": {}, "wanted at once": {wanted: true}, "due after a round without work": {rested: true},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				d := b.dispatcher(b.Store, dispatcher.Config{Batch: 80})
				if test.rested {
					b.round(d)
				}
				var uids []string
				for tenant := range 8 {
					uids = append(uids, uidsOf(fmt.Sprint("t", tenant), 40)...)
				}
				b.fleet(fourAHost, uids...)
				if test.wanted {
					b.decide(func(r *store.Record, now time.Time) model.Decision { decision, _ := r.Run(false, now); return decision }, uids...)
				}
				b.round(d)
				if got := b.runs(); len(got) != 8 {
					t.Errorf("got models of %d keys running, want 8: %v", len(got), got)
				}
			})
		})
	}
}
