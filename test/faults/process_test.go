package faults

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/refreshd/refreshd/internal/testkit"
)

// freeze stops a process at any point.
func freeze(p *testkit.Process) { p.Signal(syscall.SIGSTOP) }

// thaw lets a frozen process go on.
func thaw(p *testkit.Process) { p.Signal(syscall.SIGCONT) }

// isFrozen reports whether a process is stopped, and whether the system knows.
func isFrozen(p *testkit.Process) (frozen, told bool) {
	stat, err := os.ReadFile(p.File("stat"))
	_, rest, _ := strings.Cut(string(stat), ") ") // the name of the program is in front, in brackets
	return strings.HasPrefix(rest, "T"), err == nil
}

// memoryOf is the most that a running process has held in memory, in bytes; 0 if the system does not know. The resource usage
// of an ended process would be that of the test, its parent, if that is more.
func memoryOf(p *testkit.Process) int64 {
	status, _ := os.ReadFile(p.File("status"))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	_, _ = fmt.Sscan(rest, &kilobytes)
	return kilobytes << 10
}
