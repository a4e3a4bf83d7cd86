package dispatcher_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// killWorker lets a worker take so many attempts, begin some models, and die. The dispatcher finds it dead.
func (b *bundle) killWorker(d *dispatcher.Dispatcher, owner string, takes int, begins ...string) {
	b.t.Helper()
	taken, err := b.Store.Pool().Take(b.t.Context(), store.TakeRequest{Owner: owner, New: true, Most: takes})
	stopIf(b.t, err != nil || len(taken.Entries) != takes, "%s took %q, %v, want %d", owner, taken.Entries, err, takes)
	b.decide(func(r *store.Record, now time.Time) model.Decision { return decided(r.Begin(now, owner)) }, begins...)
	for range 12 {
		b.Clock.Turn(time.Second)
		b.round(d)
		if b.Redis.ZCard(b.t.Context(), b.Store.Keys.Workers).Val() == 0 {
			return
		}
	}
	b.t.Fatalf("%s is not found dead", owner)
}

func TestAnAttemptThatKillsItsWorkersIsDeferredThenFailsAndHarmsNoOther(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.saveOne(`{"timeout":"1h","retries":["5m"],"on_exhausted":"give_up"}`, "")
		b.round(d)
		attempt := b.Attempt("tbl_1")
		b.killWorker(d, "w1", 1, "tbl_1")
		hash := b.Model("tbl_1")
		if hash["attempt_uid"] != attempt || hash["processing_at"] != "" || hash["deaths"] != "1" || len(b.List(b.Store.Keys.Input)) != 1 {
			t.Fatalf("after one death: expected the same attempt in the list, found %v", hash)
		}
		b.killWorker(d, "w2", 1, "tbl_1")
		hash = b.Model("tbl_1")
		if hash["attempt_uid"] != "" || hash["deaths"] != "2" || hash["attempt_no"] != "" || len(b.List(b.Store.Keys.Input)) != 0 {
			t.Fatalf("after two deaths: expected the attempt to have ended uncounted, found %v", hash)
		}
		b.Clock.Turn(10 * time.Second)
		b.round(d)
		if entries := b.List(b.Store.Keys.Input); len(entries) != 1 || !strings.Contains(entries[0], `"deaths":2`) || b.Attempt("tbl_1") == attempt {
			t.Fatalf("after ten seconds: expected a new attempt that says deaths, found %q", entries)
		}
		b.killWorker(d, "w3", 1, "tbl_1")
		b.ExpectStats("the third death is a failure", map[string]int{"failure": 1, "worker_died": 2, "timeout": 0})
		history := b.List(b.Store.Keys.History("tbl_1"))
		failIf(t, len(history) != 2 || !strings.Contains(history[0], "worker_died"), "expected both endings in the history, found %q", history)
	})
}

// TestAWorkerThatReturnsWhileOthersAreFoundDeadHasNotDied lets a worker that was found silent take what another has left, before the dispatcher looks at
// what it has.
func TestAWorkerThatReturnsWhileOthersAreFoundDeadHasNotDied(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.put("m")
		b.round(d)
		take := func(owner string, isNew bool, most int) {
			taken, err := b.Store.Pool().Take(t.Context(), store.TakeRequest{Owner: owner, New: isNew, Most: most})
			stopIf(t, err != nil || len(taken.Entries) != most, "%s took %q, %v, want %d", owner, taken.Entries, err, most)
			if most > 0 {
				b.decide(func(r *store.Record, now time.Time) model.Decision { return decided(r.Begin(now, owner)) }, "m")
			}
		}
		take("w1", true, 1)
		take("w2", true, 0)
		b.Clock.Turn(10 * time.Second)
		looks, returned := false, false
		b.Intercept(testkit.Hook(func(ctx context.Context, _ []redis.Cmder, next func() error) error {
			err := next()
			if looks || returned {
				return err
			}
			looks = true
			if returned = b.Redis.LLen(ctx, b.Store.Keys.Input).Val() > 0; returned {
				take("w2", false, 1)
			}
			looks = false
			return err
		}))
		for !returned {
			b.round(d)
			b.Clock.Turn(time.Second)
		}
		if hash := b.Model("m"); hash["deaths"] != "1" || hash["processing_at"] == "" {
			t.Errorf("expected one death, and the attempt in the hands of the worker that returned, found %v", hash)
		}
	})
}

func TestADeathCountsOnlyForWhatTheDeadWorkerHadBegun(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.put("begun", "waited")
		b.round(d)
		b.killWorker(d, "w1", 2, "begun")
		if got := b.Model("begun")["deaths"] + "," + b.Model("waited")["deaths"]; got != "1," {
			t.Errorf("expected one death of the model that was begun, found %q", got)
		}
		failIf(t, len(b.List(b.Store.Keys.Input)) != 2, "expected both in the list again")
	})
}
