package embedded

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// InBubble returns a server for a bubble of testing/synctest, in which it must be called, and a client of it. It is behind no network, so that its
// clock and every call that blocks follow the clock of the bubble, which costs no time. The caller closes both.
func InBubble() (*miniredis.Miniredis, *redis.Client) {
	mini := miniredis.NewMiniRedis()
	return mini, redis.NewClient(&redis.Options{
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return dial(mini) },
		MaxRetries:               -1,
		ConnMaxIdleTime:          -1, // a day may pass between two commands
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// buffered is a connection that keeps what is written until the server reads it. A pipe keeps nothing: server and client would wait for each
// other in the middle of a long pipeline, whose first replies nobody reads while the last commands are still written.
type buffered struct {
	net.Conn
	written chan []byte
	closing sync.Once
	closed  chan struct{}
}

func dial(mini *miniredis.Miniredis) (net.Conn, error) {
	conn, err := mini.Dial()
	if err != nil {
		return nil, err
	}
	b := &buffered{Conn: conn, written: make(chan []byte, 10_000), closed: make(chan struct{})}
	go func() {
		for {
			select {
			case bytes := <-b.written:
				_, _ = b.Conn.Write(bytes)
			case <-b.closed:
				return
			}
		}
	}()
	return b, nil
}

// Write returns at once.
func (b *buffered) Write(bytes []byte) (int, error) {
	select {
	case b.written <- slices.Clone(bytes):
		return len(bytes), nil
	case <-b.closed:
		return 0, net.ErrClosed
	}
}

// SetWriteDeadline does nothing: nobody waits.
func (*buffered) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is one for reading.
func (b *buffered) SetDeadline(at time.Time) error { return b.SetReadDeadline(at) }

// Close ends the connection.
func (b *buffered) Close() error {
	b.closing.Do(func() { close(b.closed) })
	return b.Conn.Close()
}
