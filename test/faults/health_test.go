package faults

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/faces/health"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// probedFleet is daemons that answer about their health, by their names.
type probedFleet struct {
	*fleet
	addresses map[string]string
	processes map[string]*testkit.Process
}

func newProbedFleet(t *testing.T) *probedFleet {
	t.Helper()
	p, dir := &probedFleet{newFleet(t, "--databases", "2"), map[string]string{}, map[string]*testkit.Process{}}, t.TempDir()
	for _, command := range [][]string{{"dispatcher"}, {"poller"}, {"worker", "--fetch", dir}, {"up", "--fetch", dir}} {
		address := testkit.FreeAddress(t)
		p.addresses[command[0]] = address
		p.processes[command[0]] = p.start(command[0], append(command[1:], "--health", address)...)
	}
	return p
}

// askHealth returns 0 for a process that does not answer.
func askHealth(t testing.TB, address, path string) (int, health.Report) {
	t.Helper()
	client := http.Client{Timeout: testkit.Limit}
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
	testkit.Eventually(p.t, "readyz "+http.StatusText(status), func() bool {
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

// TestDaemonsAreNotReadyWhileRedisHangsAndLiveBecauseARestartWouldNotHelp stops the server where it stands: connections are accepted and nothing
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
