package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/poller"
)

// silencesFlag is small for CI. Before a release: REFRESHD_LONG=1 go test ./test/faults -run TestWorkersThatAreKilledOrFrozen -timeout 0 -silences 200
var silencesFlag = flag.Int("silences", 2, "how many workers of each client are killed, and how many are frozen")

// silentFleet is a queue with workers of one client, which are killed and frozen while they work.
type silentFleet struct {
	*fleet
	command func() *exec.Cmd
	saved   int
}

// TestWorkersThatAreKilledOrFrozenCostNoAttempt counts for each client: every model is refreshed once, by its first attempt.
func TestWorkersThatAreKilledOrFrozenCostNoAttempt(t *testing.T) {
	long.Only(t)
	for _, language := range []string{"python", "node", "php", "bash", "exec", "python on a cluster", "node on a cluster", "php on a cluster", "bash on a cluster"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			language, clustered := strings.CutSuffix(language, " on a cluster")
			server := map[bool]func(testing.TB) *testkit.Server{true: testkit.Cluster, false: func(t testing.TB) *testkit.Server { return testkit.Redis(t) }}[clustered](t)
			f := &silentFleet{fleet: newFleetFor(t, server, testkit.Limit*time.Duration(1+*silencesFlag/20))}
			f.command = f.commandIn(language)
			d := testkit.Got(dispatcher.New(f.Store, dispatcher.Config{Tick: 250 * time.Millisecond, WorkerLease: 3 * time.Second}))(t)
			p := testkit.Got(poller.New(f.Store, poller.Config{}))(t)
			f.run(d.Run)
			f.run(p.Run)
			half := min(*silencesFlag, 5)
			workers := f.hire(2 * half)
			for done := 0; done < *silencesFlag; done += half {
				workers = f.silence(workers[:half], workers[half:])
			}
			f.audit(workers)
		})
	}
}

// commandIn is the worker of a client, as `refreshd conformance` starts it.
func (f *silentFleet) commandIn(language string) func() *exec.Cmd {
	environ := append(os.Environ(), "REDIS_URL="+f.Server.URL, "REFRESHD_QUEUE="+f.Store.Keys.Queue, "REFRESHD_CONCURRENCY=4")
	words := []string{testkit.Binary(f.t), "worker", "--exec", "sleep", "--", "0.5"}
	clients := testkit.Got(filepath.Abs("../../clients"))(f.t)
	switch language {
	case "bash":
		testkit.RequireProgram(f.t, "redis-cli", "redis-tools")
		testkit.RequireProgram(f.t, "jq", "jq")
		words = []string{clients + "/bash/worker.sh", clients + "/bash/conformance.sh"}
	case "python", "node", "php":
		program, more := testkit.Interpreter(f.t, language)
		extension := map[string]string{"python": "py", "node": "js", "php": "php"}[language]
		words, environ = []string{program, clients + "/" + language + "/examples/conformance." + extension}, append(more, environ[len(environ)-3:]...)
	}
	return func() *exec.Cmd {
		command := exec.Command(words[0], words[1:]...)
		command.Env, command.SysProcAttr = environ, &syscall.SysProcAttr{Setpgid: true}
		return command
	}
}

func (f *silentFleet) hire(n int) []*exec.Cmd {
	workers := make([]*exec.Cmd, n)
	for i := range workers {
		workers[i] = f.command()
		must(f.t, workers[i].Start())
		f.t.Cleanup(func() { tell(workers[i], syscall.SIGKILL) })
	}
	return workers
}

// tell signals a worker with all that it has started.
func tell(worker *exec.Cmd, number syscall.Signal) { _ = syscall.Kill(-worker.Process.Pid, number) }

// owned are the keys of what a worker has taken, and its names among the workers.
func (f *silentFleet) owned(worker *exec.Cmd) (lists, names []string) {
	pid := fmt.Sprintf(":%d-", worker.Process.Pid)
	for name := range f.Scores(f.Store.Keys.Workers) {
		if strings.Contains(name, pid) {
			names = append(names, name)
			if f.Redis.Exists(context.Background(), f.Store.Keys.Taken(name)).Val() == 1 {
				lists = append(lists, f.Store.Keys.Taken(name))
			}
		}
	}
	return lists, names
}

// await waits until something holds of each worker, under load.
func (f *silentFleet) await(what string, workers []*exec.Cmd, holds func(*exec.Cmd) bool) {
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
	now := testkit.Got(f.Store.Now(f.ctx))(f.t)
	var transitions []*store.Transition
	for range n {
		record := &store.Record{Model: model.Model{UID: fmt.Sprint("m", f.saved)}}
		decision, _, err := record.Put(model.Definition{UID: record.UID, PolicyName: p.ContentName(), Payload: `{"do":"succeed","after_ms":500}`}, p, false, now)
		must(f.t, err)
		transitions = append(transitions, record.Decide(decision, now))
		f.saved++
	}
	f.Commit(now, transitions...)
}

// silence kills some workers and freezes others while they work, until others have their attempts. Then the frozen ones go on beside the new ones.
func (f *silentFleet) silence(killed, frozen []*exec.Cmd) []*exec.Cmd {
	f.t.Helper()
	all := append(append([]*exec.Cmd{}, killed...), frozen...)
	names := map[*exec.Cmd][]string{}
	f.await("work in the hands of each", all, func(worker *exec.Cmd) bool {
		lists, known := f.owned(worker)
		names[worker] = known
		return len(lists) > 0
	})
	for _, worker := range killed {
		tell(worker, syscall.SIGKILL)
		_ = worker.Wait()
	}
	for _, worker := range frozen {
		tell(worker, syscall.SIGSTOP)
	}
	hired := f.hire(len(killed))
	f.await("what the silent had taken requeued", all, func(worker *exec.Cmd) bool {
		left := f.Scores(f.Store.Keys.Workers)
		for _, name := range names[worker] {
			if _, known := left[name]; known {
				return false
			}
		}
		return true
	})
	for _, worker := range frozen {
		tell(worker, syscall.SIGCONT)
	}
	return append(append([]*exec.Cmd{}, frozen...), hired...)
}

// audit lets all workers end and counts.
func (f *silentFleet) audit(workers []*exec.Cmd) {
	f.t.Helper()
	f.await("work in the hands of each", workers, func(worker *exec.Cmd) bool { lists, _ := f.owned(worker); return len(lists) > 0 })
	events := f.AwaitEvent(model.EventSuccess, f.saved)
	for _, worker := range workers {
		tell(worker, syscall.SIGTERM)
	}
	for _, worker := range workers {
		err := worker.Wait()
		failIf(f.t, err != nil, "want a worker that ends well, got %v", err)
	}
	testkit.Eventually(f.t, "all names of workers forgotten", func() bool { return len(f.Scores(f.Store.Keys.Workers)) == 0 })
	f.stop()
	stats := f.Stats()
	failIf(f.t, stats["success"] != f.saved || stats["start"] != f.saved, "want %d models refreshed by one attempt each, got %v", f.saved, stats)
	failIf(f.t, stats["failure"]+stats["timeout"]+stats["interrupted"]+stats["withdrawn"] > 0, "want no other end of an attempt, got %v", stats)
	failIf(f.t, events["success"] > f.saved, "want no success twice, got %v", events)
	for key := range f.Server.Dump(f.t) {
		failIf(f.t, strings.HasPrefix(key, f.Store.Keys.Taken("")), "want nothing left behind, got %q", key)
	}
	f.t.Logf("%d models, %d workers killed and as many frozen: %v", f.saved, *silencesFlag, stats)
}
