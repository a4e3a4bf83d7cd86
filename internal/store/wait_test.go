package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// Of 18 MiB in the input list alone, unless the long tests run: all lists are waited for in the same way.
func TestAWaiterIsToldOfAnEntryOf64MiBAndReceivesHardlyAnyOfIt(t *testing.T) {
	t.Parallel()
	const bound = 16 << 20 // the buffers of two sockets of the kernel hold some megabytes
	b, huge := newBench(t, testkit.Redis(t)), strings.Repeat("x", long.Or(18<<20, 64<<20))
	idle, err := New(connect(t, b.server.Addr, ConnectOptions{}), Config{Queue: benchQueue})
	must(t, err)
	waits := map[string]func(context.Context) (bool, error){b.Keys.Input: idle.Pool().WaitInput}
	if long.Enabled() {
		waits[b.Keys.Output], waits[b.Keys.Control], waits[b.Keys.Wake] = idle.WaitOutput, idle.WaitControl, idle.WaitWake
	}
	info := func(section, name string) (n int) {
		_, found, _ := strings.Cut(b.redis.Info(t.Context(), section).Val(), name+":")
		_, err := fmt.Sscan(found, &n)
		must(t, err)
		return n
	}
	for key, wait := range waits {
		told := make(chan error, 1)
		go func() {
			for { // again whenever nothing has come for a second, as loops do also when a busy Redis has not answered in time
				if found, err := wait(t.Context()); found || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					told <- err
					return
				}
			}
		}()
		testkit.Eventually(t, "it waits", func() bool { return info("clients", "blocked_clients") == 1 })
		before := info("stats", "total_net_output_bytes")
		must(t, b.redis.RPush(t.Context(), key, huge).Err())
		must(t, testkit.Await(t, told, "a word of "+key))
		sent := info("stats", "total_net_output_bytes") - before
		failIf(t, sent > bound, "%s: the waiter was sent %d bytes, want %d at most", key, sent, bound)
		left := b.redis.LLen(t.Context(), key).Val()
		failIf(t, left != 1 && key != b.Keys.Wake, "%s: %d entries are left, want the one", key, left)
		b.server.Flush(t)
	}
}

// fakeConn is a connection on which these answers arrive.
type fakeConn struct {
	net.Conn
	io.Reader
}

func (c fakeConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func TestABoundedConnectionPassesAllButLargeValues(t *testing.T) {
	value := func(mark string, size int) string {
		return mark + strconv.Itoa(size) + "\r\n" + strings.Repeat("$", size) + "\r\n"
	}
	fits := value("$", maxWaited)
	for name, test := range map[string]struct {
		passed, refused string
	}{
		"nothing":                      {"", ""},
		"lines":                        {"+OK\r\n-ERR $99999999\r\n:123456789\r\n_\r\n,1.5\r\n#t\r\n$-1\r\n*-1\r\n" + "+" + strings.Repeat("$", 2*maxWaited) + "\r\n", ""},
		"values that fit":              {fits + fits + value("$", 0) + fits + "+OK\r\n", ""},
		"a list of many":               {"*3\r\n" + fits + value("$", 1) + fits, ""},
		"a value that looks like one":  {"$11\r\n$9999999999\r\n\r\n+OK\r\n", ""},
		"a large value":                {"", value("$", maxWaited+1)},
		"a large value behind others":  {fits + "+OK\r\n*2\r\n$3\r\nkey\r\n", value("$", maxWaited+1)},
		"a large verbatim text":        {"", value("=", maxWaited+1)},
		"a large error":                {"", value("!", maxWaited+1)},
		"a size that no number can be": {"", "$" + strings.Repeat("9", 30) + "\r\n"},
	} {
		for kind, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader} {
			conn := &boundedConn{Conn: fakeConn{Reader: cut(strings.NewReader(test.passed + test.refused))}}
			var got bytes.Buffer
			_, err := io.Copy(&got, struct{ io.Reader }{conn})
			if refused := test.refused != ""; errors.Is(err, errLarge) != refused || !refused && got.String() != test.passed {
				t.Errorf("%s, %s: %d bytes and %v, want %d and refused: %t", name, kind, got.Len(), err, len(test.passed), refused)
			}
			failIf(t, got.Len() > len(test.passed)+headerSize,
				"%s, %s: %d bytes were passed, want %d at most", name, kind, got.Len(), len(test.passed)+headerSize)
		}
	}
}

func TestAWaitingCallReturnsAtOnceAndTakesNothingButAWakeCall(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		lists := keys{"-output": list{"a", "b"}, "-control": list{"c", "d"}, "-input": list{"e", "f"}}
		b.seed(and(lists, keys{":wake": list{"1"}}))
		for name, wait := range map[string]func(context.Context) (bool, error){
			"output": b.WaitOutput, "control": b.WaitControl, "input": b.Pool().WaitInput, "wake": b.WaitWake,
		} {
			found, err := wait(t.Context())
			failIf(t, !found || err != nil, "%s: %v, %v; want true", name, found, err)
		}
		b.expect(lists)
	})
}

func TestWaitingForNothingEndsByItself(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		var waiting sync.WaitGroup
		for _, wait := range []func(context.Context) (bool, error){b.WaitOutput, b.WaitWake} {
			waiting.Go(func() {
				found, err := wait(context.Background())
				failIf(t, found || err != nil, "waiting for nothing = %v, %v; want false", found, err)
			})
		}
		waiting.Wait()
	})
}
