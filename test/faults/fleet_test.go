package faults

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// TestMain lets four drills run side by side, unless -parallel says otherwise: mostly they wait.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if long.Enabled() && !given {
		_ = flag.Set("test.parallel", "4")
	}
	testkit.Main(m)
}

// models is how many models each test of this package refreshes.
var models = long.Or(400, 5_000)

// fleet is a queue full of due models and whatever works on it.
type fleet struct {
	*fixture.Queue
	*daemonGroup
}

func newFleet(t testing.TB, args ...string) *fleet {
	t.Helper()
	return newFleetOn(t, testkit.Redis(t, args...))
}

func newFleetOn(t testing.TB, server *testkit.Server) *fleet {
	t.Helper()
	return newFleetFor(t, server, check.Limit)
}

// newFleetFor is for tests that may take longer.
func newFleetFor(t testing.TB, server *testkit.Server, limit time.Duration) *fleet {
	t.Helper()
	ctx, end := context.WithTimeout(context.Background(), limit)
	f := &fleet{fixture.Live(t, server), newDaemonGroup(ctx, t)}
	t.Cleanup(func() { end(); f.stop() })
	return f
}

func (f *fleet) put(count int) {
	f.t.Helper()
	uids := make([]string, count)
	for i := range uids {
		uids[i] = fmt.Sprint("m", i)
	}
	f.save(policy.Default(), "http://feed", uids)
}

// putLong saves due one-shots whose attempts have an hour.
func (f *fleet) putLong(uids ...string) {
	f.t.Helper()
	hour := policy.Default()
	hour.Name, hour.Timeout = "hour", time.Hour
	must(f.t, f.Store.Fleet().PutPolicy(f.ctx, hour))
	f.save(hour, "http://feed", uids)
}

// save saves due one-shots under a policy that is stored if it has a name.
func (f *fleet) save(p policy.Policy, url string, uids []string) {
	f.t.Helper()
	now, err := f.Store.Now(f.ctx)
	must(f.t, err)
	for some := range slices.Chunk(uids, 500) {
		var transitions []*store.Transition
		for _, uid := range some {
			record := &store.Record{Model: model.Model{UID: uid}}
			decision, _, err := record.Put(model.Definition{UID: uid, PolicyName: p.Name, Payload: fmt.Sprintf(`{"input_url":%q}`, url)}, p, false, now)
			must(f.t, err)
			transitions = append(transitions, record.Decide(decision, now))
		}
		f.Commit(now, transitions...)
	}
}

// runDaemons starts a dispatcher and a poller in this process.
func (f *fleet) runDaemons(config dispatcher.Config) {
	f.t.Helper()
	d, err := dispatcher.New(dispatcher.RoomsOf(f.Store), config)
	must(f.t, err)
	p, err := poller.New(poller.RoomsOf(f.Store), poller.Config{})
	must(f.t, err)
	f.run(d.Run)
	f.run(p.Run)
}

func (f *fleet) start(command string, args ...string) *testkit.Process {
	f.t.Helper()
	return testkit.Refreshd(f.t, append([]string{command, "--redis", f.Server.URL}, args...)...)
}

func (f *fleet) poller(owner string) *testkit.Process {
	f.t.Helper()
	return f.start("poller", "--owner", owner, "--lease", "1s", "--tick", "100ms")
}

// stopAll asks processes to end as soon as they have started, and wants that they end well.
func stopAll(t testing.TB, processes ...*testkit.Process) {
	t.Helper()
	for _, process := range processes {
		process.AwaitOutput(t, `"message":"started"`)
		process.Ask()
	}
	for _, process := range processes {
		code := process.Wait()
		failIf(t, code != 0, "want processes that end well, got exit code %d:\n%s", code, process.Output())
	}
}

// work answers every attempt with a success, as a foreign worker does.
func (f *fleet) work(context.Context) error {
	client := f.Server.Client(f.t)
	return serve(f.ctx, client, f.Store.Keys.Input, 100, func(e entry) {
		client.RPush(context.WithoutCancel(f.ctx), f.Store.Keys.Output, fixture.Result("success", e.UID, e.AttemptUID))
	})
}

// check waits until every model has been refreshed, and compares the sums that must hold then. It returns how many messages were handled twice.
func (f *fleet) check() (again int) {
	f.t.Helper()
	events := f.AwaitEvent(model.EventSuccess, models)
	f.stop()
	// The journal says nothing about so many models that are created at once.
	equal(f.t, map[string]int{"start": models, "success": models}, events)
	want, stats := map[string]int{"create": models, "start": models, "success": models}, f.Stats()
	again = stats["duplicate"] + stats["stale"]
	maps.DeleteFunc(stats, func(name string, _ int) bool { return name == "duplicate" || name == "stale" })
	equal(f.t, want, stats)
	k := f.Store.Keys
	for _, key := range []string{k.Due, k.Urgent, k.Running, k.Input, k.Output, k.Rejected} {
		failIf(f.t, f.Redis.Exists(context.Background(), key).Val() != 0, "%s: want it empty", key)
	}
	return again
}

func TestFiveDispatchersAndFivePollersRefreshEachModelOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.put(models)
	for range 5 {
		f.runDaemons(dispatcher.Config{})
	}
	f.run(f.work)
	again := f.check()
	failIf(t, again != 0, "want no message handled twice, got %d", again)
}

// service gets the requests of workers. It lets the first ones wait for ever and answers all later ones.
type service struct {
	*httptest.Server
	t     testing.TB
	asked chan struct{} // one token for each request; there is room for all of a test that counts only the first
}

func newService(t *testing.T, unanswered int) *service {
	t.Helper()
	left := make(chan struct{}, unanswered)
	for range unanswered {
		left <- struct{}{}
	}
	s := &service{t: t, asked: make(chan struct{}, 10*models)}
	end := make(chan struct{})
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.asked <- struct{}{}
		select {
		case <-left:
			select {
			case <-r.Context().Done():
			case <-end:
			}
		default:
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(end) })
	return s
}

func (s *service) await(times int) {
	s.t.Helper()
	for range times {
		check.Await(s.t, s.asked, "a request of a worker")
	}
}

func (f *fleet) worker(s *service, args ...string) *testkit.Process {
	f.t.Helper()
	return f.start("worker", append([]string{"--http", s.URL, "--concurrency", "3"}, args...)...)
}

func (f *fleet) owners() int { return len(f.Scores(f.Store.Keys.Workers)) }

func TestWhatAKilledWorkerHadTakenIsFinishedByAnotherWithinSeconds(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.runDaemons(dispatcher.Config{})
	uids := []string{"a", "b", "c"}
	f.putLong(uids...)
	s := newService(t, len(uids))
	victim := f.worker(s)
	s.await(len(uids))
	f.AwaitEvent(model.EventStarted, len(uids))
	attempts := map[string]string{}
	for _, uid := range uids {
		hash := f.Model(uid)
		attempts[uid] = hash["attempt_uid"] + " no " + hash["attempt_no"]
	}
	survivor := f.worker(s)
	check.Eventually(t, "the survivor is known", func() bool { return f.owners() == 2 })
	killed := time.Now()
	victim.Kill()
	events := f.AwaitEvent(model.EventSuccess, len(uids))
	t.Logf("finished %s after the kill, with attempts of an hour", time.Since(killed))
	want := map[string]int{"create": 3, "start": 3, "started": 6, "worker_died": 3, "success": 3}
	equal(t, want, events)
	entries, err := f.Redis.XRange(f.ctx, f.Store.Keys.Journal, "-", "+").Result()
	must(t, err)
	succeeded := map[string]string{}
	for _, entry := range entries {
		if told := store.EntryFields(entry.Values); told["event"] == string(model.EventSuccess) {
			succeeded[fmt.Sprint(told["uid"])] += fmt.Sprintf("%v no %v", told["last_attempt_uid"], told["ended_attempt_no"])
		}
	}
	equal(t, attempts, succeeded)
	stopAll(t, survivor)
	left := len(f.List(f.Store.Keys.Input)) + f.owners()
	failIf(t, left > 0, "%d entries and workers are left", left)
}

func TestAFrozenWorkerChangesNothingWhenItThaws(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.runDaemons(dispatcher.Config{})
	f.putLong("a")
	s := newService(t, 1)
	frozen := f.worker(s, "--worker-lease", "1s")
	s.await(1)
	f.AwaitEvent(model.EventStarted, 1)
	successor := f.worker(s, "--worker-lease", "1s")
	check.Eventually(t, "the successor is known", func() bool { return f.owners() == 2 })
	freeze(frozen)
	f.AwaitEvent(model.EventSuccess, 1)
	thaw(frozen)
	successor.Kill()
	check.Eventually(t, "the thawed one goes on under a new name", func() bool { return f.owners() > 0 })
	f.putLong("b")
	events := f.AwaitEvent(model.EventSuccess, 2)
	want := map[string]int{"create": 2, "start": 2, "started": 3, "worker_died": 1, "success": 2}
	diff := cmp.Diff(want, events)
	failIf(t, diff != "", "journal:\n%s", diff)
}
