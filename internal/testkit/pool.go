package testkit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// pool holds the idle servers of one kind.
type pool struct {
	start func() (*Server, error)
	lent  chan struct{} // holds one for each server that a test has; its room is how many tests may have one at once

	mu   sync.Mutex
	idle []*Server // guarded by mu
}

var (
	singles  = &pool{start: func() (*Server, error) { return startSingle() }, lent: make(chan struct{}, 100)}
	clusters = &pool{start: func() (*Server, error) { return startNodes(clusterSize, "--cluster-node-timeout", "5000") },
		lent: make(chan struct{}, 2)} // a start costs three processes and seconds

	// replicated clusters soon take a silent node for dead, and go on with the slots of the others meanwhile.
	replicated = &pool{start: func() (*Server, error) {
		return startNodes(2*clusterSize, "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0")
	}, lent: make(chan struct{}, 2)}
)

// kept is whether somebody will stop the idle servers: Main, which writes it before the first test.
var kept bool

var (
	ends  []func() // from AtEnd; guarded by endMu
	endMu sync.Mutex
)

// AtEnd lets Main call end when all tests have ended: for resources that the tests of a package share.
func AtEnd(end func()) {
	endMu.Lock()
	defer endMu.Unlock()
	ends = append(ends, end)
}

// Main runs the tests of a package, stops every server that they used, removes what they have built, and fails when a goroutine is
// left. Call it as the only statement of TestMain.
func Main(m *testing.M, options ...goleak.Option) { os.Exit(run(m, options...)) }

func run(m *testing.M, options ...goleak.Option) int {
	// More tests run at once than there are processors, unless -parallel says how many: tests with a server mostly wait.
	_ = flag.Set("test.parallel", "16") // flag.Parse lets the command line have the last word
	flag.Parse()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // many small values that live shortly: memory is cheaper than time
	}
	kept = true
	code := m.Run()
	for _, end := range ends { // no test is left that could hold the lock
		end()
	}
	for _, b := range slices.Concat(singles.idle, clusters.idle, replicated.idle) {
		b.stop()
	}
	if built != "" {
		_ = os.RemoveAll(built)
	}
	options = append(options, redialing)
	if err := goleak.Find(options...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines left when all tests had ended:", err)
		code = 1
	}
	return code
}

// redialing is a goroutine of go-redis that sleeps a second after refused connections, even when its client is closed.
var redialing = goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")

// lend takes an idle server or starts one, and takes it back when the test ends.
func lend(t testing.TB, p *pool) *Server {
	t.Helper()
	p.lent <- struct{}{}
	t.Cleanup(func() { <-p.lent })
	s := p.pop()
	for s != nil && !s.reset() {
		s.stop()
		s = p.pop()
	}
	if s == nil {
		var err error
		s, err = p.start()
		check.Must(t, err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if kept {
			p.idle = append(p.idle, s)
		} else {
			s.stop()
		}
	})
	return s
}

func (p *pool) pop() *Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	s := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return s
}

func startSingle(args ...string) (*Server, error) {
	n, err := onFreePorts(func() (*node, error) { return tryNode(args) })
	if err != nil {
		return nil, err
	}
	return (&Server{nodes: []*node{n}}).ready()
}

// ready notes where the server is, and the configuration that a later reset compares with.
func (s *Server) ready() (*Server, error) {
	var addrs []string
	for _, n := range s.nodes {
		config, err := n.readConfig()
		if err != nil {
			s.stop()
			return nil, err
		}
		s.config, addrs = append(s.config, config), append(addrs, n.addr)
	}
	return s.at(addrs), nil
}

func (n *node) readConfig() (config map[string]string, err error) {
	err = withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
		config, err = client.ConfigGet(ctx, "*").Result()
		if err == nil && config["cluster-enabled"] == "yes" {
			var nodes string
			nodes, err = client.ClusterNodes(ctx).Result()
			config["slots of its own"] = strings.Join(ownLine(nodes)[8:], " ") // and those on their way
		}
		return err
	})
	return config, err
}

// reset makes the server as good as new for the next test, and says no when it cannot: a test may have killed a node,
// paused it, changed its configuration or moved a slot.
func (s *Server) reset() bool {
	for i, n := range s.nodes {
		// Keys, scripts, users, and the connections that an earlier test left open go. A replica follows its master.
		if withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
			err := errors.Join(client.ClientKillByFilter(ctx, "TYPE", "normal").Err(),
				client.ClientKillByFilter(ctx, "TYPE", "pubsub").Err(), client.ScriptFlush(ctx).Err())
			users, failed := client.Do(ctx, "ACL", "USERS").StringSlice()
			for _, user := range slices.DeleteFunc(users, func(user string) bool { return user == "default" }) {
				failed = errors.Join(failed, client.Do(ctx, "ACL", "DELUSER", user).Err())
			}
			err = errors.Join(err, failed)
			if flushed := client.FlushAll(ctx).Err(); !redis.IsReadOnlyError(flushed) { // last, as a command of theirs may still have come
				err = errors.Join(err, flushed)
			}
			return err
		}) != nil {
			return false
		}
		config, err := n.readConfig()
		if err != nil || !maps.Equal(config, s.config[i]) {
			return false
		}
	}
	return s.awaitCluster() == nil
}

func (s *Server) stop() {
	for _, n := range s.nodes {
		n.stop()
	}
}
