package faults

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// service is what workers post to. It lets the first requests wait for ever and answers all later ones.
type service struct {
	*httptest.Server
	t     testing.TB
	asked chan struct{} // one token for each request
}

func newService(t *testing.T, unanswered int) *service {
	t.Helper()
	left := make(chan struct{}, unanswered)
	for range unanswered {
		left <- struct{}{}
	}
	s := &service{t: t, asked: make(chan struct{}, 100)}
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

// await waits until workers have asked so often.
func (s *service) await(times int) {
	s.t.Helper()
	for range times {
		testkit.Await(s.t, s.asked, "a request of a worker")
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
	testkit.Eventually(t, "the survivor is known", func() bool { return f.owners() == 2 })
	killed := time.Now()
	victim.Kill()
	events := f.AwaitEvent(model.EventSuccess, len(uids))
	t.Logf("finished %s after the kill, with attempts of an hour", time.Since(killed))
	want := map[string]int{"create": 3, "start": 3, "started": 3, "success": 3}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("journal:\n%s", diff)
	}
	entries, err := f.Redis.XRange(f.ctx, f.Store.Keys.Journal, "-", "+").Result()
	must(t, err)
	succeeded := map[string]string{}
	for _, entry := range entries {
		if entry.Values["event"] == string(model.EventSuccess) {
			succeeded[fmt.Sprint(entry.Values["uid"])] += fmt.Sprintf("%v no %v", entry.Values["last_attempt_uid"], entry.Values["ended_attempt_no"])
		}
	}
	if diff := cmp.Diff(attempts, succeeded); diff != "" {
		t.Errorf("attempts that succeeded, with their numbers:\n%s", diff)
	}
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
	testkit.Eventually(t, "the successor is known", func() bool { return f.owners() == 2 })
	frozen.Freeze()
	f.AwaitEvent(model.EventSuccess, 1)
	frozen.Thaw()
	successor.Kill()
	testkit.Eventually(t, "the thawed one goes on under a new name", func() bool { return f.owners() > 0 })
	f.putLong("b")
	events := f.AwaitEvent(model.EventSuccess, 2)
	want := map[string]int{"create": 2, "start": 2, "started": 2, "success": 2}
	diff := cmp.Diff(want, events)
	failIf(t, diff != "", "journal:\n%s", diff)
}
