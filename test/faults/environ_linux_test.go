package faults

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

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
