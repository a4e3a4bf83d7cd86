package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// silencesFlag is small for CI. Before a release: REFRESHD_LONG=1 go test ./test/faults -run TestWorkersThatAreSilent -timeout 0 -silences 200
var silencesFlag = flag.Int("silences", 2, "how many workers of each client become silent in each way")

// silentFleet is a queue with workers of one client, which become silent while they work.
type silentFleet struct {
	*fleet
	command func(url string) *exec.Cmd
	direct  bool // the workers find the server as the daemons do
	saved   int
	slowest time.Duration // end of a worker whose connections were mute
}

// hand is one of its workers.
type hand struct {
	*exec.Cmd
	way  *link         // to Redis; nil on a cluster
	left chan struct{} // closed when it has ended
	// when it had become silent
	names   []string // among the workers
	entries []entry
}

// silence is a way in which a worker becomes silent.
type silence struct {
	begin func(*hand)
	over  func(*silentFleet, *hand, time.Time) bool // since that instant, in which all began
	end   func(*hand)                               // nil: the worker is no more
}

// silences are a server and a cluster; the nodes of a cluster send a worker past the proxy.
var silences = []silence{
	{begin: func(h *hand) { tell(h, syscall.SIGKILL); <-h.left }, over: (*silentFleet).forgot},
	{begin: func(h *hand) { tell(h, syscall.SIGSTOP) }, over: (*silentFleet).forgot, end: func(h *hand) { tell(h, syscall.SIGCONT) }},
	{begin: func(h *hand) { h.way.darken() }, over: (*silentFleet).hears, end: func(*hand) {}},
	{begin: func(h *hand) { h.way.darken(); tell(h, syscall.SIGTERM) }, over: (*silentFleet).ended},
}

// TestWorkersThatAreSilentCostNoAttempt counts for each client: workers are killed, frozen, on connections that carry nothing any more, and end on
// such; every model is refreshed once, and by its first attempt unless a worker that ends hands that back.
func TestWorkersThatAreSilentCostNoAttempt(t *testing.T) {
	long.Only(t)
	for _, language := range []string{"python", "node", "php", "bash", "exec", "python on a cluster", "node on a cluster", "php on a cluster", "bash on a cluster"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			language, clustered := strings.CutSuffix(language, " on a cluster")
			server, ways := testkit.Redis, silences
			if clustered {
				server, ways = func(t testing.TB, _ ...string) *testkit.Server { return testkit.Cluster(t) }, silences[:2]
			}
			f := &silentFleet{fleet: newFleetFor(t, server(t), check.Limit*time.Duration(1+*silencesFlag/10))}
			f.command = f.commandIn(language)
			d := check.Got(dispatcher.New(dispatcher.RoomsOf(f.Store), dispatcher.Config{Tick: 250 * time.Millisecond, WorkerLease: 3 * time.Second}))(t)
			p := check.Got(poller.New(poller.RoomsOf(f.Store), poller.Config{}))(t)
			f.run(d.Run)
			f.run(p.Run)
			each := min(*silencesFlag, 3)
			workers := f.hire(each * len(ways))
			for done := 0; done < *silencesFlag; done += each {
				workers = f.silence(workers, ways)
			}
			f.audit(workers)
		})
	}
}

// commandIn is the worker of a client, as `refreshd conformance` starts it.
func (f *silentFleet) commandIn(language string) func(url string) *exec.Cmd {
	environ := append(os.Environ(), "REFRESHD_QUEUE="+f.Store.Keys.Queue, "REFRESHD_CONCURRENCY=4")
	words := []string{testkit.Binary(f.t), "worker", "--exec", "sleep", "--", "1.5"}
	clients := check.Got(filepath.Abs("../../clients"))(f.t)
	switch language {
	case "bash":
		testkit.RequireProgram(f.t, "redis-cli", "redis-tools")
		testkit.RequireProgram(f.t, "jq", "jq")
		words = []string{clients + "/bash/worker.sh", clients + "/bash/conformance.sh"}
	case "python", "node", "php":
		program, more := testkit.Interpreter(f.t, language)
		extension := map[string]string{"python": "py", "node": "js", "php": "php"}[language]
		words, environ = []string{program, clients + "/" + language + "/examples/conformance." + extension}, append(more, environ[len(environ)-2:]...)
	}
	return func(url string) *exec.Cmd {
		command := exec.Command(words[0], words[1:]...)
		command.Env, command.SysProcAttr = append(slices.Clone(environ), "REDIS_URL="+url), testkit.DieWithParent()
		command.SysProcAttr.Setpgid = true
		return command
	}
}

// hire starts workers, each on a way of its own.
func (f *silentFleet) hire(n int) (workers []*hand) {
	for range n {
		h := &hand{left: make(chan struct{})}
		url := f.Server.URL
		if !f.Server.IsCluster() {
			h.way = newLink(f.t, f.Server.Addr)
			if !f.direct {
				url = h.way.URL()
			}
		}
		h.Cmd = f.command(url)
		must(f.t, h.Start())
		f.t.Cleanup(func() {
			tell(h, syscall.SIGKILL)
			<-h.left
		})
		go func() { _ = h.Wait(); close(h.left) }() // its state says how it ended
		workers = append(workers, h)
	}
	return workers
}

// lives says whether a worker has not ended yet.
func (h *hand) lives() bool { return h.Process.Signal(syscall.Signal(0)) == nil }

// tell signals a worker with all that it has started. The number of an ended one may belong to another program.
func tell(h *hand, number syscall.Signal) {
	if h.lives() {
		_ = syscall.Kill(-h.Process.Pid, number)
	}
}

// owned are the entries that a worker has taken, and its names among the workers.
func (f *silentFleet) owned(h *hand) (entries []entry, names []string) {
	pid := fmt.Sprintf(":%d-", h.Process.Pid)
	for name := range f.Scores(f.Store.Keys.Workers) {
		if !strings.Contains(name, pid) {
			continue
		}
		names = append(names, name)
		for _, raw := range f.List(f.Store.Keys.Taken(name)) {
			var e entry
			must(f.t, json.Unmarshal([]byte(raw), &e))
			entries = append(entries, e)
		}
	}
	return entries, names
}

func (f *silentFleet) awaitWork(workers []*hand) {
	f.t.Helper()
	f.await("work in the hands of each", workers, func(h *hand) bool {
		stopIf(f.t, !h.lives(), "want a worker that goes on, got %v", h.ProcessState)
		entries, _ := f.owned(h)
		return len(entries) > 0
	})
}

// forgot says whether others have the attempts of a worker.
func (f *silentFleet) forgot(h *hand, _ time.Time) bool {
	left := f.Scores(f.Store.Keys.Workers)
	return !slices.ContainsFunc(h.names, func(name string) bool { _, known := left[name]; return known })
}

// hears says whether Redis has heard of a worker since an instant.
func (f *silentFleet) hears(h *hand, since time.Time) bool {
	stopIf(f.t, !h.lives(), "want a worker that goes on, got %v", h.ProcessState)
	_, names := f.owned(h)
	beats := f.Scores(f.Store.Keys.Workers)
	return slices.ContainsFunc(names, func(name string) bool { return beats[name] > since.UnixMilli() })
}

// ended says whether a worker has ended by itself. It may say that it could not push all it had.
func (f *silentFleet) ended(h *hand, since time.Time) bool {
	select {
	case <-h.left:
		failIf(f.t, h.ProcessState.ExitCode() != 0 && h.ProcessState.ExitCode() != 1, "want a worker that ends by itself, got %v", h.ProcessState)
		f.slowest = max(f.slowest, time.Since(since))
		return true
	default:
		return false
	}
}

// await waits until something holds of each worker, under load.
func (f *silentFleet) await(what string, workers []*hand, holds func(*hand) bool) {
	f.t.Helper()
	for _, worker := range workers {
		for !holds(worker) {
			stopIf(f.t, f.ctx.Err() != nil, "%s: not within the time", what)
			if f.Redis.LLen(f.ctx, f.Store.Keys.Input).Val() == 0 {
				f.load(20)
			}
			rest(f.ctx, 20*time.Millisecond)
		}
	}
}

// load saves models that are due now and have time until the day after.
func (f *silentFleet) load(n int) {
	f.t.Helper()
	p := policy.Policy{Timeout: 24 * time.Hour, OnExhausted: policy.GiveUp}
	now := check.Got(f.Store.Now(f.ctx))(f.t)
	var transitions []*store.Transition
	for range n {
		record := &store.Record{Model: model.Model{UID: fmt.Sprint("m", f.saved)}}
		decision, _, err := record.Put(model.Definition{UID: record.UID, PolicyName: p.ContentName(), Payload: `{"do":"succeed","after_ms":1500}`}, p, false, now)
		must(f.t, err)
		transitions = append(transitions, record.Decide(decision, now))
		f.saved++
	}
	f.Commit(now, transitions...)
}

// silence lets workers become silent while they work, each in one of the ways, until it is over and their attempts have succeeded. It returns those
// that go on, and new ones.
func (f *silentFleet) silence(workers []*hand, ways []silence) (next []*hand) {
	f.t.Helper()
	f.awaitWork(workers)
	way := map[*hand]silence{}
	for i, worker := range workers {
		way[worker] = ways[i%len(ways)]
		way[worker].begin(worker)
	}
	for _, worker := range workers {
		worker.entries, worker.names = f.owned(worker)
	}
	since := check.Got(f.Store.Now(f.ctx))(f.t)
	for _, worker := range workers {
		if way[worker].end == nil {
			next = append(next, f.hire(1)...)
		} else {
			next = append(next, worker)
		}
	}
	f.await("the end of a silence", workers, func(worker *hand) bool { return way[worker].over(f, worker, since) })
	for _, worker := range workers {
		if way[worker].end != nil {
			way[worker].end(worker)
		}
	}
	f.await("the end of what the silent had in hand", workers, func(worker *hand) bool {
		return !slices.ContainsFunc(worker.entries, func(e entry) bool {
			m := f.Model(e.UID)
			return m["attempt_uid"] == e.AttemptUID || m["deaths"] != "" // no attempt is to lose two workers
		})
	})
	return next
}

// audit lets all workers end and counts.
func (f *silentFleet) audit(workers []*hand) {
	f.t.Helper()
	f.awaitWork(workers)
	events := f.AwaitEvent(model.EventSuccess, f.saved)
	for _, worker := range workers {
		tell(worker, syscall.SIGTERM)
	}
	for _, worker := range workers {
		<-worker.left
		failIf(f.t, !worker.ProcessState.Success(), "want a worker that ends well, got %v", worker.ProcessState)
	}
	check.Eventually(f.t, "all names of workers forgotten", func() bool { return len(f.Scores(f.Store.Keys.Workers)) == 0 })
	f.stop()
	stats := f.Stats()
	failIf(f.t, stats["success"] != f.saved, "want %d models refreshed, got %v", f.saved, stats)
	failIf(f.t, stats["start"] != f.saved+stats["interrupted"], "want the first attempt of each unless it was handed back, got %v", stats)
	failIf(f.t, stats["failure"]+stats["timeout"]+stats["withdrawn"]+stats["malformed"] > 0, "want no other end of an attempt, got %v", stats)
	failIf(f.t, events["success"] > f.saved, "want no success twice, got %v", events)
	for key := range f.Server.Dump(f.t) {
		failIf(f.t, strings.HasPrefix(key, f.Store.Keys.Taken("")), "want nothing left behind, got %q", key)
	}
	f.t.Logf("%d models, %d workers of each silence; the slowest end took %s: %v", f.saved, *silencesFlag, f.slowest.Round(10*time.Millisecond), stats)
}
