package testkit

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// sentinelName is the sentinels' name for the master.
const sentinelName = "mymaster"

// Sentinel lends an empty redis-server that one sentinel watches. Its clients ask the sentinel where it is.
func Sentinel(t testing.TB) *Server {
	t.Helper()
	s := Redis(t)
	return s.Behind(StartSentinel(t, s.Addr, 1, ""))
}

// Behind returns the server as those know it who ask a sentinel, at this address, where the master is.
func (s *Server) Behind(sentinel string) *Server {
	behind := *s
	behind.sentinel, behind.URL = sentinel, "redis-sentinel://"+sentinel+"/"+sentinelName
	return &behind
}

// StartSentinel starts a sentinel that watches a master under the name "mymaster", and returns its address. So many sentinels must agree that the
// master is down; more is added to its configuration. The program is redis-server by another name.
func StartSentinel(t testing.TB, master string, quorum int, more string) string {
	t.Helper()
	address, dir := FreeAddress(t), t.TempDir()
	host, port, err := net.SplitHostPort(address)
	check.Must(t, err)
	text := fmt.Sprintf("bind %s\nport %s\ndir %s\nlogfile sentinel.log\nsentinel monitor %s %s %d\n%s",
		host, port, dir, sentinelName, strings.Replace(master, ":", " ", 1), quorum, more)
	file := filepath.Join(dir, "sentinel.conf")
	check.Must(t, os.WriteFile(file, []byte(text), 0o600))
	Start(t, "redis-server", file, "--sentinel")
	check.Eventually(t, "the sentinel accepts connections", func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	})
	return address
}
