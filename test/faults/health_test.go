package faults

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/health"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// ward is daemons that answer about their health, by their names.
type ward struct {
	*fleet
	addresses map[string]string
	processes map[string]*testkit.Process
}

func newWard(t *testing.T) *ward {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	t.Cleanup(stop)
	rig := fixture.Live(t, testkit.Redis(t, "--databases", "2"))
	w := &ward{&fleet{Queue: rig, t: t, ctx: ctx, stop: stop}, map[string]string{}, map[string]*testkit.Process{}}
	dir := t.TempDir()
	w.admit("dispatcher")
	w.admit("poller")
	w.admit("worker", "--fetch", dir)
	w.admit("up", "--fetch", dir)
	return w
}

func (w *ward) admit(command string, args ...string) {
	w.t.Helper()
	address := freeAddress(w.t)
	w.addresses[command] = address
	w.processes[command] = testkit.Refreshd(w.t, append([]string{command, "--redis", w.Server.URL, "--health", address}, args...)...)
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func (w *ward) ask(name, path string) (int, health.Report) {
	w.t.Helper()
	return askHealth(w.t, w.addresses[name], path)
}

// askHealth returns 0 for a process that does not answer.
func askHealth(t testing.TB, address, path string) (int, health.Report) {
	t.Helper()
	client := http.Client{Timeout: patience}
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
func (w *ward) untilReady(status int) {
	w.t.Helper()
	w.until("readyz "+http.StatusText(status), func() bool {
		same := true
		for name := range w.addresses {
			got, _ := w.ask(name, "/readyz")
			same = same && got == status
		}
		return same
	})
}

// expectLive checks that a restart is not asked for.
func (w *ward) expectLive() {
	w.t.Helper()
	for name := range w.addresses {
		if status, report := w.ask(name, "/livez"); status != http.StatusOK {
			w.t.Errorf("%s: want it live, got %d %+v", name, status, report)
		}
	}
}

func TestDaemonsOutliveAnOutageOfRedisNotReadyButLiveAndWithoutSpinning(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.untilReady(http.StatusOK)
	w.Server.Kill(t)
	began := time.Now()
	w.untilReady(http.StatusServiceUnavailable)
	w.expectLive()
	noticed := time.Since(began)
	w.Server.Restart(t)
	began = time.Now()
	w.untilReady(http.StatusOK)
	t.Logf("not ready %s after the kill, ready again %s after the restart", noticed, time.Since(began))
	w.dismiss()
}

// dismiss stops all daemons and checks that the outage cost few lines and little of the processor.
func (w *ward) dismiss() {
	w.t.Helper()
	var stopping sync.WaitGroup
	for _, process := range w.processes {
		stopping.Go(func() { process.Stop() })
	}
	stopping.Wait()
	for name, process := range w.processes {
		output, busy := process.Output(), process.Busy()
		lines := strings.Count(output, "\n")
		w.t.Logf("%s: %d lines, %s of the processor, exit code %d", name, lines, busy, process.Wait())
		if most := 60; lines > most || process.Wait() != 0 || busy > 3*time.Second {
			w.t.Errorf("%s: want at most %d lines, 3s of the processor and exit code 0\n%s", name, most, output)
		}
		if !strings.Contains(output, "works again") {
			w.t.Errorf("%s: want the end of the outage told", name)
		}
	}
}

// hang stops the server where it stands: connections are accepted and nothing answers. The returned function lets it go on.
func (w *ward) hang() (resume func()) {
	w.t.Helper()
	info, err := w.Redis.Info(w.ctx, "server").Result()
	if err != nil {
		w.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "process_id:")
	pid, err := strconv.Atoi(strings.Fields(rest)[0])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	resume = sync.OnceFunc(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	w.t.Cleanup(resume)
	return resume
}

func TestDaemonsAreNotReadyWhileRedisHangsAndLiveBecauseARestartWouldNotHelp(t *testing.T) {
	long.Only(t)
	t.Parallel()
	w := newWard(t)
	w.untilReady(http.StatusOK)
	hold := w.hang()
	w.untilReady(http.StatusServiceUnavailable)
	w.expectLive()
	hold()
	w.untilReady(http.StatusOK)
	w.dismiss()
}
