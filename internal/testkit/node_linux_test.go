package testkit

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// TestServerDiesWithAKilledTestProcess runs this test binary once more, which starts a server, prints its address and is
// killed before any cleanup.
func TestServerDiesWithAKilledTestProcess(t *testing.T) {
	RequireProgram(t, "redis-server", "redis-server")
	if os.Getenv("TESTKIT_VICTIM") != "" {
		fmt.Println("addr=" + Redis(t).Addr)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	victim := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithAKilledTestProcess$")
	victim.Env = append(os.Environ(), "TESTKIT_VICTIM=yes", "TMPDIR="+t.TempDir())
	out, _ := victim.Output()
	_, addr, found := strings.Cut(strings.TrimSpace(string(out)), "addr=")
	stopIf(t, !found, "the victim printed no address:\n%s", out)
	awaitRefusal(t, addr)
}

func awaitRefusal(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), check.Limit)
	defer cancel()
	err := poll(ctx, nil, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	failIf(t, err != nil, "the server at %s still answers: %v", addr, err)
}

func TestAPortIsGivenToOneTestOnly(t *testing.T) {
	port, err := freePort()
	check.Must(t, err)
	if reserve(port) {
		t.Errorf("port %s: expected it refused to the next who draws it", port)
	}
}
