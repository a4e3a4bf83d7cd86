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
)

// pool holds the idle backends of one kind.
type pool struct {
	start func() (*backend, error)
	lent  chan struct{} // holds one for each backend that a test has; its room is how many tests may have one at once

	mu   sync.Mutex
	idle []*backend // guarded by mu
}

var (
	singles  = &pool{start: func() (*backend, error) { return startSingle() }, lent: make(chan struct{}, 100)}
	clusters = &pool{start: func() (*backend, error) { return startNodes(clusterSize, "--cluster-node-timeout", "5000") },
		lent: make(chan struct{}, 2)} // a start costs three processes and seconds

	// replicated clusters soon take a silent node for dead, and go on with the slots of the others meanwhile.
	replicated = &pool{start: func() (*backend, error) {
		return startNodes(2*clusterSize, "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0")
	}, lent: make(chan struct{}, 2)}
)

// kept is whether somebody will stop the idle backends: Main, which writes it before the first test.
var kept bool

var (
	ends  []func() // what AtEnd was told; guarded by endMu
	endMu sync.Mutex
)

// AtEnd lets Main call end when all tests have ended: for what the tests of a package share.
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

// lend takes an idle backend or starts one, and takes it back when the test ends.
func lend(t testing.TB, p *pool) *Server {
	t.Helper()
	p.lent <- struct{}{}
	t.Cleanup(func() { <-p.lent })
	b := p.pop()
	for b != nil && !b.reset() {
		b.stop()
		b = p.pop()
	}
	if b == nil {
		var err error
		b, err = p.start()
		Must(t, err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if kept {
			p.idle = append(p.idle, b)
		} else {
			b.stop()
		}
	})
	return b.server()
}

func (b *backend) server() *Server {
	var addrs []string
	for _, n := range b.nodes {
		addrs = append(addrs, n.addr)
	}
	s := newServer(addrs)
	s.backend = b
	return s
}

func (p *pool) pop() *backend {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	b := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return b
}

// backend is what runs behind one Server: a single redis-server, or the nodes of a cluster.
type backend struct {
	nodes  []*node
	config []map[string]string // of each node, as it was when the backend had started
}

func startSingle(args ...string) (*backend, error) {
	n, err := onFreePorts(func() (*node, error) { return tryNode(args) })
	if err != nil {
		return nil, err
	}
	b := &backend{nodes: []*node{n}}
	return b.ready()
}

// ready notes the configuration that a later reset compares with.
func (b *backend) ready() (*backend, error) {
	for _, n := range b.nodes {
		config, err := n.readConfig()
		if err != nil {
			b.stop()
			return nil, err
		}
		b.config = append(b.config, config)
	}
	return b, nil
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

// reset makes the backend as good as new for the next test, and says no when it cannot: a test may have killed a node,
// paused it, changed its configuration or moved a slot.
func (b *backend) reset() bool {
	for i, n := range b.nodes {
		// Keys, scripts and the connections that an earlier test left open go. A replica follows its master.
		if withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
			err := errors.Join(client.ClientKillByFilter(ctx, "TYPE", "normal").Err(),
				client.ClientKillByFilter(ctx, "TYPE", "pubsub").Err(), client.ScriptFlush(ctx).Err())
			if flushed := client.FlushAll(ctx).Err(); !redis.IsReadOnlyError(flushed) { // last, as a command of theirs may still have come
				err = errors.Join(err, flushed)
			}
			return err
		}) != nil {
			return false
		}
		config, err := n.readConfig()
		if err != nil || !maps.Equal(config, b.config[i]) {
			return false
		}
	}
	return b.awaitCluster() == nil
}

func (b *backend) stop() {
	for _, n := range b.nodes {
		n.stop()
	}
}
