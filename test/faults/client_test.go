package faults

import (
	"context"
	"errors"
	"io"
	"strings"
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
	for range times * *timesFlag {
		do()
		d.progress(5)
	}
}

func TestConnectionsThatAreKilledAgainAndAgainLoseNothing(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.conclude(func() { d.again(20, d.killClients) })
}

func TestScriptsThatAreForgottenAgainAndAgainAreLoadedAgain(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.conclude(func() { d.again(30, d.forgetScripts) })
}

func TestAPausedRedisOnlyCostsThePause(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.conclude(func() {
		d.again(1, func() { d.deafen(func() error { return d.admin.ClientPause(d.ctx, deafness).Err() }) })
	})
}

func TestARedisThatSleepsOnlyCostsTheSleep(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.conclude(func() {
		d.again(1, func() {
			d.deafen(func() error { return d.admin.Do(d.ctx, "DEBUG", "SLEEP", deafness.Seconds()).Err() })
		})
	})
}

// behind returns a drill whose daemons and workers reach Redis through a link.
func behind(t *testing.T) (*drill, *link) {
	t.Helper()
	t.Parallel()
	server := testkit.Redis(t)
	l := newLink(t, server.Addr)
	d := newDrill(t, server.URL, l.URL())
	d.admin = server.Client(t)
	return d, l
}

// slow keeps up some weather for two seconds, in which an echo of so many bytes takes so long at least.
func (d *drill) slow(l *link, w weather, bytes int, least time.Duration) {
	d.t.Helper()
	witness := d.witness()
	l.change(w)
	defer l.change(weather{})
	rest(d.ctx, 2*time.Second*time.Duration(*timesFlag))
	witness.expectSlow(bytes, least)
	d.refreshAll()
}

func TestLatencyAndJitterLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.conclude(func() {
		d.slow(l, weather{delay: 50 * time.Millisecond, jitter: 50 * time.Millisecond}, 1, 100*time.Millisecond)
	})
}

func TestANarrowNetworkLosesNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.conclude(func() { d.slow(l, weather{perSecond: 100 << 10}, 50<<10, time.Second) }) // half a second there, and back
}

func TestConnectionsThatAreResetAgainAndAgainLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.conclude(func() {
		d.again(20, func() {
			w := d.witness()
			d.struck += l.reset()
			err := w.expectEnd()
			failIf(t, errors.Is(err, io.EOF), "the fault did not strike: want a reset, got a close")
		})
	})
}

func TestConnectionsThatAreLeftHalfOpenLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.conclude(func() {
		w := d.witness()
		l.change(weather{dark: true})
		d.struck = l.darken()
		w.expectSilence(2 * time.Second * time.Duration(*timesFlag))
		l.change(weather{})
		w.expectSilence(100 * time.Millisecond)
	})
}

func TestConnectionsThatCloseSlowlyLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.conclude(func() {
		l.change(weather{slowClose: time.Second})
		defer l.change(weather{})
		d.again(5, func() {
			w := d.witness()
			began := time.Now()
			d.killClients()
			_ = w.expectEnd()
			told := time.Since(began)
			failIf(t, told < time.Second, "the fault did not strike: want a close told after a second, got %s", told)
		})
	})
}

func TestAFullRedisRefusesAndLosesNothingUntilThereIsRoom(t *testing.T) {
	long.Only(t)
	d, _ := on(t, "--maxmemory-policy", "noeviction")
	d.conclude(func() {
		for i := range 3 * *timesFlag {
			enough, stop := context.WithCancel(d.ctx)
			var held []entry // by a worker that will be long at work
			d.check("take entries", serve(enough, d.clients.Block, d.store.Keys.Input, 1, func(e entry) {
				d.record.ran(e.AttemptUID)
				if held = append(held, e); len(held) == 5 {
					stop()
				}
			}))
			d.check("fill the memory", d.clients.Write.ConfigSet(d.ctx, "maxmemory", "1mb").Err())
			d.workers.run(func(ctx context.Context) error {
				for _, e := range held {
					d.say(ctx, d.clients.Write, e)
				}
				return nil
			})
			d.until("refused commands", func() (bool, error) {
				info, err := d.clients.Read.Info(d.ctx, "errorstats").Result()
				return strings.Contains(info, "errorstat_OOM") && numberIn(t, info, "errorstat_OOM") >= (i+1)*20, err
			})
			d.check("make room", d.clients.Write.ConfigSet(d.ctx, "maxmemory", "0").Err())
			d.progress(50)
		}
	})
	failIf(t, d.record.refused == 0, "want pushes of workers refused")
	t.Logf("%d messages of workers were refused", d.record.refused)
}
