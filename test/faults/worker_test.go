package faults

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
)

// service is what workers post to. It lets the first requests wait for ever and answers all later ones.
type service struct {
	*httptest.Server
	asked chan struct{} // one token for each request
}

func newService(t *testing.T, unanswered int) *service {
	t.Helper()
	left := make(chan struct{}, unanswered)
	for range unanswered {
		left <- struct{}{}
	}
	s := &service{asked: make(chan struct{}, 100)}
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

// putLong saves due one-shots whose attempts have an hour.
func (f *fleet) putLong(uids ...string) {
	f.t.Helper()
	policy := policy.Default()
	policy.Name, policy.Timeout = "hour", time.Hour
	now, err := f.Store.Now(f.ctx)
	if err == nil {
		err = f.Store.Fleet().PutPolicy(f.ctx, policy)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	for _, uid := range uids {
		record := &store.Record{Model: model.Model{UID: uid}}
		decision, _, err := record.Put(model.Definition{UID: uid, PolicyName: policy.Name, Payload: `{"input_url":"http://feed"}`}, policy, false, now)
		if err == nil {
			f.Commit(now, record.Decide(decision, now))
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fleet) runDaemons() {
	f.t.Helper()
	d, err := dispatcher.New(f.Store, dispatcher.Config{})
	if err != nil {
		f.t.Fatal(err)
	}
	p, err := poller.New(f.Store, poller.Config{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.run(d.Run)
	f.run(p.Run)
}

func (f *fleet) worker(s *service, args ...string) *testkit.Process {
	f.t.Helper()
	return testkit.Refreshd(f.t, append([]string{"worker", "--redis", f.Server.URL, "--http", s.URL, "--concurrency", "3"}, args...)...)
}

// deadlines are when the running attempts would time out.
func (f *fleet) deadlines() map[string]int64 { return f.Scores(f.Store.Keys.Running) }

func (f *fleet) owners() int { return len(f.Scores(f.Store.Keys.Workers)) }

func TestWhatAKilledWorkerHadTakenIsFinishedByAnotherWithinSeconds(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.runDaemons()
	uids := []string{"a", "b", "c"}
	f.putLong(uids...)
	s := newService(t, len(uids))
	victim := f.worker(s)
	for range uids {
		testkit.Await(t, s.asked, "a request of a worker")
	}
	f.AwaitEvent(model.EventStarted, len(uids))
	attempts := f.attempts(uids)
	survivor := f.worker(s)
	testkit.Eventually(t, "the survivor is known", func() bool { return f.owners() == 2 })

	killed, err := f.Store.Now(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	victim.Kill()
	for uid, deadline := range f.deadlines() {
		if left := time.UnixMilli(deadline).Sub(killed); left < 59*time.Minute {
			t.Fatalf("%s has only %s left", uid, left)
		}
	}
	events := f.AwaitEvent(model.EventSuccess, len(uids))
	done, err := f.Store.Now(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("finished %s after the kill, with attempts of an hour", done.Sub(killed))
	want := map[string]int{"create": 3, "start": 3, "started": 3, "success": 3}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("journal:\n%s", diff)
	}
	if diff := cmp.Diff(attempts, f.succeeded()); diff != "" {
		t.Errorf("attempts that succeeded, with their numbers:\n%s", diff)
	}
	if code := survivor.Stop(); code != 0 {
		t.Errorf("the survivor ended with %d", code)
	}
	if left := len(f.List(f.Store.Keys.Input)) + f.owners(); left > 0 {
		t.Errorf("%d entries and workers are left", left)
	}
}

// attempts are the running attempts of models with their numbers.
func (f *fleet) attempts(uids []string) map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for _, uid := range uids {
		hash := f.Model(uid)
		all[uid] = hash["attempt_uid"] + " no " + hash["attempt_no"]
	}
	return all
}

// succeeded are the attempts that the journal says have succeeded, with their numbers.
func (f *fleet) succeeded() map[string]string {
	f.t.Helper()
	entries, err := f.Redis.XRange(f.ctx, f.Store.Keys.Journal, "-", "+").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		if entry.Values["event"] == string(model.EventSuccess) {
			all[fmt.Sprint(entry.Values["uid"])] += fmt.Sprintf("%v no %v", entry.Values["last_attempt_uid"], entry.Values["ended_attempt_no"])
		}
	}
	return all
}

func TestAWorkerThatIsToldToStopLeavesNothingToBeHandedBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.runDaemons()
	f.putLong("a", "b")
	s := newService(t, 2)
	worker := f.worker(s, "--grace", "0s")
	testkit.Await(t, s.asked, "a request of a worker")
	testkit.Await(t, s.asked, "a request of a worker")
	f.AwaitEvent(model.EventStarted, 2)
	if code := worker.Stop(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if f.owners() > 0 {
		t.Errorf("its name is left in %s", f.Store.Keys.Workers)
	}
	f.AwaitEvent(model.EventInterrupted, 2)
	f.worker(s)
	events := f.AwaitEvent(model.EventSuccess, 2)
	if events["interrupted"] != 2 || events["start"] != 4 || events["timeout"] != 0 {
		t.Errorf("journal: %v, want each attempt interrupted once and begun again", events)
	}
}

func TestAFrozenWorkerChangesNothingWhenItThaws(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.runDaemons()
	f.putLong("a")
	s := newService(t, 1)
	frozen := f.worker(s, "--worker-lease", "1s")
	testkit.Await(t, s.asked, "a request of a worker")
	f.AwaitEvent(model.EventStarted, 1)
	successor := f.worker(s, "--worker-lease", "1s")
	testkit.Eventually(t, "the successor is known", func() bool { return f.owners() == 2 })
	frozen.Freeze()
	f.AwaitEvent(model.EventSuccess, 1)
	frozen.Thaw()
	successor.Kill()
	testkit.Eventually(t, "the thawed one goes on under a new name", func() bool { return f.owners() > 0 })
	f.putLong("b")
	events := f.AwaitEvent(model.EventSuccess, 2)
	want := map[string]int{"create": 2, "start": 2, "started": 2, "success": 2}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("journal:\n%s", diff)
	}
}
