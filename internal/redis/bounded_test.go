package redis

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

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
