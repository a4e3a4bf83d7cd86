package testkit

import (
	"cmp"
	"context"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// Server is one Redis that a test may use as it likes until the test ends.
type Server struct {
	Addr  string               // host:port; of a cluster the first node
	Addrs []string             // every node; one element unless the server is a cluster
	URL   string               // redis://host:port; of a cluster redis-cluster:// and all its nodes
	Mini  *miniredis.Miniredis // to set its clock or to inject faults; nil when the server is a real one

	nodes    []*node             // that it consists of; none: it is a miniredis
	config   []map[string]string // of each, as it was when it had started
	sentinel string              // address of the sentinel that clients ask; empty: there is none
}

// Both runs test twice, as the subtests "miniredis" and "redis-server", each with a server of its own. The two differ in
// details that matter (numbers in Lua, undeclared keys), so whatever talks to Redis is to be tested with this. Both run beside
// each other and beside other tests, as each owns its server: test must not change what they share, such as an environment
// variable. They run when the function that called Both has returned.
func Both(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, Miniredis(t))
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, Redis(t))
	})
}

// BothIfLong is Both if the long tests run. Else test runs once: on a redis-server, or on a miniredis where there is none. It is for what talks
// to Redis by scripts alone that have tests of their own on both.
func BothIfLong(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil || long.Enabled() {
		Both(t, test)
		return
	}
	t.Parallel()
	test(t, Redis(t))
}

// Miniredis starts an in-process server whose keys expire, as in a real one, whatever its clock was set to.
func Miniredis(t testing.TB) *Server {
	t.Helper()
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		t.Fatalf("start miniredis: %v", err)
	}
	t.Cleanup(mini.Close)
	t.Cleanup(embedded.Age(mini, 100*time.Millisecond))
	return (&Server{Mini: mini}).at([]string{mini.Addr()})
}

// Redis lends an empty redis-server that writes nothing to disk. With extra arguments, such as "--appendonly", "yes",
// it starts a new one with them, which is stopped when the test ends. It skips the test when redis-server is not
// installed, see RequireProgram.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	RequireProgram(t, "redis-server", "redis-server")
	if len(args) > 0 {
		s, err := startSingle(args...)
		check.Must(t, err)
		t.Cleanup(s.stop)
		return s
	}
	return lend(t, singles)
}

// Cluster lends an empty Redis Cluster of three masters, the only place where a script that touches a foreign slot or an
// undeclared key is refused.
func Cluster(t testing.TB) *Server {
	t.Helper()
	RequireProgram(t, "redis-server", "redis-server")
	return lend(t, clusters)
}

// ReplicatedCluster lends an empty Redis Cluster of three masters with a replica each. A test may kill masters and move slots.
func ReplicatedCluster(t testing.TB) *Server {
	t.Helper()
	RequireProgram(t, "redis-server", "redis-server")
	return lend(t, replicated)
}

func (s *Server) at(addrs []string) *Server {
	s.Addr, s.Addrs, s.URL = addrs[0], addrs, "redis://"+addrs[0]
	if len(addrs) > 1 {
		s.URL = "redis-cluster://" + strings.Join(addrs, ",")
	}
	return s
}

// IsCluster reports whether the server is a cluster, where all keys of a script must share one hash tag.
func (s *Server) IsCluster() bool { return len(s.Addrs) > 1 }

// Options returns the options of Client, for tests that need a client of their own. Nothing is retried, because a
// repeated command would hide a lost reply, and nothing but HELLO is sent ahead of the test's commands. MaxRedirects is
// part of that: a cluster client repeats a command after a lost reply for as long as it may redirect.
func (s *Server) Options() *redis.UniversalOptions {
	options := &redis.UniversalOptions{
		Addrs:                    s.Addrs,
		IsClusterMode:            s.IsCluster(),
		MaxRetries:               -1,
		MaxRedirects:             -1,
		DialerRetries:            1,
		DialTimeout:              check.Limit,
		ReadTimeout:              check.Limit,
		WriteTimeout:             check.Limit,
		PoolTimeout:              check.Limit,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if s.sentinel != "" {
		options.Addrs, options.MasterName = []string{s.sentinel}, sentinelName
	}
	return options
}

// Client returns a new client of the server, closed when the test ends.
func (s *Server) Client(t testing.TB) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(s.Options())
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Flush removes every key. Scripts stay loaded.
func (s *Server) Flush(t testing.TB) {
	t.Helper()
	s.eachNode(t, "flush", func(ctx context.Context, client *redis.Client) error {
		return client.FlushAll(ctx).Err()
	})
}

// Kill ends the server as kill -9 would, every node of a cluster, and returns when it is gone.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	for _, n := range s.processes(t) {
		n.Kill()
	}
}

// Signal sends a signal to the server, to every node of a cluster. A stopped server receives its input and answers when it goes on.
func (s *Server) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	for _, n := range s.processes(t) {
		n.Signal(signal)
	}
}

// Restart starts a killed server again on the same port and in the same directory, and returns when it answers. What it
// still knows depends on how it was started: with "--appendonly", "yes", "--appendfsync", "always", everything.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	for _, n := range s.processes(t) {
		if err := n.start(); err != nil {
			t.Fatalf("restart redis-server: %v", err)
		}
	}
	if err := s.awaitCluster(); err != nil {
		t.Fatalf("restart redis-server: %v", err)
	}
}

func (s *Server) processes(t testing.TB) []*node {
	t.Helper()
	if len(s.nodes) == 0 {
		t.Fatal("expected a real redis-server to kill or restart, found miniredis: use Redis(t)")
	}
	return s.nodes
}

// KillNode ends a node of a cluster as kill -9 would.
func (s *Server) KillNode(t testing.TB, address string) { t.Helper(); s.node(t, address).Kill() }

// SignalNode sends a signal to a node of a cluster.
func (s *Server) SignalNode(t testing.TB, address string, signal syscall.Signal) {
	t.Helper()
	s.node(t, address).Signal(signal)
}

// RestartNode starts a killed node of a cluster again, and returns when it has found its place: as a replica if another was
// promoted meanwhile.
func (s *Server) RestartNode(t testing.TB, address string) {
	t.Helper()
	check.Must(t, s.node(t, address).start())
	check.Must(t, s.awaitCluster())
}

func (s *Server) node(t testing.TB, address string) *node {
	t.Helper()
	nodes := s.processes(t)
	i := slices.IndexFunc(nodes, func(n *node) bool { return n.addr == address })
	if i < 0 {
		t.Fatalf("expected a node of the cluster, found %s", address)
	}
	return nodes[i]
}

// AwaitNodes waits until a condition holds for every living node of a cluster, and it serves.
func (s *Server) AwaitNodes(t testing.TB, holds func(context.Context, *redis.Client) bool) {
	t.Helper()
	check.Must(t, s.awaitNodes(func(ctx context.Context, client *redis.Client) bool {
		return holds(ctx, client) && clusterServes(ctx, client)
	}))
}

// On calls do with a plain client of a node of a cluster; "": of any that lives.
func (s *Server) On(t testing.TB, address string, do func(context.Context, *redis.Client) error) {
	t.Helper()
	living := s.livingAddrs()
	if len(living) == 0 {
		t.Fatal("expected a node that lives, found none")
	}
	check.Must(t, withNode(cmp.Or(address, living[0]), do))
}

func (s *Server) livingAddrs() (addrs []string) {
	if !s.IsCluster() {
		return s.Addrs
	}
	for _, n := range s.living() {
		addrs = append(addrs, n.addr)
	}
	return addrs
}

// eachNode calls do with a plain client of each node that has keys of its own, one after the other.
func (s *Server) eachNode(t testing.TB, verb string, do func(context.Context, *redis.Client) error) {
	t.Helper()
	for _, addr := range s.livingAddrs() {
		err := withNode(addr, func(ctx context.Context, client *redis.Client) error {
			if s.IsCluster() {
				info, err := client.Info(ctx, "replication").Result()
				if err != nil || isReplica(info) {
					return err
				}
			}
			return do(ctx, client)
		})
		if err != nil {
			t.Fatalf("%s %s: %v", verb, addr, err)
		}
	}
}

// withNode calls do with a client of one node that lives only for this call. The context is not the test's: servers are
// read and emptied in cleanups too, when that one has ended.
func withNode(addr string, do func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), check.Limit)
	defer cancel()
	client := redis.NewClient((&Server{Addrs: []string{addr}}).Options().Simple())
	defer func() { _ = client.Close() }()
	return do(ctx, client)
}
