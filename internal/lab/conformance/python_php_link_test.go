package conformance_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// link relays between a worker and Redis. It can fall silent, as a firewall that has forgotten its connections: nobody is notified, and nothing
// arrives.
type link struct {
	address string
	redis   string
	copying sync.WaitGroup

	mu   sync.Mutex
	open map[*joint]bool           // guarded by mu
	drop func(words []string) bool // guarded by mu: the connection on which such a command comes falls silent
}

// joint is a connection of a worker, and its own to Redis.
type joint struct {
	worker, redis net.Conn
	mute          bool // guarded by mu of the link
}

func newLink(t *testing.T, s *testkit.Server) *link {
	t.Helper()
	listener := check.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &link{address: "redis://" + listener.Addr().String(), redis: s.Addr, open: map[*joint]bool{}}
	l.copying.Go(func() {
		for {
			worker, err := listener.Accept()
			if err != nil {
				return
			}
			l.join(worker)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		for j := range l.open {
			_, _ = j.worker.Close(), j.redis.Close()
		}
		l.mu.Unlock()
		l.copying.Wait()
	})
	return l
}

func (l *link) join(worker net.Conn) {
	redis, err := net.Dial("tcp", l.redis)
	if err != nil {
		_ = worker.Close()
		return
	}
	j := &joint{worker: worker, redis: redis}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[j] = true
	l.copying.Go(func() { l.copy(j, j.redis, j.worker) })
	l.copying.Go(func() { l.copy(j, j.worker, j.redis) })
}

// copy carries what comes, and swallows it once the connection is mute. Each side writes a command in one piece.
func (l *link) copy(j *joint, to io.WriteCloser, from io.Reader) {
	defer func() { _ = to.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		l.mu.Lock()
		if l.drop != nil && to == io.WriteCloser(j.redis) && l.drop(wordsOf(string(buffer[:n]))) {
			j.mute = true
		}
		mute := j.mute
		l.mu.Unlock()
		if !mute {
			_, _ = to.Write(buffer[:n])
		}
	}
}

// wordsOf are the words of a command: every second line.
func wordsOf(raw string) (words []string) {
	for i, line := range strings.Split(raw, "\r\n") {
		if i > 0 && i%2 == 0 {
			words = append(words, line)
		}
	}
	return words
}

// mute lets all connections that are open fall silent for ever.
func (l *link) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for j := range l.open {
		j.mute = true
	}
}

// dropping lets the connections on which such a command comes fall silent from now on.
func (l *link) dropping(drop func(words []string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop = drop
}
