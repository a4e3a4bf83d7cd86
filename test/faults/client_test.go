package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
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

// hookWitness takes notices, and leaves some requests without an answer.
type hookWitness struct {
	mu     sync.Mutex // guards what follows
	silent map[int]bool
	asked  int
	told   []string // uids, in the order of the answers
	ids    map[string]int
}

func (w *hookWitness) take(r *http.Request) (answer bool) {
	body, _ := io.ReadAll(r.Body)
	var message struct {
		Data struct{ UID string }
	}
	_ = json.Unmarshal(body, &message)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	w.ids[r.Header.Get("webhook-id")]++
	if w.silent[w.asked] {
		return false
	}
	w.told = append(w.told, message.Data.UID)
	return true
}

// TestAKilledNotifierLosesNoNotice kills the real process while a webhook holds a request, and starts another one each time.
func TestAKilledNotifierLosesNoNotice(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	kills, notices := long.Or(1, 4), 50
	w := &hookWitness{silent: map[int]bool{}, ids: map[string]int{}}
	for i := range kills {
		w.silent[5+10*i] = true
	}
	held, end := make(chan struct{}, kills), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !w.take(r) {
			held <- struct{}{}
			select {
			case <-r.Context().Done():
			case <-end:
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	dir := t.TempDir()
	routes := filepath.Join(dir, "routes.yaml")
	for name, text := range map[string]string{
		"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
		"routes.yaml": fmt.Sprintf("channels:\n  ops: {webhook: %q, secret: {file: %q}, digest: none, timeout: 30s}\n", server.URL, filepath.Join(dir, "secret")) +
			"  copy: {list: copy}\nroutes:\n- {events: [disabled], channels: [ops, copy]}\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for i := range notices {
		entry := &redis.XAddArgs{Stream: f.Store.Keys.Outbox, Values: []string{"event", "disabled", "uid", fmt.Sprint("m", i)}}
		must(t, f.Redis.XAdd(f.ctx, entry).Err())
	}
	start := func() *testkit.Process {
		return f.start("notifier", "--routes", routes, "--tick", "20ms")
	}
	f.start("dispatcher") // trims
	notifier := start()
	for range kills {
		check.Await(t, held, "a request that the webhook holds")
		notifier.Kill()
		// What was in hand is another one's when its time has come: here at once.
		for _, recipient := range f.Redis.ZRange(f.ctx, f.Store.Keys.Recipients("ops"), 0, -1).Val() {
			f.Redis.ZAdd(f.ctx, f.Store.Keys.Recipients("ops"), redis.Z{Member: recipient})
		}
		notifier = start()
	}
	check.Eventually(t, "each notice is told", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(slices.Compact(slices.Sorted(slices.Values(w.told)))) >= notices
	})
	check.Eventually(t, "nothing is left", func() bool {
		return f.Redis.Exists(f.ctx, f.Store.Keys.Notices("ops"), f.Store.Keys.Deliveries).Val() == 0
	})
	stopAll(t, notifier)
	w.mu.Lock()
	defer w.mu.Unlock()
	if told := slices.Compact(slices.Sorted(slices.Values(w.told))); len(told) != notices || len(w.ids) != notices {
		t.Errorf("told %v under %d ids, want each, and those that were in hand repeated under their ids", w.told, len(w.ids))
	}
	copied := f.Redis.LLen(f.ctx, f.Store.Keys.Told("copy")).Val()
	failIf(t, copied < int64(notices), "want all notices in the list, got %d", copied)
}
