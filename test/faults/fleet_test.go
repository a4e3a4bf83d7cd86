package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// models is how many models each test of this package refreshes.
var models = long.Or(1_000, 20_000)

// fleet is a queue full of due models and whatever works on it.
type fleet struct {
	*fixture.Queue
	t      testing.TB
	ctx    context.Context
	stop   context.CancelFunc
	daemon sync.WaitGroup
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), testkit.Limit)
	f := &fleet{Queue: fixture.Live(t, testkit.Redis(t)), t: t, ctx: ctx, stop: stop}
	t.Cleanup(func() { stop(); f.daemon.Wait() })
	return f
}

// put saves due one-shots.
func (f *fleet) put(count int) {
	f.t.Helper()
	const batch = 500
	now, err := f.Store.Now(f.ctx)
	for first := 0; first < count && err == nil; first += batch {
		var transitions []*store.Transition
		for i := first; i < min(first+batch, count); i++ {
			record := &store.Record{Model: model.Model{UID: fmt.Sprint("m", i)}}
			definition := model.Definition{UID: record.UID, Payload: `{"input_url":"http://feed"}`}
			decision, _, putErr := record.Put(definition, policy.Default(), false, now)
			if putErr != nil {
				f.t.Fatal(putErr)
			}
			transitions = append(transitions, record.Decide(decision, now))
		}
		f.Commit(now, transitions...)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// run starts a daemon that ends with the fleet.
func (f *fleet) run(daemon func(context.Context) error) {
	f.daemon.Go(func() {
		if err := daemon(f.ctx); err != nil {
			f.t.Error(err)
		}
	})
}

// work answers every attempt with a success, as a foreign worker does: it knows two lists and JSON.
func (f *fleet) work(context.Context) error {
	client := f.Server.Client(f.t)
	for f.ctx.Err() == nil {
		if err := client.BLMove(f.ctx, f.Store.Keys.Input, f.Store.Keys.Input, "LEFT", "LEFT", time.Second).Err(); err != nil {
			continue // nothing to do yet, or the end
		}
		entries, _ := client.LPopCount(f.ctx, f.Store.Keys.Input, 100).Result()
		for _, raw := range entries {
			var entry fixture.Entry
			if err := json.Unmarshal([]byte(raw), &entry); err != nil {
				return fmt.Errorf("read entry %s: %w", raw, err)
			}
			client.RPush(context.WithoutCancel(f.ctx), f.Store.Keys.Output, fixture.Result("success", entry.UID, entry.AttemptUID))
		}
	}
	return nil
}

// check compares the sums that must hold when every model has been refreshed once.
func (f *fleet) check(events map[string]int) {
	f.t.Helper()
	// The journal tells nothing of so many models that are created at once.
	if diff := cmp.Diff(map[string]int{"start": models, "success": models}, events); diff != "" {
		f.t.Errorf("journal:\n%s", diff)
	}
	want := map[string]int{"create": models, "start": models, "success": models}
	stats := f.Stats()
	maps.DeleteFunc(stats, func(name string, _ int) bool { return name == "duplicate" || name == "stale" })
	if diff := cmp.Diff(want, stats); diff != "" {
		f.t.Errorf("counters:\n%s", diff)
	}
	for _, key := range []string{f.Store.Keys.Due, f.Store.Keys.Urgent, f.Store.Keys.Running} {
		if left := f.Scores(key); len(left) != 0 {
			f.t.Errorf("%s: want it empty, got %d", key, len(left))
		}
	}
	for _, key := range []string{f.Store.Keys.Input, f.Store.Keys.Output, f.Store.Keys.Rejected} {
		if left := f.List(key); len(left) != 0 {
			f.t.Errorf("%s: want it empty, got %d", key, len(left))
		}
	}
}

func TestFiveDispatchersAndFivePollersRefreshEachModelOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.put(models)
	for range 5 {
		d, err := dispatcher.New(f.Store, dispatcher.Config{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := poller.New(f.Store, poller.Config{})
		if err != nil {
			t.Fatal(err)
		}
		f.run(d.Run)
		f.run(p.Run)
	}
	f.run(f.work)
	events := f.AwaitEvent(model.EventSuccess, models)
	f.stop()
	f.daemon.Wait()
	f.check(events)
	if stats := f.Stats(); stats["duplicate"]+stats["stale"] != 0 {
		t.Errorf("want no message handled twice, got %v", stats)
	}
}
