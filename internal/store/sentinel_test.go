package store

import (
	"context"
	"fmt"
	"net"
	"os"
	osexec "os/exec" // the package has an exec of its own
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

// patience only ends what hangs, and says where.
const patience = 5 * time.Minute

// startSentinel starts one sentinel that watches master under the name "mymaster" and returns its address. The program is
// redis-server, of which redis-sentinel is only another name.
func startSentinel(t *testing.T, master string, config ...string) string {
	t.Helper()
	testkit.RequireProgram(t, "redis-server", "redis-server")
	for range 5 { // another process may take the port meanwhile
		if addr, ok := trySentinel(t, master, config); ok {
			return addr
		}
	}
	t.Fatal("no sentinel answered")
	return ""
}

func trySentinel(t *testing.T, master string, config []string) (addr string, ok bool) {
	t.Helper()
	addr = freeAddr(t)
	file := writeSentinelConfig(t, addr, master, config)
	process := osexec.Command("redis-server", file, "--sentinel")
	must(t, process.Start())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = process.Wait()
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill()
		<-exited
	})
	return addr, awaitListener(t, addr, exited)
}

func writeSentinelConfig(t *testing.T, addr, master string, config []string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	host, masterPort, _ := net.SplitHostPort(master)
	dir := t.TempDir()
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nlogfile sentinel.log\n", port, dir)
	text += fmt.Sprintf("sentinel monitor mymaster %s %s 1\n", host, masterPort)
	for _, line := range config {
		text += line + "\n"
	}
	file := filepath.Join(dir, "sentinel.conf")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// awaitListener waits until addr accepts connections; false: the process has exited before.
func awaitListener(t *testing.T, addr string, exited <-chan struct{}) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-exited:
			return false
		case <-ctx.Done():
			t.Fatalf("%s accepts no connection: %v", addr, ctx.Err())
		case <-tick.C:
		}
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return true
		}
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func TestSentinelsNameTheMasterAndHaveCredentialsOfTheirOwn(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t, "--databases", "4")
	admin := server.Client(t)
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">master/pw", "~*", "&*", "+@all").Err())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "resetpass", "off").Err())
	addr := startSentinel(t, server.Addr, "sentinel auth-user mymaster app", "sentinel auth-pass mymaster master/pw",
		"user default off", "user watch on >sentinel&pw ~* &* +@all")

	good := "redis-sentinel://app:master%2Fpw@127.0.0.1:1," + addr + "/mymaster/3?sentinel_username=watch&sentinel_password="
	clients := connect(t, good+"sentinel%26pw", ConnectOptions{})
	expectWorking(t, clients)
	if db := clients.Write.(*redis.Client).Options().DB; db != 3 {
		t.Errorf("database %d, want 3", db)
	}
	if clients.Clustered {
		t.Error("Clustered, want a single server")
	}
	expectNoAnswer(t, connect(t, good+"wrong", ConnectOptions{}))
}
