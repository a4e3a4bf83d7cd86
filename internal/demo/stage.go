package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/scripts"
)

// stage is what a demo stands on: a Redis, a web server with feeds, connections, and a directory for what is fetched.
type stage struct {
	name  string // of the queue
	redis *embedded.Server
	feeds *feeds
	site  string         // the address of the feeds
	queue *scripts.Store // for the daemons
	seats *scripts.Store // for the audience, with connections of its own
	send  redis.UniversalClient
	dir   string

	closers []func() error // in the order of opening
}

// slowPace makes the slow feed take about a second and a half.
const slowPace = 200 * time.Millisecond

// build opens everything; what it has opened before an error is closed again.
func build(port int, queue string) (*stage, error) {
	s := &stage{name: queue, feeds: newFeeds(slowPace)}
	if err := errors.Join(s.openRedis(port), s.openFeeds(), s.openDir()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	var err error
	if s.queue, _, err = s.connect(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.seats, s.send, err = s.connect(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close undoes build, the last first.
func (s *stage) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *stage) onClose(do func() error) { s.closers = append(s.closers, do) }

func (s *stage) openRedis(port int) (err error) {
	if s.redis, err = embedded.Start(port); err != nil {
		return err
	}
	s.onClose(func() error {
		s.redis.Close()
		return nil
	})
	return nil
}

func (s *stage) openFeeds() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("open the feeds: %w", err)
	}
	s.site = "http://" + listener.Addr().String()
	server := &http.Server{Handler: s.feeds, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.onClose(func() error {
		err := server.Close()
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return err
	})
	return nil
}

func (s *stage) openDir() (err error) {
	if s.dir, err = os.MkdirTemp("", "refreshd-demo-"); err != nil {
		return fmt.Errorf("make a directory for what is fetched: %w", err)
	}
	s.onClose(func() error { return os.RemoveAll(s.dir) })
	return nil
}

func (s *stage) connect() (*scripts.Store, redis.UniversalClient, error) {
	clients, err := scripts.Connect(s.redis.URL(), scripts.ConnectOptions{ClientName: "refreshd-demo"})
	if err != nil {
		return nil, nil, err
	}
	s.onClose(clients.Close)
	store, err := scripts.New(clients, scripts.Config{Queue: s.name})
	return store, clients.Write, err
}

// outside is where the director pushes messages, as a program in any language would.
func (s *stage) outside() outside {
	push := func(list string) func(context.Context, string) error {
		return func(ctx context.Context, message string) error {
			if err := s.send.RPush(ctx, list, message).Err(); err != nil {
				return fmt.Errorf("push a message: %w", err)
			}
			return nil
		}
	}
	return outside{control: push(s.seats.Keys.Control()), output: push(s.seats.Keys.Output())}
}

func (s *stage) introduction() introduction {
	k := s.seats.Keys
	return introduction{
		title: "refreshd demo: hours are seconds, all else is real. Feeds: " + s.site,
		cli:   "redis-cli -p " + s.redis.Port(),
		commands: []string{
			"HGETALL " + k.Model(uidFlaky),
			"XRANGE " + k.Journal() + " - +",
			"LRANGE " + k.History(uidHangs) + " 0 -1",
			"ZRANGE " + k.Due() + " 0 -1 WITHSCORES",
			"XRANGE " + k.Outbox() + " - +",
			"HGETALL " + k.Stats(),
		},
	}
}
