package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// watched is a master with one replica and three sentinels, two of which must agree.
type watched struct {
	t               testing.TB
	master, replica *testkit.Server
	sentinels       []string // addresses
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, master: testkit.Redis(t, "--repl-diskless-sync-delay", "0")}
	host, port, err := net.SplitHostPort(w.master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	w.replica = testkit.Redis(t, "--replicaof", host, port)
	for range 3 {
		w.sentinels = append(w.sentinels, w.sentinel(host, port))
	}
	return w
}

// sentinel starts one sentinel; its program is redis-server by another name.
func (w *watched) sentinel(host, port string) string {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, own, _ := net.SplitHostPort(address)
	dir := w.t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor mymaster %s %s 2\n", own, dir, host, port) +
		"sentinel down-after-milliseconds mymaster 1000\nsentinel failover-timeout mymaster 5000\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	testkit.Start(w.t, "redis-server", config, "--sentinel")
	return address
}

func (w *watched) URL() string {
	return "redis-sentinel://" + strings.Join(w.sentinels, ",") + "/mymaster"
}

// untilSafe waits until the replica follows and every sentinel knows it and both others.
func (w *watched) untilSafe(d *drill) {
	w.t.Helper()
	replica := w.replica.Client(w.t)
	d.until("a replica that follows", func() (bool, error) {
		info, err := replica.Info(d.ctx, "replication").Result()
		return strings.Contains(info, "master_link_status:up"), err
	})
	for _, address := range w.sentinels {
		sentinel := redis.NewSentinelClient(&redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1})
		w.t.Cleanup(func() { _ = sentinel.Close() })
		d.until("a sentinel that knows all others", func() (bool, error) { return w.isComplete(d.ctx, sentinel) })
	}
}

func (w *watched) isComplete(ctx context.Context, sentinel *redis.SentinelClient) (bool, error) {
	others, err := sentinel.Sentinels(ctx, "mymaster").Result()
	if err != nil || len(others) != len(w.sentinels)-1 {
		return false, err
	}
	replicas, err := sentinel.Replicas(ctx, "mymaster").Result()
	return len(replicas) == 1, err
}

// expectMaster checks that the daemons work on this server now, and that it has become a master.
func (d *drill) expectMaster(server *testkit.Server) {
	d.t.Helper()
	d.admin = server.Client(d.t)
	role, err := d.admin.Info(d.ctx, "replication").Result()
	d.check("ask for the role", err)
	if !strings.Contains(role, "role:master") {
		d.t.Errorf("the fault did not strike: want another master, got %s", role)
	}
}

func TestAFailoverBySentinelsCostsTheTimeUntilTheyAgree(t *testing.T) {
	long.Only(t)
	t.Parallel()
	w := newWatched(t)
	d := newDrill(t, w.URL(), w.URL())
	w.untilSafe(d)
	d.begin()
	killed := time.Now()
	w.master.Kill(t)
	d.cut = killed.Add(-time.Second) // the replica may lag behind
	d.progress(10)
	healed := time.Since(killed)
	d.expectMaster(w.replica)
	w.master.Restart(t) // the sentinels make a replica of it
	d.settle()
	d.conclude()
	t.Logf("a result was applied again %s after the kill", healed.Round(10*time.Millisecond))
}
