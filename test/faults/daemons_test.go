package faults

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// listener is the service that worker processes post to; it notes every attempt that was worked on.
func (d *drill) listener() *httptest.Server {
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		d.record.ran(r.Header.Get("Refreshd-Attempt-Uid"))
	}))
	d.t.Cleanup(service.Close)
	return service
}

// daemonProcesses is one process of each kind, started again as soon as it was killed.
type daemonProcesses struct {
	*drill
	program   string
	commands  [][]string
	processes []*testkit.Process
	kills     int
}

// startProcesses starts a program, which is refreshd of this or another version.
func (d *drill) startProcesses(program string, commands ...[]string) *daemonProcesses {
	d.t.Helper()
	g := &daemonProcesses{drill: d, program: program, commands: commands}
	for i := range commands {
		g.processes = append(g.processes, g.start(i))
	}
	return g
}

func (g *daemonProcesses) start(i int) *testkit.Process {
	g.t.Helper()
	command := g.commands[i]
	return testkit.Start(g.t, g.program, append([]string{command[0], "--redis", g.address}, command[1:]...)...)
}

// kill kills one process in the middle of its work and starts it anew.
func (g *daemonProcesses) kill(i int) {
	g.t.Helper()
	g.processes[i].Kill()
	code := g.processes[i].Wait()
	failIf(g.t, code != -1, "the fault did not strike: want %v ended by a signal, got exit code %d", g.commands[i], code)
	g.kills++
	g.processes[i] = g.start(i)
}

// TestDaemonsThatAreKilledAgainAndAgainLoseNothing gives each attempt an hour: what a dead worker had taken has to be handed back, as
// no deadline would help within the time of the test.
func TestDaemonsThatAreKilledAgainAndAgainLoseNothing(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.policy.Timeout, d.elsewhere = time.Hour, true
	service := d.listener()
	worker := []string{"worker", "--http", service.URL, "--worker-lease", "1s", "--concurrency", "8"}
	poller := []string{"poller", "--lease", "1s", "--tick", "100ms"}
	g := d.startProcesses(testkit.Binary(t), []string{"dispatcher"}, poller, poller, worker, worker)
	d.save()
	d.refreshAll()
	for round := range 8 * *timesFlag {
		for i := range g.commands {
			if (round+i)%2 == 0 { // half of them at once
				g.kill(i)
			}
		}
		d.progress(20)
	}
	d.settle()
	stopAll(t, g.processes...)
	y := d.audit()
	failIf(t, y.events["timeout"] > 0, "want no attempt ended by its deadline, got %d", y.events["timeout"])
	t.Logf("%d processes were killed", g.kills)
}
