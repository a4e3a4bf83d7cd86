package demo

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/worker"
	"github.com/refreshd/refreshd/worker/handlers"
)

type daemons map[string]func(context.Context) error

func newDaemons(s *servers, log *zerolog.Logger) (daemons, *workers, error) {
	d, err := dispatcher.New(dispatcher.RoomsOf(s.store), dispatcher.Config{Log: log})
	if err != nil {
		return nil, nil, err
	}
	p, err := poller.New(poller.RoomsOf(s.store), poller.Config{Log: log})
	if err != nil {
		return nil, nil, err
	}
	fetch, err := handlers.Fetch(s.dir, handlers.FetchOptions{AllowPrivate: true}) // its feeds are on this machine
	if err != nil {
		return nil, nil, err
	}
	// No grace: a deploy of the demo must interrupt attempts.
	pool, err := worker.New(s.store.Pool(), fetch, worker.Config{Concurrency: 16, Grace: -1, Log: log})
	if err != nil {
		return nil, nil, err
	}
	w := newWorkers(pool.Run)
	return daemons{"dispatcher": d.Run, "poller": p.Run, "workers": w.run}, w, nil
}

// workers can be stopped and started again, as a deploy does.
type workers struct {
	work    func(ctx context.Context) error // until ctx ends
	stop    chan struct{}
	restart chan struct{}
	stopped chan struct{} // sent to when the last worker has ended after stop
}

func newWorkers(work func(ctx context.Context) error) *workers {
	return &workers{work, make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
}

// run works until ctx ends or the work fails, and pauses from each stop to the next restart.
func (w *workers) run(ctx context.Context) error {
	for {
		working, end := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- w.work(working) }()
		select {
		case <-ctx.Done():
		case <-w.stop:
		case err := <-done:
			done <- err
		}
		end()
		if err := <-done; err != nil || ctx.Err() != nil {
			return err
		}
		w.stopped <- struct{}{}
		select {
		case <-ctx.Done():
			return nil
		case <-w.restart:
		}
	}
}
