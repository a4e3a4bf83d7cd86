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
	crew       *crew
	log        *zerolog.Logger
}

// concurrency lets every model of the cast be refreshed at the same time.
const concurrency = 16

func newDaemons(s *stage, log *zerolog.Logger) (*daemons, error) {
	d, err := dispatcher.New(s.queue, dispatcher.Config{Log: log})
	if err != nil {
		return nil, err
	}
	p, err := poller.New(s.queue, poller.Config{Log: log})
	if err != nil {
		return nil, err
	}
	fetch, err := handlers.Fetch(s.dir, handlers.FetchOptions{AllowPrivate: true}) // its feeds are on this machine
	if err != nil {
		return nil, err
	}
	// No grace: a deploy in the demo is to interrupt what is being done.
	pool, err := worker.New(s.queue, fetch, worker.Config{Concurrency: concurrency, Grace: -1, Log: log})
	if err != nil {
		return nil, err
	}
	return &daemons{d, p, newCrew(pool.Run), log}, nil
}

// start runs the daemons until ctx ends; the returned function waits until they are gone.
func (d *daemons) start(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	for name, run := range map[string]func(context.Context) error{
		"dispatcher": d.dispatcher.Run, "poller": d.poller.Run, "workers": d.crew.run,
	} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				d.log.Error().Err(err).Msg("demo: " + name + " stopped")
			}
		})
	}
	return running.Wait
}
