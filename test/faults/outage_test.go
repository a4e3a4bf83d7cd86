package faults

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// absence is for how long Redis is away: longer than an attempt may take, and than its worker may be silent.
const absence = 12 * time.Second

// outages are the ways in which Redis is away. Each lends a server, and a function that takes it away and returns when it is back. Behind sentinels
// workers find the new master later than dispatchers, who have noted the outage then.
var outages = []struct {
	name string
	lend func(t *testing.T) (server *testkit.Server, away func(f *silentFleet, workers []*hand))
}{
	{"failed over by sentinels", func(t *testing.T) (*testkit.Server, func(*silentFleet, []*hand)) {
		w := newWatched(t, absence)
		w.awaitSafe()
		return w.master.Behind(w.sentinels[0]), func(f *silentFleet, workers []*hand) {
			noted := func() string { return f.Redis.HGet(f.ctx, f.Store.Keys.Heard, "gap").Val() }
			before := noted()
			w.failOver()
			check.Eventually(t, "the outage noted", func() bool { gap := noted(); return gap != "" && gap != before })
			for _, worker := range workers {
				worker.way.turn(w.replica.Addr)
			}
		}
	}},
	{"frozen", func(t *testing.T) (*testkit.Server, func(*silentFleet, []*hand)) {
		server := testkit.Redis(t, "--save", "")
		return server, func(*silentFleet, []*hand) {
			server.Signal(t, syscall.SIGSTOP)
			<-time.After(absence)
			server.Signal(t, syscall.SIGCONT)
		}
	}},
	{"killed, and loading what it wrote", func(t *testing.T) (*testkit.Server, func(*silentFleet, []*hand)) {
		server := testkit.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
		return server, func(*silentFleet, []*hand) {
			server.Kill(t)
			<-time.After(absence)
			server.Restart(t)
		}
	}},
}

// TestAnOutageOfRedisIsNobodysTimeout lets work end while Redis is away, and its deadline and its silence pass too. Workers of each client push what
// they hold when Redis is back, and it counts. Behind sentinels those that do not ask them find the master at an address that moves with it.
func TestAnOutageOfRedisIsNobodysTimeout(t *testing.T) {
	long.Only(t)
	for i, language := range []string{"python", "node", "php", "bash", "exec"} {
		for j, outage := range outages {
			if *silencesFlag <= 2 && (i+j)%len(outages) != 1 { // before a release all
				continue
			}
			t.Run(language+" "+outage.name, func(t *testing.T) {
				t.Parallel()
				server, away := outage.lend(t)
				f := &silentFleet{fleet: newFleetOn(t, server)}
				f.command, f.direct = f.commandIn(language), language == "exec"
				if language == "exec" {
					f.command = func(url string) *exec.Cmd { return slowly(f.commandIn(language)(url)) }
				}
				d := check.Got(dispatcher.New(dispatcher.RoomsOf(f.Store), dispatcher.Config{}))(t)
				p := check.Got(poller.New(poller.RoomsOf(f.Store), poller.Config{}))(t)
				f.run(d.Run)
				f.run(p.Run)
				f.loadBrief(8)
				workers := f.hire(2 * 4)
				check.Eventually(t, "all work begun", func() bool { return f.Stats()["started"] >= f.saved })
				away(f, workers)
				check.Eventually(t, "an end of all attempts", func() bool {
					running, err := f.Redis.ZCard(f.ctx, f.Store.Keys.Running).Result()
					ends, failed := f.Redis.HMGet(f.ctx, f.Store.Keys.Stats, "success", "timeout").Result()
					return errors.Join(err, failed) == nil && running == 0 && (ends[0] != nil || ends[1] != nil)
				})
				stats := f.Stats()
				if stats["success"] != f.saved || stats["start"] != f.saved || stats["timeout"]+stats["failure"]+stats["final_failure"] > 0 {
					for i := range f.saved {
						t.Log(f.List(f.Store.Keys.History(fmt.Sprint("m", i))))
					}
					t.Errorf("expected %d starts and successes and nothing else, found %v", f.saved, stats)
				}
			})
		}
	}
}

// loadBrief saves models whose attempt takes three seconds of eight, whose worker may be silent for five, and which are disabled by their first failure.
func (f *silentFleet) loadBrief(n int) {
	f.t.Helper()
	p := policy.Policy{Timeout: 8 * time.Second, SilentAfter: 5 * time.Second, OnExhausted: policy.GiveUp}
	now := check.Got(f.Store.Now(context.Background()))(f.t)
	var transitions []*store.Transition
	for range n {
		record := &store.Record{Model: model.Model{UID: fmt.Sprint("m", f.saved)}}
		definition := model.Definition{UID: record.UID, PolicyName: p.ContentName(), Payload: `{"do":"succeed","after_ms":3000}`}
		decision, _, err := record.Put(definition, p, false, now)
		must(f.t, err)
		transitions = append(transitions, record.Decide(decision, now))
		f.saved++
	}
	f.Commit(now, transitions...)
}

// slowly is the worker with a program that takes as long as the work of the other ones.
func slowly(worker *exec.Cmd) *exec.Cmd {
	worker.Args[len(worker.Args)-1] = "3"
	return worker
}
