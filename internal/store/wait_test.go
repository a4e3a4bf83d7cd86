package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestAWaiterIsToldOfAnEntryOf64MiBAndReceivesHardlyAnyOfIt(t *testing.T) {
	const size, bound = 64 << 20, 16 << 20 // the buffers of two sockets of the kernel hold some megabytes
	testkit.BothIfLong(t, func(t *testing.T, s *testkit.Server) {
		b := newBench(t, s)
		k := b.Keys
		for key, wait := range map[string]func(*Store, context.Context) (bool, error){
			k.Input: func(s *Store, ctx context.Context) (bool, error) { return s.Pool().WaitInput(ctx) }, k.Output: (*Store).WaitOutput, k.Control: (*Store).WaitControl, k.Wake: (*Store).WaitWake,
		} {
			proxy := newProxy(t, "nothing to cut")
			addr, err := proxy.Addr(s.Addr)
			must(t, err)
			idle, err := New(connect(t, addr, ConnectOptions{}), Config{Queue: benchQueue})
			must(t, err)
			told := make(chan error, 1)
			go func() { told <- awaitEntry(t.Context(), idle, wait) }()
			for proxy.Sent(key) == 0 {
				must(t, t.Context().Err())
			}
			must(t, b.redis.RPush(t.Context(), key, strings.Repeat("x", size)).Err())
			must(t, testkit.Await(t, told, "a word of "+key))
			if got := proxy.carried.Load(); got > bound {
				t.Errorf("%s: the waiter was sent %d bytes, want %d at most", key, got, bound)
			}
			if got := b.redis.LLen(t.Context(), key).Val(); got != 1 && key != k.Wake {
				t.Errorf("%s: %d entries are left, want the one", key, got)
			}
			s.Flush(t)
		}
	})
}

// awaitEntry waits again whenever nothing has come for a second, as loops do also when a busy Redis has not answered in time.
func awaitEntry(ctx context.Context, s *Store, wait func(*Store, context.Context) (bool, error)) error {
	for {
		if found, err := wait(s, ctx); found || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
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
			if got.Len() > len(test.passed)+headerSize {
				t.Errorf("%s, %s: %d bytes were passed, want %d at most", name, kind, got.Len(), len(test.passed)+headerSize)
			}
		}
	}
}
