package testkit

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

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
	clusters = &pool{start: startCluster, lent: make(chan struct{}, 2)} // a start costs three processes and seconds

	replicated = &pool{start: startReplicated, lent: make(chan struct{}, 2)} // six
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
	b, err := p.take()
	must(t, err)
	t.Cleanup(func() { p.giveBack(b) })
	return b.server()
}

// private starts a backend for one test only.
func private(t testing.TB, start func() (*backend, error)) *Server {
	t.Helper()
	b, err := start()
	must(t, err)
	t.Cleanup(b.stop)
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

func (p *pool) take() (*backend, error) {
	for b := p.pop(); b != nil; b = p.pop() {
		if b.reset() {
			return b, nil
		}
		b.stop()
	}
	return p.start()
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

func (p *pool) giveBack(b *backend) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !kept {
		b.stop()
		return
	}
	p.idle = append(p.idle, b)
}
