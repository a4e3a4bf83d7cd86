package faults

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refreshd/refreshd/internal/poller"
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
// almost the same to it: an error in the middle of a write. pid identifies the worker.
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
		if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("want no space left, got %w", err)
		}
		return nil
	}
	return disk{"a full tmpfs", dir, fill, func() error { return os.Remove(filler) }}
}

// feed is a file of so many equal lines: a cut or a mix would be seen.
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

func (d *drill) checkFiles(dir string) {
	d.t.Helper()
	for _, uid := range d.uids {
		text, err := os.ReadFile(filepath.Join(dir, uid))
		d.check("read a fetched file", err)
		line, _, _ := bytes.Cut(text, []byte("\n"))
		want := bytes.Repeat(append(line, '\n'), feedLines)
		failIf(d.t, !bytes.Equal(text, want), "%s: want a whole file, got %d bytes", uid, len(text))
	}
}

func TestAFullDiskFailsDownloadsUntilThereIsRoomAndCutsNoFile(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.elsewhere, d.feed, d.uids = true, d.newFeed().URL, d.uids[:(len(d.uids)+3)/4] // files are more work
	pidFile := filepath.Join(t.TempDir(), "pid")
	space := newDisk(t, func() (int, error) {
		text, err := os.ReadFile(pidFile)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(text)))
	})
	worker := testkit.Start(t, "sh", "-c", `echo $$ >"$1"; shift; exec "$@"`, "sh", pidFile, testkit.Binary(t),
		"worker", "--redis", d.address, "--fetch", space.dir, "--allow-private", "--concurrency", "8")
	d.save()
	d.dispatch()
	d.poll(poller.Config{})
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
	stopAll(t, worker)
	y := d.audit()
	d.checkFiles(space.dir)
	entries, err := os.ReadDir(space.dir)
	if want := 3 * len(d.uids); err != nil || len(entries) != want { // each fetched file, its hidden file, and its fence
		t.Errorf("want only %d files, got %d, %v", want, len(entries), err)
	}
	if full := y.errors["disk"]; full < len(d.uids) || full != y.events[model.EventFailure] {
		t.Errorf("the fault did not strike: want all of %d failures of the type disk, got %v", y.events[model.EventFailure], y.errors)
	}
	t.Logf("on %s: %d downloads failed", space.kind, y.errors["disk"])
}

// unprivileged runs do without the rights to look into the processes of others, which root has and a worker needs not: what do starts
// has them neither. The thread goes on without them: to end it would kill the servers that it may have started, which die with it.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		for _, right := range []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_SYS_ADMIN} {
			err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0))
		}
		defer func() { done <- err }()
		do()
	}()
	if err := <-done; err != nil && os.Getuid() == 0 {
		t.Skipf("root that cannot give up its rights: %v", err)
	}
}

func TestAProgramOfAWorkerCannotReadTheSettingsOfTheWorker(t *testing.T) {
	for _, command := range []string{"worker", "up"} {
		f := newFleet(t)
		f.addClerk()
		t.Setenv("REDIS_URL", f.clerk("clerk"))
		found := filepath.Join(t.TempDir(), "found")
		unprivileged(t, func() {
			testkit.Refreshd(t, command, "--exec", "sh", "--", "-c", `(cat /proc/$PPID/environ; echo read) >"$0" 2>&1`, found)
		})
		if command == "worker" {
			testkit.Refreshd(t, "up")
		}
		f.put(1)
		f.AwaitEvent(model.EventSuccess, 1)
		text, err := os.ReadFile(found)
		stopIf(t, err != nil || !strings.Contains(string(text), "read"), "the program has not tried: %q, %v", text, err)
		failIf(t, strings.Contains(string(text), "REDIS_URL") || !strings.Contains(string(text), "ermission denied"),
			"%s: want the environment unreadable, got %d bytes", command, len(text))
	}
}
