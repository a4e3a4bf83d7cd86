package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

// order asks workers for something, as the command line does.
func (f *fleet) order(verb, name string) {
	f.t.Helper()
	operator := operate.Operator{Queue: &store.Queue{Name: f.Store.Keys.Queue, Parts: []*store.Store{f.Store}}, By: "ann"}
	_, err := operate.OrderPools(context.Background(), operator, verb, name)
	must(f.t, err)
}

func (f *fleet) taken(owner string) int { return len(f.List(f.Store.Keys.Taken(owner))) }

func TestAQuietWorkerTakesNoMoreAndAStoppedOneHandsBackWhichCostsNothingUnderTraffic(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.runDaemons(dispatcher.Config{})
	f.putLong("a", "b") // which have no answer
	s := newService(t, 2)
	first := f.worker(s, "--concurrency", "4", "--grace", "0")
	s.await(2)
	var owner string
	for owner = range f.Scores(f.Store.Keys.Workers) {
	}
	f.put(models) // two slots are free for them
	f.AwaitEvent(model.EventSuccess, models/4)
	f.order(store.PoolQuiet, owner)
	check.Eventually(t, "it has finished what it can", func() bool { return f.taken(owner) == 2 })
	done := f.Stats()["success"]
	failIf(t, done == models, "all was done before the worker was quiet")
	second := f.worker(s, "--concurrency", "4")
	f.AwaitEvent(model.EventSuccess, models)
	failIf(t, f.taken(owner) != 2, "want the first one quiet, with two attempts in hand, found %d", f.taken(owner))

	host, _, _ := strings.Cut(owner, ":")
	f.order(store.PoolStop, owner)
	code := first.Wait()
	failIf(t, code != 0 || !strings.Contains(first.Output(), "stops, as an operator asked"), "want exit code 0 and why, got %d:\n%s", code, first.Output())
	events := f.AwaitEvent(model.EventSuccess, models+2)
	failIf(t, events["interrupted"] != 2, "want both handed back, found %v", events)
	f.order(store.PoolStop, host) // it is the only one left
	code = second.Wait()
	failIf(t, code != 0, "exit code %d", code)
	stats := f.Stats()
	failIf(t, stats["success"] != models+2 || stats["stale"]+stats["duplicate"]+stats["timeout"]+stats["retry"] > 0, "want each refreshed once, found %v", stats)
	left := len(f.List(f.Store.Keys.Input)) + f.owners() + len(f.Scores(f.Store.Keys.Running))
	failIf(t, left > 0, "%d entries, workers and attempts are left", left)
}
