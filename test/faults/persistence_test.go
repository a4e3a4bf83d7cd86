package faults

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// crash kills Redis and starts it again: another process answers.
func (d *drill) crash(server *testkit.Server) {
	d.t.Helper()
	before := d.info("server", "process_id")
	server.Kill(d.t)
	server.Restart(d.t)
	after := d.info("server", "process_id")
	failIf(d.t, after == before, "the fault did not strike: want another process than %d", before)
}

// crashAgain does so three times, with some progress in between.
func (d *drill) crashAgain(server *testkit.Server) {
	d.t.Helper()
	for range 3 * *timesFlag {
		d.crash(server)
		d.progress(50)
	}
}

func TestARedisThatWritesAlwaysLosesNothingWhenItIsKilled(t *testing.T) {
	long.Only(t)
	d, server := on(t, "--appendonly", "yes", "--appendfsync", "always")
	d.conclude(func() { d.crashAgain(server) })
}

// killTail is how much Redis may hold back from the kernel with `everysec`: it waits for a slow disk for two seconds at most. What the
// kernel has got survives the end of the process, but not the end of the machine.
const killTail = 2 * time.Second

func TestARedisThatWritesEverySecondHealsWhenItIsKilled(t *testing.T) {
	long.Only(t)
	d, server := on(t, "--appendonly", "yes", "--appendfsync", "everysec")
	d.conclude(func() {
		d.cut = time.Now().Add(-killTail)
		d.crashAgain(server)
	})
}

// file follows the size of the file that a server appends to.
type file struct {
	path string

	mu    sync.Mutex
	sizes []size // guarded by mu
}

type size struct {
	at    time.Time
	bytes int64
}

func (d *drill) appendFile(server *testkit.Server) *file {
	d.t.Helper()
	dir, err := d.clients.Read.ConfigGet(d.ctx, "dir").Result()
	d.check("ask for the directory", err)
	paths, err := filepath.Glob(filepath.Join(dir["dir"], "appendonlydir", "*.incr.aof"))
	d.check("look for the file", err)
	stopIf(d.t, len(paths) != 1, "%s: want one file that is appended to, got %q", server.Addr, paths)
	return &file{path: paths[0]}
}

func (f *file) follow(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if info, err := os.Stat(f.path); err == nil {
				f.mu.Lock()
				f.sizes = append(f.sizes, size{now, info.Size()})
				f.mu.Unlock()
			}
		}
	}
}

// cutBack shortens the file to what it was when it was last seen before an instant. It returns when that was, and how many bytes shorter the
// file is now.
func (f *file) cutBack(before time.Time) (time.Time, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := size{}
	for _, s := range f.sizes {
		if s.at.Before(before) {
			kept = s
		}
	}
	whole, err := os.Stat(f.path)
	if err != nil {
		return kept.at, 0, err
	}
	return kept.at, whole.Size() - kept.bytes, os.Truncate(f.path, kept.bytes)
}

func TestAPowerCutThatTakesTheLastSecondIsHealed(t *testing.T) {
	long.Only(t)
	d, server := on(t, "--appendonly", "yes", "--appendfsync", "everysec")
	f := d.appendFile(server)
	d.workers.run(f.follow)
	d.conclude(func() {
		d.progress(*loadFlag)
		killed := time.Now()
		server.Kill(t)
		cut, bytes, err := f.cutBack(killed.Add(-time.Second))
		d.check("cut the file", err)
		server.Restart(t)
		d.cut = cut.Add(-killTail)
		t.Logf("the last %s, %d bytes, are cut off", killed.Sub(cut).Round(time.Millisecond), bytes)
		failIf(t, bytes == 0, "want something cut off")
	})
}

func TestARedisWithoutPersistenceForgetsAllAndTheDaemonsGoOnWhenTheModelsAreSavedAgain(t *testing.T) {
	long.Only(t)
	d, server := on(t)
	d.conclude(func() {
		d.crash(server)
		d.cut = time.Unix(0, 1) // everything may be gone
		stats, err := report.Of(d.store).Stats(d.ctx)
		stopIf(t, err != nil || stats.Due+stats.Waiting+stats.Running+stats.Counters["create"] > 0, "want nothing left, got %+v and %v", stats, err)
		d.save()
	})
}
