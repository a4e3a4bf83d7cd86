package faults

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// link is the network between the daemons and Redis: a TCP proxy whose weather can change. It does what the toxics of toxiproxy do
// (latency, bandwidth, slow_close, reset_peer, timeout), and leaves a connection half-open for ever, which toxiproxy cannot.
type link struct {
	target   string
	listener net.Listener
	done     sync.WaitGroup
	flying   atomic.Int64 // pieces on their way

	mu      sync.Mutex
	weather weather            // guarded by mu
	lines   map[*line]struct{} // guarded by mu
	closed  bool               // guarded by mu
}

// weather is what happens to bytes on their way, in both directions.
type weather struct {
	delay, jitter time.Duration // each piece arrives so much later
	perSecond     int           // bytes of each connection; 0: any number
	slowClose     time.Duration // the end of a connection is told so much later
	dark          bool          // new connections are accepted, and nothing arrives
}

// line is one connection through the link.
type line struct {
	link           *link
	client, server *net.TCPConn
	dark           atomic.Bool // nothing arrives any more, nor does the end
	closing        sync.Once
}

// piece is some bytes on their way.
type piece struct {
	bytes []byte
	due   time.Time
}

func newLink(t *testing.T, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &link{target: target, listener: listener, lines: map[*line]struct{}{}}
	l.done.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *link) URL() string { return "redis://" + l.listener.Addr().String() }

// change sets the weather of all connections.
func (l *link) change(w weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weather = w
}

func (l *link) now() weather {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weather
}

// each calls do for every open connection and returns how many there were.
func (l *link) each(do func(*line)) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range l.lines {
		do(line)
	}
	return len(l.lines)
}

// reset ends all connections as a firewall does: with RST, whatever is on its way.
func (l *link) reset() int { return l.each(func(line *line) { line.end(0) }) }

// darken leaves all connections half-open: both sides believe in them, and nothing arrives, for ever.
func (l *link) darken() int { return l.each(func(line *line) { line.dark.Store(true) }) }

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.listener.Close()
	l.each(func(line *line) { line.end(0) })
	l.done.Wait()
}

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.open(client.(*net.TCPConn), server.(*net.TCPConn))
	}
}

func (l *link) open(client, server *net.TCPConn) {
	one := &line{link: l, client: client, server: server}
	l.mu.Lock()
	defer l.mu.Unlock()
	one.dark.Store(l.weather.dark)
	l.lines[one] = struct{}{}
	l.done.Go(func() { one.carry(client, server) })
	l.done.Go(func() { one.carry(server, client) })
	if l.closed {
		one.end(0)
	}
}

// carry moves bytes one way. Reading and writing are apart, so that a delay does not narrow the way.
func (n *line) carry(from, to *net.TCPConn) {
	pieces := make(chan piece, 1000)
	n.link.done.Go(func() { n.write(to, pieces) })
	defer close(pieces)
	for {
		buffer := make([]byte, 4<<10)
		count, err := from.Read(buffer)
		w := n.link.now()
		if count > 0 {
			n.link.flying.Add(1)
			pieces <- piece{buffer[:count], time.Now().Add(w.delay + time.Duration(rand.Int64N(int64(w.jitter)+1)))}
		}
		if err != nil {
			n.link.flying.Add(1)
			pieces <- piece{due: time.Now().Add(w.slowClose)}
			return
		}
	}
}

// write ends the connection when the other side has, unless it is dark. It goes on taking what nobody gets.
func (n *line) write(to *net.TCPConn, pieces <-chan piece) {
	for p := range pieces {
		wait(time.Until(p.due))
		if n.dark.Load() {
			continue
		}
		if w := n.link.now(); w.perSecond > 0 {
			wait(time.Second * time.Duration(len(p.bytes)) / time.Duration(w.perSecond))
		}
		if _, err := to.Write(p.bytes); err != nil || p.bytes == nil {
			n.end(-1)
		}
		n.link.flying.Add(-1)
	}
}

// end closes both sides; linger 0 closes with RST.
func (n *line) end(linger int) {
	n.closing.Do(func() {
		for _, side := range []*net.TCPConn{n.client, n.server} {
			_ = side.SetLinger(linger)
			_ = side.Close()
		}
		go n.forget() // the caller may hold the lock
	})
}

func (n *line) forget() {
	n.link.mu.Lock()
	defer n.link.mu.Unlock()
	delete(n.link.lines, n)
}

func wait(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
