package faults

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/poller"
)

// TestAnOutageOfRedisIsNobodysTimeout lets work end while Redis is away, and its deadline and its silence pass too. Workers of each client push what
// they hold when Redis is back, and it counts.
func TestAnOutageOfRedisIsNobodysTimeout(t *testing.T) {
	long.Only(t)
	kinds := map[string]func(*testing.T, *testkit.Server, time.Duration){
		"frozen": func(t *testing.T, server *testkit.Server, length time.Duration) {
			server.Signal(t, syscall.SIGSTOP)
			<-time.After(length)
			server.Signal(t, syscall.SIGCONT)
		},
		"killed, and loading what it wrote": func(t *testing.T, server *testkit.Server, length time.Duration) {
			server.Kill(t)
			<-time.After(length)
			server.Restart(t)
		},
	}
	for i, language := range []string{"python", "node", "php", "bash", "exec"} {
		for j, name := range slices.Sorted(maps.Keys(kinds)) {
			away := kinds[name]
			if *silencesFlag <= 2 && (i+j)%2 == 0 { // before a release all
				continue
			}
			t.Run(language+" "+name, func(t *testing.T) {
				t.Parallel()
				f := &silentFleet{fleet: newFleetOn(t, testkit.Redis(t, "--appendonly", "yes", "--appendfsync", "always"))}
				f.command = f.commandIn(language)
				if language == "exec" {
					f.command = func() *exec.Cmd { return slowly(f.commandIn(language)()) }
				}
				d := testkit.Got(dispatcher.New(f.Store, dispatcher.Config{}))(t)
				p := testkit.Got(poller.New(f.Store, poller.Config{}))(t)
				f.run(d.Run)
				f.run(p.Run)
				f.loadBrief(8)
				f.hire(2 * 4)
				testkit.Eventually(t, "all work begun", func() bool { return f.Stats()["started"] >= f.saved })
				away(t, f.Server, 12*time.Second)
				testkit.Eventually(t, "an end of all attempts", func() bool {
					return len(f.Redis.ZRange(f.ctx, f.Store.Keys.Running, 0, -1).Val()) == 0 && f.Redis.HExists(f.ctx, f.Store.Keys.Stats, "success").Val()
				})
				stats := f.Stats()
				if stats["success"] != f.saved || stats["timeout"]+stats["failure"]+stats["final_failure"] > 0 {
					for i := range f.saved {
						t.Log(f.List(f.Store.Keys.History(fmt.Sprint("m", i))))
					}
					t.Errorf("expected %d successes and nothing else, found %v", f.saved, stats)
				}
			})
		}
	}
}

// loadBrief saves models whose attempt takes three seconds of eight, whose worker may be silent for five, and which are disabled by their first failure.
func (f *silentFleet) loadBrief(n int) {
	f.t.Helper()
	p := policy.Policy{Timeout: 8 * time.Second, SilentAfter: 5 * time.Second, OnExhausted: policy.GiveUp}
	now := testkit.Got(f.Store.Now(context.Background()))(f.t)
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
