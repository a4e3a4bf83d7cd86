package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
)

// parts are daemons side by side, one for each part of a queue.
type parts[D daemon] []D

// Run runs all of them until ctx ends.
func (p parts[D]) Run(ctx context.Context) error {
	errs := make([]error, len(p))
	var running sync.WaitGroup
	for i, part := range p {
		running.Go(func() { errs[i] = part.Run(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// place is where a daemon of one part of a queue works, where it logs, and how it reports its rounds to the health checks.
type place struct {
	part     *store.Store
	observed loopStore // the same part, with what is committed measured and traced
	log      *zerolog.Logger
	observe  func() func(error)
}

// forParts builds a daemon for each part of a queue.
func forParts[D daemon](a *app, queue *store.Queue, name string, tick time.Duration, build func(place) (D, error)) (parts[D], error) {
	daemons, measured := make(parts[D], len(queue.Parts)), a.metrics.Loop(queue.Name, name)
	for i, part := range queue.Parts {
		loop, log := a.loopName(name, queue.Name), a.logOf(queue.Name)
		if len(queue.Parts) > 1 {
			loop = name + " " + part.Keys.Queue()
			log = new(a.log.With().Str("queue", part.Keys.Queue()).Logger())
		}
		var err error
		if daemons[i], err = build(place{part, a.observed(queue.Name, part, measured), log, both(a.checks.Loop(loop, tick, false).Begin, measured)}); err != nil {
			return nil, err
		}
	}
	return daemons, nil
}

// awaitQueue opens a queue as soon as Redis tells how many parts it has. One that cannot be served is an error, unless others are. With
// --strict it does not wait.
func (a *app) awaitQueue(ctx context.Context, clients *store.Clients, name string, flags *loopFlags) (*store.Queue, error) {
	retry := backoff.New(backoff.Config{
		Part: "queue", What: "opening", First: max(flags.backoff, firstWait), Max: max(flags.backoff, longestWait), Log: a.logOf(name), Clock: time.Now,
	})
	opening := a.checks.Loop(a.loopName("opening", name), longestWait, false)
	defer a.checks.Drop(opening)
	for {
		ended := opening.Begin()
		queue, err := store.Open(ctx, clients, a.configOf(name))
		if err == nil {
			err = queue.RequireWhole()
		}
		ended(err)
		if waits := errors.Is(err, store.ErrUnread) || a.queues.several(); err == nil || !waits || flags.strict || ctx.Err() != nil {
			return queue, err
		}
		backoff.Rest(ctx, retry.After(err), nil)
	}
}

const (
	firstWait   = 50 * time.Millisecond
	longestWait = time.Second
)
