package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// maxWaited is the largest value that a waiting call receives, in bytes.
const maxWaited = 64 << 10

// errLarge is the error of a waiting call whose answer is too large to be received.
var errLarge = errors.New("the answer is too large to be waited for")

// dialBounded dials as go-redis does, and bounds what is received.
func dialBounded(security *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: dialTimeout, TLSConfig: security})
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn}, nil
	}
}

// boundedConn is a connection to Redis that ends with errLarge before it passes on a value above the bound. Its size stands in front of
// it, so that nobody makes room for it. The reader has to give the connection up then.
type boundedConn struct {
	net.Conn
	header []byte // the beginning of the line that is being received
	value  int    // bytes that are still to come of a value and the end of its line
}

// headerSize is more than any header of a value has.
const headerSize = 32

// Read reads what Redis sends. The error is errLarge as soon as the header of a value above the bound is there.
func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		if rest = c.follow(rest); c.value > maxWaited+len("\r\n") {
			return 0, errLarge
		}
	}
	return n, err
}

// follow takes note of a part of what was received, and returns the rest: a part of a value, or a line up to its end. A value follows the
// line $<size>; of RESP3 also =<size> and !<size>.
func (c *boundedConn) follow(received []byte) (rest []byte) {
	if c.value > 0 {
		part := min(c.value, len(received))
		c.value -= part
		return received[part:]
	}
	line, rest, ended := bytes.Cut(received, []byte("\n"))
	c.header = append(c.header, line[:min(len(line), headerSize-len(c.header))]...)
	if !ended {
		return nil
	}
	if header := bytes.TrimSuffix(c.header, []byte("\r")); len(header) > 0 && bytes.IndexByte([]byte("$=!"), header[0]) >= 0 {
		size, err := strconv.Atoi(string(header[1:])) // out of range, it is the largest number
		if size >= 0 && (err == nil || errors.Is(err, strconv.ErrRange)) {
			c.value = max(size, size+len("\r\n"))
		}
	}
	c.header = c.header[:0]
	return rest
}
