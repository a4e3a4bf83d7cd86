package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// servers are a Redis, a web server with feeds, connections, and a directory for downloads.
type servers struct {
	redis *embedded.Server
	feeds *feeds
	site  string // the address of the feeds
	store *store.Store
	dir   string

	closers []func() error // in the order of opening
}

// open opens everything, or closes it again after an error.
func open(port int, queue string) (s *servers, err error) {
	s = &servers{feeds: newFeeds()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.redis, err = embedded.Start(port); err != nil {
		return s, err
	}
	s.onClose(func() error { s.redis.Close(); return nil })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, fmt.Errorf("open the feeds: %w", err)
	}
	s.site = "http://" + listener.Addr().String()
	server, served := &http.Server{Handler: s.feeds, ReadHeaderTimeout: 5 * time.Second}, make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.onClose(func() error {
		err := server.Close()
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return err
	})
	if s.dir, err = os.MkdirTemp("", "refreshd-demo-"); err != nil {
		return s, fmt.Errorf("make a directory for what is fetched: %w", err)
	}
	s.onClose(func() error { return os.RemoveAll(s.dir) })
	clients, err := redis.Connect(s.redis.URL(), redis.ConnectOptions{ClientName: "refreshd-demo"})
	if err != nil {
		return s, err
	}
	s.onClose(clients.Close)
	s.store, err = store.New(clients, store.Config{Queue: queue})
	return s, err
}

func (s *servers) onClose(do func() error) { s.closers = append(s.closers, do) }

func (s *servers) close() error {
	var errs []error
	for _, do := range slices.Backward(s.closers) {
		errs = append(errs, do())
	}
	return errors.Join(errs...)
}

func (s *servers) push(ctx context.Context, list string, message map[string]any) error {
	text, _ := json.Marshal(message) // texts and numbers only
	return redis.Wrap(s.store.Clients.Write.RPush(ctx, list, text).Err(), "push a message")
}

func (s *servers) introduction(pages string) introduction {
	k := s.store.Keys
	return introduction{
		pages: pages,
		title: "refreshd demo: hours are seconds, all else is real. Feeds: " + s.site,
		cli:   "redis-cli -p " + s.redis.Port(),
		commands: []string{
			"HGETALL " + k.Model(uidFlaky),
			"XRANGE " + k.Journal + " - +",
			"LRANGE " + k.History(uidHangs) + " 0 -1",
			"ZRANGE " + k.Due + " 0 -1 WITHSCORES",
			"XRANGE " + k.Outbox + " - +",
			"HGETALL " + k.Stats,
		},
	}
}
