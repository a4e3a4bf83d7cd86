package faults

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/faces/health"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
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
	ctx, stop := context.WithTimeout(context.Background(), testkit.Limit)
	t.Cleanup(stop)
	queue := fixture.Live(t, testkit.Redis(t, "--databases", "2"))
	p := &probedFleet{&fleet{Queue: queue, t: t, ctx: ctx, stop: stop}, map[string]string{}, map[string]*testkit.Process{}}
	dir := t.TempDir()
	p.start("dispatcher")
	p.start("poller")
	p.start("worker", "--fetch", dir)
	p.start("up", "--fetch", dir)
	return p
}

func (p *probedFleet) start(command string, args ...string) {
	p.t.Helper()
	address := testkit.FreeAddress(p.t)
	p.addresses[command] = address
	p.processes[command] = testkit.Refreshd(p.t, append([]string{command, "--redis", p.Server.URL, "--health", address}, args...)...)
}

func (p *probedFleet) probe(name, path string) (int, health.Report) {
	p.t.Helper()
	return askHealth(p.t, p.addresses[name], path)
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
			got, _ := p.probe(name, "/readyz")
			same = same && got == status
		}
		return same
	})
}

// expectLive checks that a restart is not asked for.
func (p *probedFleet) expectLive() {
	p.t.Helper()
	for name := range p.addresses {
		if status, report := p.probe(name, "/livez"); status != http.StatusOK {
			p.t.Errorf("%s: want it live, got %d %+v", name, status, report)
		}
	}
}

func TestDaemonsOutliveAnOutageOfRedisNotReadyButLiveAndWithoutSpinning(t *testing.T) {
	long.Only(t)
	t.Parallel()
	p := newProbedFleet(t)
	p.untilReady(http.StatusOK)
	p.Server.Kill(t)
	began := time.Now()
	p.untilReady(http.StatusServiceUnavailable)
	p.expectLive()
	noticed := time.Since(began)
	p.Server.Restart(t)
	began = time.Now()
	p.untilReady(http.StatusOK)
	t.Logf("not ready %s after the kill, ready again %s after the restart", noticed, time.Since(began))
	p.stopAll()
}

// stopAll stops all daemons and checks that the outage cost few lines and little of the processor.
func (p *probedFleet) stopAll() {
	p.t.Helper()
	var stopping sync.WaitGroup
	for _, process := range p.processes {
		stopping.Go(func() { process.Stop() })
	}
	stopping.Wait()
	for name, process := range p.processes {
		output, busy := process.Output(), process.Busy()
		lines := strings.Count(output, "\n")
		p.t.Logf("%s: %d lines, %s of the processor, exit code %d", name, lines, busy, process.Wait())
		if most := 60; lines > most || process.Wait() != 0 || busy > 3*time.Second {
			p.t.Errorf("%s: want at most %d lines, 3s of the processor and exit code 0\n%s", name, most, output)
		}
		if !strings.Contains(output, "works again") {
			p.t.Errorf("%s: want the end of the outage told", name)
		}
	}
}

// hang stops the server where it stands: connections are accepted and nothing answers. The returned function lets it go on.
func (p *probedFleet) hang() (resume func()) {
	p.t.Helper()
	info, err := p.Redis.Info(p.ctx, "server").Result()
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "process_id:")
	pid, err := strconv.Atoi(strings.Fields(rest)[0])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	resume = sync.OnceFunc(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	p.t.Cleanup(resume)
	return resume
}

func TestDaemonsAreNotReadyWhileRedisHangsAndLiveBecauseARestartWouldNotHelp(t *testing.T) {
	long.Only(t)
	t.Parallel()
	p := newProbedFleet(t)
	p.untilReady(http.StatusOK)
	resume := p.hang()
	p.untilReady(http.StatusServiceUnavailable)
	p.expectLive()
	resume()
	p.untilReady(http.StatusOK)
	p.stopAll()
}
