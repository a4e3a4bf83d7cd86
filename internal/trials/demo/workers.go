package demo

import (
	"context"
	"sync"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/worker"
	"github.com/refreshd/refreshd/worker/handlers"
)

// daemons are the real ones, in this process.
type daemons struct {
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
	workers    *workers
	dashboard  Dashboard // nil: none
	log        *zerolog.Logger
}

// concurrency lets every model of the demo be refreshed at the same time.
const concurrency = 16

func newDaemons(s *servers, log *zerolog.Logger) (*daemons, error) {
	d, err := dispatcher.New(s.daemon, dispatcher.Config{Log: log})
	if err != nil {
		return nil, err
	}
	p, err := poller.New(s.daemon, poller.Config{Log: log})
	if err != nil {
		return nil, err
	}
	fetch, err := handlers.Fetch(s.dir, handlers.FetchOptions{AllowPrivate: true}) // its feeds are on this machine
	if err != nil {
		return nil, err
	}
	// No grace: a deploy in the demo is to interrupt what is being done.
	pool, err := worker.New(s.daemon.Pool(), fetch, worker.Config{Concurrency: concurrency, Grace: -1, Log: log})
	if err != nil {
		return nil, err
	}
	return &daemons{dispatcher: d, poller: p, workers: newWorkers(pool.Run), log: log}, nil
}

// start runs the daemons until ctx ends; the returned function waits until they have ended.
func (d *daemons) start(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	parts := map[string]func(context.Context) error{"dispatcher": d.dispatcher.Run, "poller": d.poller.Run, "workers": d.workers.run}
	if d.dashboard != nil {
		parts["dashboard"] = d.dashboard.Run
	}
	for name, run := range parts {
		running.Go(func() {
			if err := run(ctx); err != nil {
				d.log.Error().Err(err).Msg("demo: " + name + " stopped")
			}
		})
	}
	return running.Wait
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

// run works until ctx ends or the work ends with an error, with a break from each stop to the next restart.
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
