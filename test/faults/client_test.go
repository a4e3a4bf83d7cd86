package faults

import (
	"context"
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
	return newDrill(t, server.URL, server.URL), server
}

// again repeats something, and waits for a little progress in between.
func (d *drill) again(times int, do func(context.Context) error) {
	d.t.Helper()
	for range long.Or(times/4, times) * *timesFlag {
		_ = do(d.ctx) // it may hit the connection of the test itself
		d.progress(5)
	}
}

func TestConnectionsThatAreKilledAgainAndAgainLoseNothing(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.begin()
	d.again(20, func(ctx context.Context) error {
		return d.clients.Write.ClientKillByFilter(ctx, "TYPE", "normal").Err()
	})
	d.settle()
	d.conclude()
}

func TestScriptsThatAreForgottenAgainAndAgainAreLoadedAgain(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.begin()
	d.again(30, func(ctx context.Context) error { return d.clients.Write.ScriptFlush(ctx).Err() })
	d.settle()
	d.conclude()
}

func TestAPausedRedisOnlyCostsThePause(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.begin()
	for range *timesFlag {
		d.check("pause", d.clients.Write.ClientPause(d.ctx, 2*time.Second).Err())
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
		d.check("sleep", d.clients.Write.Do(d.ctx, "DEBUG", "SLEEP", "2").Err())
		d.progress(10)
	}
	d.settle()
	d.conclude()
}
