package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/internal/ui/health"
	"github.com/refreshd/refreshd/model"
)

// freezeHolding freezes a poller at a moment when it has claimed messages, and returns how many.
func (f *fleet) freezeHolding(p *testkit.Process, owner string) int64 {
	f.t.Helper()
	for f.ctx.Err() == nil {
		freeze(p)
		held, err := f.Redis.LLen(f.ctx, f.Store.Keys.Claimed(owner)).Result()
		must(f.t, err)
		if held > 0 {
			return held
		}
		thaw(p)
		rest(f.ctx, time.Millisecond) // in which it goes on
	}
	f.t.Fatalf("%s never held a message", owner)
	return 0
}

func TestKillingPollersThatHoldABatchAndDispatchersLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.put(models)
	f.start("dispatcher")
	survivor := f.poller("survivor")
	doomed := f.start("dispatcher")
	f.run(f.work)
	held := int64(0)
	victims := long.Or(2, 4)
	for i := range victims {
		owner := fmt.Sprint("victim-", i)
		victim := f.poller(owner)
		f.AwaitEvent(model.EventSuccess, (i+1)*models/10)
		freeze(survivor) // or it may leave nothing to hold
		held += f.freezeHolding(victim, owner)
		victim.Kill()
		thaw(survivor)
		doomed.Kill()
		doomed = f.start("dispatcher")
	}
	f.check()
	t.Logf("%d messages were held by %d pollers when they were killed", held, victims)
}

// timed stops a process and returns how long that took; its exit code must be 0.
func (f *fleet) timed(p *testkit.Process) time.Duration {
	f.t.Helper()
	p.AwaitOutput(f.t, `"message":"started"`)
	began := time.Now()
	code := p.Stop()
	failIf(f.t, code != 0, "want exit code 0, got %d", code)
	return time.Since(began)
}

func TestStoppingDispatchersAndPollersUnderLoadLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.put(models)
	f.run(f.work)
	longest := time.Duration(0)
	stops := long.Or(2, 8)
	for i := range stops {
		owner := fmt.Sprint("poller-", i)
		dispatcher, poller := f.start("dispatcher"), f.poller(owner)
		f.AwaitEvent(model.EventSuccess, (i+1)*models/(2*stops))
		longest = max(longest, f.timed(dispatcher), f.timed(poller))
		held := f.List(f.Store.Keys.Claimed(owner))
		failIf(t, len(held) > 0, "stop %d: want nothing left claimed, got %d messages", i, len(held))
		_, known := f.Scores(f.Store.Keys.Pollers)[owner]
		failIf(t, known, "stop %d: want the poller to have resigned", i)
	}
	f.start("dispatcher")
	f.poller("last")
	again := f.check()
	failIf(t, again != 0, "want no message handled twice, got %d", again)
	t.Logf("%d dispatchers and pollers stopped under load, the slowest within %s", 2*stops, longest)
}

// up starts all daemons in one process with a worker for a service.
func (f *fleet) up(s *service, args ...string) *testkit.Process {
	f.t.Helper()
	return f.start("up", append([]string{"-o", "json", "--http", s.URL, "--concurrency", "50"}, args...)...)
}

func TestUpStoppedUnderLoadWaitsForTheGraceAndHandsBackTheRest(t *testing.T) {
	t.Parallel()
	const unanswered, all = 20, 800
	f := newFleet(t)
	f.put(all)
	s := newService(t, unanswered)
	s.asked = make(chan struct{}, 2*all) // nobody counts them here
	up := f.up(s, "--grace", "1s")
	f.AwaitEvent(model.EventSuccess, all/4)
	took := f.timed(up)
	t.Logf("stopped within %s with a grace of 1s and %d requests without an answer", took, unanswered)
	failIf(t, took < time.Second, "want it to wait for the grace of 1s, got %s", took)
	f.expectNothingInHand()
	if stats := f.Stats(); stats["interrupted"] < unanswered || stats["stale"]+stats["duplicate"] > 0 {
		t.Errorf("want the %d without an answer handed back, got %v", unanswered, stats)
	}
	f.up(s)
	f.AwaitEvent(model.EventSuccess, all)
	if stats := f.Stats(); stats["success"] != all || stats["stale"]+stats["duplicate"]+stats["timeout"]+stats["retry"] > 0 {
		t.Errorf("want each model refreshed once, got %v", stats)
	}
}

// expectNothingInHand checks that no process holds anything: running attempts are in the input list.
func (f *fleet) expectNothingInHand() {
	f.t.Helper()
	owners := f.owners() + len(f.Scores(f.Store.Keys.Pollers))
	failIf(f.t, owners > 0, "want no worker and no poller known, got %d", owners)
	output := f.List(f.Store.Keys.Output)
	failIf(f.t, len(output) > 0, "want every message applied, got %d left", len(output))
	queued := strings.Join(f.List(f.Store.Keys.Input), "\n")
	for uid := range f.Scores(f.Store.Keys.Running) {
		failIf(f.t, !strings.Contains(queued, f.Model(uid)["attempt_uid"]), "%s: want it queued or idle, got an attempt that nobody works on", uid)
	}
}

func TestASecondSignalEndsTheGraceAndHandsBackWhatIsInHand(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t)
	f.putLong("a", "b", "c")
	s := newService(t, 3)
	address := testkit.FreeAddress(t)
	up := f.up(s, "--grace", "1h", "--health", address)
	s.await(3)
	f.AwaitEvent(model.EventStarted, 3)
	up.Ask()
	began := time.Now()
	check.Eventually(t, "up is stopping", func() bool { // signals that come too close together are one
		_, report := askHealth(t, address, "/readyz")
		return report.Why == "stopping"
	})
	code := up.Stop()
	failIf(t, code != 0, "want exit code 0, got %d", code)
	t.Logf("ended %s after the first signal, with a grace of 1h", time.Since(began))
	f.expectNothingInHand()
	stats := f.Stats()
	failIf(t, stats["interrupted"] != 3, "want all three handed back, got %v", stats)
}

// probedFleet is daemons that answer about their health, by their names.
type probedFleet struct {
	*fleet
	addresses map[string]string
	processes map[string]*testkit.Process
}

func newProbedFleet(t *testing.T) *probedFleet {
	t.Helper()
	p, dir := &probedFleet{newFleet(t, "--databases", "2"), map[string]string{}, map[string]*testkit.Process{}}, t.TempDir()
	for _, command := range [][]string{{"dispatcher"}, {"poller"}, {"worker", "--fetch", dir}, {"up", "-o", "json", "--fetch", dir}} {
		address := testkit.FreeAddress(t)
		p.addresses[command[0]] = address
		p.processes[command[0]] = p.start(command[0], append(command[1:], "--health", address)...)
	}
	return p
}

// askHealth returns 0 for a process that does not answer.
func askHealth(t testing.TB, address, path string) (int, health.Report) {
	t.Helper()
	client := http.Client{Timeout: check.Limit}
	reply, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, health.Report{}
	}
	defer reply.Body.Close()
	var report health.Report
	if err := json.NewDecoder(reply.Body).Decode(&report); err != nil {
		t.Error(err)
	}
	return reply.StatusCode, report
}

// untilReady waits until all daemons answer /readyz with a status.
func (p *probedFleet) untilReady(status int) {
	p.t.Helper()
	check.Eventually(p.t, "readyz "+http.StatusText(status), func() bool {
		same := true
		for name := range p.addresses {
			got, _ := askHealth(p.t, p.addresses[name], "/readyz")
			same = same && got == status
		}
		return same
	})
}

// suffer lets Redis fail, and checks that no daemon is ready then, and that none asks for a restart; that it is ready again when Redis is well; and that
// all this costs few lines and little of the processor.
func (p *probedFleet) suffer(fail, mend func()) {
	p.t.Helper()
	p.untilReady(http.StatusOK)
	fail()
	p.untilReady(http.StatusServiceUnavailable)
	for name, address := range p.addresses {
		status, report := askHealth(p.t, address, "/livez")
		failIf(p.t, status != http.StatusOK, "%s: want it live, got %d %+v", name, status, report)
	}
	mend()
	p.untilReady(http.StatusOK)
	stopAll(p.t, slices.Collect(maps.Values(p.processes))...)
	for name, process := range p.processes {
		output, busy := process.Output(), process.Busy()
		if lines := strings.Count(output, "\n"); lines > 60 || busy > 3*time.Second || !strings.Contains(output, "works again") {
			p.t.Errorf("%s: want at most 60 lines, 3s of the processor and the end of the outage told, got %d lines and %s\n%s", name, lines, busy, output)
		}
	}
}

func TestDaemonsOutliveAnOutageOfRedisNotReadyButLiveAndWithoutSpinning(t *testing.T) {
	long.Only(t)
	t.Parallel()
	p := newProbedFleet(t)
	p.suffer(func() { p.Server.Kill(t) }, func() { p.Server.Restart(t) })
}

// TestDaemonsAreNotReadyWhileRedisHangsAndLiveBecauseARestartWouldNotHelp stops the server at any point: connections are accepted and nothing
// answers.
func TestDaemonsAreNotReadyWhileRedisHangsAndLiveBecauseARestartWouldNotHelp(t *testing.T) {
	long.Only(t)
	t.Parallel()
	p := newProbedFleet(t)
	pid := numberIn(t, p.Redis.Info(p.ctx, "server").Val(), "process_id")
	resume := sync.OnceFunc(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	t.Cleanup(resume)
	p.suffer(func() { _ = syscall.Kill(pid, syscall.SIGSTOP) }, resume)
}

// firstRelease is the commit of 0.9.0. Upgrades are promised from there. A later tag takes its place.
const firstRelease = "7c9dee960d6086ed7e889ad00e326a80b94e0ca8"

// TestTwoVersionsRunSideBySideDuringAnUpgrade begins with the daemons of the release before, lets daemons of this one join them, kills some of
// both, and ends the old ones, all under load. An old one that is killed stays away.
func TestTwoVersionsRunSideBySideDuringAnUpgrade(t *testing.T) {
	long.Only(t)
	old, commit := oldBinary(t)
	d, _ := on(t)
	d.elsewhere = true
	service := d.listener()
	commands := [][]string{
		{"dispatcher"}, {"dispatcher"}, {"poller", "--lease", "1s"}, {"poller", "--lease", "1s"},
		{"worker", "--http", service.URL, "--worker-lease", "1s", "--concurrency", "20"},
	}
	former := d.startProcesses(old, commands...)
	d.save()
	d.refreshAll()
	current := d.startProcesses(testkit.Binary(t), commands...)
	d.until("a raised layout", func() (bool, error) {
		layout, err := d.clients.Read.HGet(d.ctx, d.store.Keys.Settings, "layout").Int()
		return layout == store.Layout, err
	})
	for i := range commands[:4] { // the other one of the pair goes on
		if i%2 == 0 {
			former.processes[i].Kill()
		} else {
			current.kill(i)
		}
		d.progress(100)
	}
	d.examine()
	told, err := exec.Command(old, "doctor", "--redis", d.address).CombinedOutput()
	failIf(t, err != nil, "the doctor of the release before: %v\n%s", err, told)
	stopAll(t, former.processes[1], former.processes[3], former.processes[4])
	d.settle()
	stopAll(t, current.processes...)
	d.audit()
	t.Logf("beside %s", commit)
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// oldBinary builds the program of the last tag before this commit, or of 0.9.0.
func oldBinary(t *testing.T) (program, commit string) {
	t.Helper()
	commit, err := git("describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^")
	if err != nil {
		commit = firstRelease
	}
	return builtAt(t, commit), commit
}

// builtAt builds the program of a commit.
func builtAt(t *testing.T, commit string) (program string) {
	t.Helper()
	if _, err := git("cat-file", "-e", commit+"^{commit}"); err != nil {
		if shallow, err := git("rev-parse", "--is-shallow-repository"); err == nil && shallow == "false" && os.Getenv("CI") != "" {
			t.Fatalf("want the commit %s in the whole history of this checkout, got none", commit)
		}
		t.Skipf("this checkout has no history with the commit %s: git fetch --unshallow", commit)
	}
	root, err := git("rev-parse", "--show-toplevel") // git archive writes the files below the directory in which it runs
	must(t, err)
	source, binary := t.TempDir(), filepath.Join(t.TempDir(), "refreshd")
	build := exec.Command("sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2" && cd "$2" && go build -buildvcs=false -trimpath -o "$3" ./cmd/refreshd`, root, commit, source, binary)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", commit, err, out)
	}
	return binary
}
