package faults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// link is the network between the daemons and Redis: a TCP proxy whose weather can change. It does what the toxics of toxiproxy do
// (latency, bandwidth, slow_close, reset_peer, timeout), and leaves a connection half-open for ever, which toxiproxy cannot.
type link struct {
	listener net.Listener
	done     sync.WaitGroup
	flying   atomic.Int64 // pieces on their way

	mu      sync.Mutex
	target  string             // guarded by mu
	weather weather            // guarded by mu
	lines   map[*line]struct{} // guarded by mu
	closed  bool               // guarded by mu
}

// weather changes bytes on their way, in both directions.
type weather struct {
	delay, jitter time.Duration // each piece arrives so much later
	perSecond     int           // bytes of each connection; 0: any number
	slowClose     time.Duration // the end of a connection is passed on so much later
	dark          bool          // new connections are accepted, and nothing arrives
}

type line struct {
	link           *link
	client, server *net.TCPConn
	dark           atomic.Bool // nothing arrives any more, nor does the end
	closing        sync.Once
}

type piece struct {
	bytes []byte
	due   time.Time
}

func newLink(t testing.TB, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &link{target: target, listener: listener, lines: map[*line]struct{}{}}
	l.done.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *link) URL() string { return "redis://" + l.listener.Addr().String() }

// turn lets new connections lead to another server, as an address does that moves with the master.
func (l *link) turn(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

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
		l.mu.Lock()
		target := l.target
		l.mu.Unlock()
		server, err := net.Dial("tcp", target)
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

// carry moves bytes one way. Reading and writing are separate, so that a delay does not narrow the way.
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

// witness is a connection by the way that the daemons take, without a client that would hide what happens to it.
type witness struct {
	t       testing.TB
	conn    net.Conn
	replies *bufio.Reader
}

// witness connects before the fault and says so by a first round trip.
func (d *drill) witness() *witness {
	d.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.address, "redis://"))
	d.check("connect a witness", err)
	d.t.Cleanup(func() { _ = conn.Close() })
	w := &witness{d.t, conn, bufio.NewReader(conn)}
	w.echo(1)
	return w
}

// echo sends so many bytes to Redis and back, and returns how long that took.
func (w *witness) echo(bytes int) time.Duration {
	w.t.Helper()
	began := time.Now()
	text := strings.Repeat("x", bytes)
	_, err := fmt.Fprintf(w.conn, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", bytes, text)
	if err == nil {
		_, err = io.ReadFull(w.replies, make([]byte, len(fmt.Sprintf("$%d\r\n%s\r\n", bytes, text))))
	}
	failIf(w.t, err != nil, "want an echo of %d bytes, got %v", bytes, err)
	return time.Since(began)
}

// expectSlow checks that an echo takes so long at least: no machine is too fast for that.
func (w *witness) expectSlow(bytes int, least time.Duration) {
	w.t.Helper()
	took := w.echo(bytes)
	failIf(w.t, took < least, "the fault did not strike: want %d bytes echoed after %s at least, got %s", bytes, least, took)
}

// expectEnd waits for the end of the connection and returns how it ended: io.EOF after a close, another error after a reset.
func (w *witness) expectEnd() error {
	w.t.Helper()
	_ = w.conn.SetReadDeadline(time.Now().Add(check.Limit))
	_, err := w.replies.ReadByte()
	failIf(w.t, err == nil || errors.Is(err, os.ErrDeadlineExceeded), "the fault did not strike: want a connection that ends, got %v", err)
	return err
}

// expectSilence checks that the server takes the input, that nothing comes back, and that nobody ends the connection.
func (w *witness) expectSilence(during time.Duration) {
	w.t.Helper()
	_, err := io.WriteString(w.conn, "PING\r\n")
	_ = w.conn.SetReadDeadline(time.Now().Add(during))
	if _, silent := w.replies.ReadByte(); err != nil || !errors.Is(silent, os.ErrDeadlineExceeded) {
		w.t.Errorf("the fault did not strike: want a connection on which nothing arrives, got %v and %v", err, silent)
	}
}

func (d *drill) info(section, name string) int {
	d.t.Helper()
	text, err := d.admin.Info(d.ctx, section).Result()
	d.check("ask redis about itself", err)
	return numberIn(d.t, text, name)
}

// numberIn finds a number in INFO.
func numberIn(t testing.TB, info, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + `:(?:count=)?(\d+)`).FindStringSubmatch(info)
	stopIf(t, found == nil, "want %s told by redis, got\n%s", name, info)
	number, _ := strconv.Atoi(found[1])
	return number
}

// killClients ends all connections but its own by CLIENT KILL, and checks whether any of the old ones is left.
func (d *drill) killClients() {
	d.t.Helper()
	before := d.connections()
	killed, err := d.admin.ClientKillByFilter(d.ctx, "TYPE", "normal").Result()
	d.check("kill connections", err)
	left := 0
	for id := range d.connections() {
		if before[id] {
			left++
		}
	}
	if killed < 2 || left > 1 { // the killer itself
		d.t.Errorf("the fault did not strike: want all of %d connections killed, got %d, and %d left", len(before), killed, left)
	}
	d.struck += int(killed)
}

func (d *drill) connections() map[string]bool {
	d.t.Helper()
	list, err := d.admin.ClientList(d.ctx).Result()
	d.check("list connections", err)
	ids := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^id=(\d+) `).FindAllStringSubmatch(list, -1) {
		ids[match[1]] = true
	}
	return ids
}

// forgetScripts flushes the scripts, and looks in the same transaction how many there were before and are after.
func (d *drill) forgetScripts() {
	d.t.Helper()
	var before, after *redis.StringCmd
	_, err := d.admin.TxPipelined(d.ctx, func(p redis.Pipeliner) error {
		before = p.Info(d.ctx, "memory")
		p.ScriptFlush(d.ctx)
		after = p.Info(d.ctx, "memory")
		return nil
	})
	d.check("flush the scripts", err)
	const scripts = "number_of_cached_scripts"
	had, left := numberIn(d.t, before.Val(), scripts), numberIn(d.t, after.Val(), scripts)
	failIf(d.t, had == 0 || left > 0, "the fault did not strike: want scripts forgotten, got %d before and %d after", had, left)
	d.struck += had
}

// deafness is for how long Redis does not listen.
const deafness = 2 * time.Second

// deafen lets Redis not listen for a while, which a PING has to feel.
func (d *drill) deafen(do func() error) {
	d.t.Helper()
	began := time.Now()
	d.check("deafen redis", do())
	d.check("ping", d.admin.Ping(d.ctx).Err())
	took := time.Since(began)
	failIf(d.t, took < deafness, "the fault did not strike: want a PING answered after %s, got %s", deafness, took)
}
