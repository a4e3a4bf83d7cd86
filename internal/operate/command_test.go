package operate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

// bundle is a queue of two parts with the models m0 to m4.
type bundle struct {
	*store.Queue
	t      *testing.T
	client goredis.UniversalClient
}

func open(t *testing.T, server *testkit.Server) *bundle {
	t.Helper()
	options := server.Options()
	options.PoolSize = 1 // what opens another connection would count as a call
	client := goredis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	clients := &redis.Clients{Read: client, Write: client, Block: client}
	must(t, store.Create(t.Context(), clients, store.Config{}, 2))
	queue := check.Got(store.Open(t.Context(), clients, store.Config{}))(t)
	f := &bundle{queue, t, client}
	var puts []*Request
	for i := range 5 {
		puts = append(puts, put(t, fmt.Sprint("m", i), 1))
	}
	must(t, Execute(t.Context(), queue, puts))
	return f
}

func put(t *testing.T, uid string, n int) *Request {
	t.Helper()
	d, err := model.ParseDefinition(map[string]any{"uid": uid, "rrule": "FREQ=YEARLY", "dtstart": "2026-01-01T00:00:00", "payload": map[string]any{"n": n}})
	must(t, err)
	return &Request{Command: model.Command{Type: model.CommandPut, UID: uid, Definition: d}}
}

func ask(kind model.CommandType, uid string) *Request {
	return &Request{Command: model.Command{Type: kind, UID: uid}}
}

func work(t *testing.T) []*Request {
	t.Helper()
	return []*Request{
		put(t, "m0", 2), ask(model.CommandRun, "m1"), ask(model.CommandDisable, "m2"), ask(model.CommandRemove, "m3"), put(t, "m4", 1),
		put(t, "new1", 2), put(t, "new2", 2), put(t, "new3", 2), put(t, "new4", 2),
	}
}

func (f *bundle) models() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for _, uid := range []string{"m0", "m1", "m2", "m3", "m4", "new1", "new2", "new3", "new4"} {
		records := check.Got(f.Of(uid).Load(f.t.Context(), []string{uid}))(f.t)
		if r := records[uid]; r.Exists {
			all[uid] = fmt.Sprint(r.Payload, " ", r.Trigger, " ", r.Disabled)
		}
	}
	return all
}

var (
	before = map[string]string{"m0": `{"n":1}  false`, "m1": `{"n":1}  false`, "m2": `{"n":1}  false`, "m3": `{"n":1}  false`, "m4": `{"n":1}  false`}
	after  = map[string]string{"m0": `{"n":2}  false`, "m1": `{"n":1} run false`, "m2": `{"n":1}  true`, "m4": `{"n":1}  false`,
		"new1": `{"n":2}  false`, "new2": `{"n":2}  false`, "new3": `{"n":2}  false`, "new4": `{"n":2}  false`}
)

func TestEachCommandTellsWhatBecameOfIt(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		f, requests := open(t, server), work(t)
		requests = append(requests, ask(model.CommandRun, "nobody"), put(t, "broken", 1))
		must(t, f.client.Set(t.Context(), f.Of("broken").Keys.Model("broken"), "x", 0).Err())
		must(t, Execute(t.Context(), f.Queue, requests))
		var results []string
		for _, r := range requests {
			results = append(results, r.Result)
			failIf(t, (r.Result == ResultRefused) != (r.Refused != nil), "%s %s: found %v", r.Command.UID, r.Result, r.Refused)
		}
		want := []string{"updated", "run", "disabled", "removed", "unchanged", "created", "created", "created", "created", "refused", "refused"}
		diff := cmp.Diff(want, results) + cmp.Diff(after, f.models())
		failIf(t, diff != "", "-want +got:\n%s", diff)
	})
}

// Whichever call fails, it is told, each model is as it was or as it was asked for, and to ask again does the rest.
func TestCommandsOfWhichACallFailsAreToldAndCanBeRepeated(t *testing.T) {
	for n := 1; ; n++ {
		f, fault := open(t, testkit.Miniredis(t)), new(testkit.Fault)
		f.client.AddHook(fault)
		fault.Arm(n)
		err := Execute(t.Context(), f.Queue, work(t))
		struck := fault.Struck()
		fault.Arm(0)
		stopIf(t, struck != errors.Is(err, testkit.ErrFault) || !struck && err != nil, "call %d failed: %v, told: %v", n, struck, err)
		for uid, found := range f.models() {
			failIf(t, found != before[uid] && found != after[uid], "call %d: %s is neither as it was nor as it was asked for: %s", n, uid, found)
		}
		must(t, Execute(t.Context(), f.Queue, work(t)))
		diff := cmp.Diff(after, f.models())
		failIf(t, diff != "", "call %d, asked again (-want +got):\n%s", n, diff)
		if !struck {
			if n < 7 { // of each part the clock, the models and the commit
				t.Errorf("expected at least 6 calls, found %d", n-1)
			}
			return
		}
	}
}

// restless is a part whose models change between reading and committing, so many times.
type restless struct {
	store.Executor
	change func()
	left   int
}

func (r *restless) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	if r.left > 0 {
		r.left--
		r.change()
	}
	return r.Executor.Commit(ctx, batch)
}

func TestWhatChangedMeanwhileIsDecidedAgainSoManyTimes(t *testing.T) {
	for changes, refused := range map[int]bool{0: false, 1: false, store.MaxPasses - 1: false, store.MaxPasses: true} {
		f := open(t, testkit.Miniredis(t))
		payload := 10
		part := &restless{Executor: f.Of("m0"), left: changes, change: func() {
			payload++
			must(t, execute(t.Context(), f.Of("m0"), []*Request{put(t, "m0", payload)}))
		}}
		// The second one changes nothing only if the first one was carried out, and the last one stands alone.
		requests := []*Request{put(t, "m0", 2), put(t, "m0", 2)}
		must(t, execute(t.Context(), part, requests))
		for i, want := range []string{ResultUpdated, ResultUnchanged} {
			if refused {
				want = ResultRefused
			}
			r := requests[i]
			failIf(t, r.Result != want || (r.Refused != nil) != refused,
				"%d changes, request %d: expected %s, found %s, %v", changes, i, want, r.Result, r.Refused)
		}
		got := f.models()["m0"]
		failIf(t, (got == after["m0"]) == refused, "%d changes: found %s", changes, got)
	}
}
