package testkit

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// pool holds the idle fleets of one kind.
type pool struct {
	start func() (*fleet, error)
	lent  chan struct{} // holds one for each fleet that a test has; its room is how many tests may have one at once

	mu   sync.Mutex
	keep bool     // guarded by mu: whether somebody will stop the idle ones
	idle []*fleet // guarded by mu
}

var (
	singles  = &pool{start: func() (*fleet, error) { return startSingle() }, lent: make(chan struct{}, 100)}
	clusters = &pool{start: startCluster, lent: make(chan struct{}, 2)} // a start costs three processes and seconds
)

// Main runs the tests of a package, stops every server that they used, removes what they have built, and fails when a goroutine is
// left. Call it as the only statement of TestMain.
func Main(m *testing.M, options ...goleak.Option) { os.Exit(run(m, options...)) }

func run(m *testing.M, options ...goleak.Option) int {
	waitTogether()
	singles.open()
	clusters.open()
	code := m.Run()
	singles.close()
	clusters.close()
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

// waitTogether lets more tests run at once than there are processors, unless -parallel says how many: tests with a server mostly wait.
func waitTogether() {
	_ = flag.Set("test.parallel", "8") // flag.Parse lets the command line have the last word
	flag.Parse()
}

// redialing is a goroutine of go-redis that sleeps a second after refused connections, even when its client is closed.
var redialing = goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")

// lend takes an idle fleet or starts one, and takes it back when the test ends.
func lend(t testing.TB, p *pool) *Server {
	t.Helper()
	p.lent <- struct{}{}
	t.Cleanup(func() { <-p.lent })
	f, err := p.take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.giveBack(f) })
	return f.server()
}

// private starts a fleet for one test only.
func private(t testing.TB, start func() (*fleet, error)) *Server {
	t.Helper()
	f, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.stop)
	return f.server()
}

func (f *fleet) server() *Server {
	s := newServer(f.addrs())
	s.fleet = f
	return s
}

func (p *pool) take() (*fleet, error) {
	for f := p.pop(); f != nil; f = p.pop() {
		if f.reset() {
			return f, nil
		}
		f.stop()
	}
	return p.start()
}

func (p *pool) pop() *fleet {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	f := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return f
}

func (p *pool) giveBack(f *fleet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.keep {
		f.stop()
		return
	}
	p.idle = append(p.idle, f)
}

func (p *pool) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = true
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = false
	for _, f := range p.idle {
		f.stop()
	}
	p.idle = nil
}
