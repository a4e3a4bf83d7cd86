package faults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

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
	_ = w.conn.SetReadDeadline(time.Now().Add(testkit.Limit))
	_, err := w.replies.ReadByte()
	failIf(w.t, err == nil || errors.Is(err, os.ErrDeadlineExceeded), "the fault did not strike: want a connection that ends, got %v", err)
	return err
}

// expectSilence checks that what is sent is taken, that nothing comes back, and that nobody ends the connection.
func (w *witness) expectSilence(during time.Duration) {
	w.t.Helper()
	_, err := io.WriteString(w.conn, "PING\r\n")
	_ = w.conn.SetReadDeadline(time.Now().Add(during))
	if _, silent := w.replies.ReadByte(); err != nil || !errors.Is(silent, os.ErrDeadlineExceeded) {
		w.t.Errorf("the fault did not strike: want a connection on which nothing arrives, got %v and %v", err, silent)
	}
}

// info reads one number that Redis tells of itself.
func (d *drill) info(section, name string) int {
	d.t.Helper()
	text, err := d.admin.Info(d.ctx, section).Result()
	d.check("ask redis about itself", err)
	return numberIn(d.t, text, name)
}

// numberIn finds a number in what Redis tells of itself.
func numberIn(t testing.TB, info, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + `:(?:count=)?(\d+)`).FindStringSubmatch(info)
	stopIf(t, found == nil, "want %s told by redis, got\n%s", name, info)
	number, _ := strconv.Atoi(found[1])
	return number
}

// killClients ends all connections but its own by CLIENT KILL, and looks whether any is left of those before.
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

// connections are the ids of those that Redis knows.
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
