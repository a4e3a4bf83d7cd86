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
	mini *miniredis.Miniredis
	stop chan struct{}
	aged sync.WaitGroup
}

// tick is how often keys grow older: a key with a time to live outlives it by as much at most.
const tick = time.Second

// Start runs a server on a port of 127.0.0.1; 0 takes a free one. The caller closes it.
func Start(port int) (*Server, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("port: expected 0 to 65535, found %d", port)
	}
	mini := miniredis.NewMiniRedis()
	if err := mini.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
		return nil, fmt.Errorf("start the embedded redis: %w", err)
	}
	s := &Server{mini: mini, stop: make(chan struct{})}
	s.aged.Go(s.age)
	return s, nil
}

// age lets keys expire, which miniredis does not do by itself. Its own ClockTTL would look at every key before every
// command: with 5,000 models that made a batch of starts a hundred times slower.
func (s *Server) age() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var last time.Time
	for {
		select {
		case <-s.stop:
			return
		case now := <-ticker.C:
			if last.IsZero() {
				last = now.Add(-tick)
			}
			s.mini.FastForward(now.Sub(last))
			last = now
		}
	}
}

// URL is the address to connect to.
func (s *Server) URL() string { return "redis://" + s.mini.Addr() }

// Port is where it listens on 127.0.0.1.
func (s *Server) Port() string { return s.mini.Port() }

// Close ends the server and every connection to it.
func (s *Server) Close() {
	close(s.stop)
	s.aged.Wait()
	s.mini.Close()
}
