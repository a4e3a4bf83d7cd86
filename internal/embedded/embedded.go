// Package embedded runs a Redis inside this process, so that refreshd can be tried on a machine that has none.
//
// It is for demonstrations and development: it keeps everything in memory, forgets it at the end, and anybody who can
// connect can stop it. Therefore it listens on the loopback interface only.
package embedded

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
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
