package faults

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// disk is where fetched files go, and what fills it and makes room again.
type disk struct {
	kind string
	dir  string
	fill func() error
	free func() error
}

// newDisk mounts a small tmpfs. Without the right to mount, the worker is not allowed to write files larger than nothing, which looks
// almost the same to it: an error in the middle of a write. pid tells the worker.
func newDisk(t *testing.T, pid func() (int, error)) disk {
	t.Helper()
	dir := t.TempDir()
	filler := filepath.Join(dir, "filler")
	if err := syscall.Mount("refreshd-test", dir, "tmpfs", 0, "size=4m"); err != nil {
		limit := func(bytes uint64) func() error {
			return func() error {
				worker, err := pid()
				if err != nil {
					return err
				}
				return unix.Prlimit(worker, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil)
			}
		}
		return disk{fmt.Sprintf("a limit of the file size (mount tmpfs: %v)", err), dir, limit(1 << 10), limit(unix.RLIM_INFINITY)}
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	fill := func() error {
		if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !isFull(err) {
			return fmt.Errorf("want no space left, got %w", err)
		}
		return nil
	}
	return disk{"a full tmpfs", dir, fill, func() error { return os.Remove(filler) }}
}

func isFull(err error) bool {
	return err != nil && strings.Contains(err.Error(), syscall.ENOSPC.Error())
}

// feed is a file of so many equal lines: what is cut off or mixed would be seen.
const feedLines = 1000

// newFeed serves a file that is another one each time, and notes each download.
func (d *drill) newFeed() *httptest.Server {
	var edition atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line := fmt.Sprintf("%08d\n", edition.Add(1))
		d.record.ran(line)
		_, _ = w.Write([]byte(strings.Repeat(line, feedLines)))
	}))
	d.t.Cleanup(service.Close)
	return service
}

// checkFiles checks that every file is whole.
func (d *drill) checkFiles(dir string) {
	d.t.Helper()
	for _, uid := range d.uids {
		text, err := os.ReadFile(filepath.Join(dir, uid))
		d.check("read a fetched file", err)
		line, _, _ := bytes.Cut(text, []byte("\n"))
		if want := bytes.Repeat(append(line, '\n'), feedLines); !bytes.Equal(text, want) {
			d.t.Errorf("%s: want a whole file, got %d bytes", uid, len(text))
		}
	}
}

// leftovers counts the files that are neither fetched nor remembered of one.
func (d *drill) leftovers(dir string) int {
	d.t.Helper()
	entries, err := os.ReadDir(dir)
	d.check("read the directory", err)
	return len(entries) - 2*len(d.uids)
}

// fetcher starts a worker that downloads, and returns how to ask for its pid.
func (d *drill) fetcher(dir string) *testkit.Process {
	d.t.Helper()
	return testkit.Start(d.t, "sh", "-c", `echo $$ >"$1"; shift; exec "$@"`, "sh", d.pidFile(), testkit.Binary(d.t),
		"worker", "--redis", d.address, "--fetch", dir, "--allow-private", "--log-level", "warn", "--concurrency", "8")
}

func (d *drill) pidFile() string { return filepath.Join(d.scratch, "pid") }

func (d *drill) pid() (int, error) {
	text, err := os.ReadFile(d.pidFile())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func TestAFullDiskFailsDownloadsUntilThereIsRoomAndCutsNoFile(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.elsewhere, d.feed, d.uids = true, d.newFeed().URL, d.uids[:(len(d.uids)+3)/4] // files are more work
	space := newDisk(t, d.pid)
	worker := d.fetcher(space.dir)
	d.save()
	d.dispatch()
	d.poll()
	d.refreshAll()
	for range *timesFlag {
		before := d.counter("failure")
		d.check("fill the disk", space.fill())
		d.until("failures", func() (bool, error) { return d.counter("failure") >= before+int64(len(d.uids)), nil })
		d.checkFiles(space.dir)
		d.check("make room", space.free())
		d.refreshAll()
	}
	d.settle()
	if code := worker.Stop(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	y, _ := d.conclude()
	d.checkFiles(space.dir)
	if left := d.leftovers(space.dir); left != 0 {
		t.Errorf("want only the fetched files, got %d more", left)
	}
	if full := y.errors["disk"]; full < len(d.uids) || full != y.events[model.EventFailure] {
		t.Errorf("the fault did not strike: want all of %d failures of the type disk, got %v", y.events[model.EventFailure], y.errors)
	}
	t.Logf("on %s: %d downloads failed", space.kind, y.errors["disk"])
}
