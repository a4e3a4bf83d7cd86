// Package embedded runs a Redis inside this process, for demonstrations and development. It keeps everything in memory, and anybody who can connect
// can stop it; so it listens on the loopback interface only.
package embedded

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Server is a running embedded Redis.
type Server struct {
	mini      *miniredis.Miniredis
	stopAging func()
}

// Start runs a server on a port of 127.0.0.1; 0 takes a free one. The caller closes it.
func Start(port int) (*Server, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("port: expected 0 to 65535, found %d", port)
	}
	mini := miniredis.NewMiniRedis()
	if err := mini.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
		return nil, fmt.Errorf("start the embedded redis: %w", err)
	}
	return &Server{mini, Age(mini, time.Second)}, nil
}

// Age lets keys expire, which miniredis does not do by itself: a key with a time to live outlives it by a tick at most. Its own ClockTTL would
// look at every key before every command: with 5,000 models that made a batch of starts a hundred times slower. The caller calls the
// returned function before it closes the server.
func Age(mini *miniredis.Miniredis, tick time.Duration) (stop func()) {
	stopped, aging := make(chan struct{}), sync.WaitGroup{}
	ticker := time.NewTicker(tick)
	var last time.Time
	aging.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-stopped:
				return
			case now := <-ticker.C:
				if last.IsZero() {
					last = now.Add(-tick)
				}
				mini.FastForward(now.Sub(last))
				last = now
			}
		}
	})
	return func() {
		close(stopped)
		aging.Wait()
	}
}

// URL is the address to connect to.
func (s *Server) URL() string { return "redis://" + s.mini.Addr() }

// Port is where it listens on 127.0.0.1.
func (s *Server) Port() string { return s.mini.Port() }

// Close ends the server and every connection to it.
func (s *Server) Close() {
	s.stopAging()
	s.mini.Close()
}

// InBubble returns a server for a bubble of testing/synctest, in which it must be called, and a client of it. It is behind no network, so that its
// clock and every call that blocks follow the clock of the bubble, which costs no time. The caller closes both.
func InBubble() (*miniredis.Miniredis, *redis.Client) {
	mini := miniredis.NewMiniRedis()
	return mini, redis.NewClient(&redis.Options{
		Dialer: func(context.Context, string, string) (net.Conn, error) {
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
		},
		MaxRetries:               -1,
		ConnMaxIdleTime:          -1, // a day may pass between two commands
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// buffered keeps what is written until the server reads it. With an unbuffered pipe, client and server would wait for each other in a long pipeline.
type buffered struct {
	net.Conn
	written chan []byte
	closing sync.Once
	closed  chan struct{}
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

// SetWriteDeadline does nothing, as a write never waits.
func (*buffered) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is one for reading.
func (b *buffered) SetDeadline(at time.Time) error { return b.SetReadDeadline(at) }

// Close ends the connection.
func (b *buffered) Close() error {
	b.closing.Do(func() { close(b.closed) })
	return b.Conn.Close()
}
