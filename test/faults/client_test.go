package faults

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// on returns a drill on a redis-server of its own.
func on(t *testing.T, args ...string) (*drill, *testkit.Server) {
	t.Helper()
	t.Parallel()
	server := testkit.Redis(t, append([]string{"--enable-debug-command", "yes"}, args...)...)
	d := newDrill(t, server.URL, server.URL)
	d.admin = server.Client(t)
	return d, server
}

// again repeats something, and waits for a little progress in between.
func (d *drill) again(times int, do func()) {
	d.t.Helper()
	for range long.Or(times/4, times) * *timesFlag {
		do()
		d.progress(5)
	}
}

func TestConnectionsThatAreKilledAgainAndAgainLoseNothing(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.begin()
	d.again(20, d.killClients)
	d.settle()
	d.conclude()
	t.Logf("%d connections were killed", d.struck)
}

func TestScriptsThatAreForgottenAgainAndAgainAreLoadedAgain(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.begin()
	d.again(30, d.forgetScripts)
	d.settle()
	d.conclude()
	t.Logf("%d scripts were forgotten", d.struck)
}

func TestAPausedRedisOnlyCostsThePause(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.begin()
	for range *timesFlag {
		d.deafen(2*time.Second, func() error { return d.admin.ClientPause(d.ctx, 2*time.Second).Err() })
		d.progress(10)
	}
	d.settle()
	d.conclude()
}

func TestARedisThatSleepsOnlyCostsTheSleep(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.begin()
	for range *timesFlag {
		d.deafen(2*time.Second, func() error { return d.admin.Do(d.ctx, "DEBUG", "SLEEP", "2").Err() })
		d.progress(10)
	}
	d.settle()
	d.conclude()
}
