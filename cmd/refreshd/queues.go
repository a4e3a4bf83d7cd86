package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/store"
)

// queueNames is the pflag.Value of --queue: one name, or several with commas between them. To give it again adds to them.
type queueNames struct {
	names []string // never empty
	given bool     // they are no default any more
}

func (q *queueNames) Set(text string) error {
	if !q.given {
		q.names, q.given = nil, true
	}
	for name := range strings.SplitSeq(text, ",") {
		q.names = append(q.names, strings.TrimSpace(name))
	}
	return nil
}

func (q *queueNames) String() string { return strings.Join(q.names, ",") }

func (q *queueNames) Type() string { return "names" }

func (q *queueNames) several() bool { return len(q.names) > 1 }

// useQueues takes the names of the queues from the flag.
func (a *app) useQueues() error {
	a.store.Queue = a.queues.names[0]
	if sorted := slices.Sorted(slices.Values(a.queues.names)); len(slices.Compact(sorted)) < len(a.queues.names) {
		return usagef("--queue: expected each queue once, found %s", &a.queues)
	}
	return nil
}

// requireOneQueue refuses several queues where a command is about one.
func (a *app) requireOneQueue() error {
	if a.queues.several() {
		return usagef("--queue: expected one queue, as only daemons and up serve several, found %s", &a.queues)
	}
	return nil
}

// configOf is what the flags say about one of the queues.
func (a *app) configOf(queue string) store.Config {
	config := a.storeConfig()
	config.Queue = queue
	return config
}

// eachQueue runs do on each queue as soon as Redis answers for it, side by side, until ctx ends or do ends with an error. A queue that cannot
// be opened is tried again and again, and keeps none of the others waiting.
func (a *app) eachQueue(ctx context.Context, part string, clients *store.Clients, flags *loopFlags, do func(context.Context, *store.Queue) error) error {
	running, ctx := errgroup.WithContext(ctx)
	for _, name := range a.queues.names {
		running.Go(func() error {
			queue, err := a.awaitQueue(ctx, clients, name, flags)
			switch {
			case ctx.Err() != nil: // before it could begin
				a.logOf(name).Info().Str("part", part).Msg("stopped")
				return nil
			case errors.Is(err, store.ErrUnread):
				return fmt.Errorf("--strict: check redis: %w", err)
			case err != nil:
				return usageError{err}
			}
			if part == "dispatcher" || part == "poller" || part == "up" { // of workers there may be thousands, and each would ask Redis the same
				a.metrics.Queue(queue)
			}
			return do(ctx, queue)
		})
	}
	return running.Wait()
}

// loopName is what the health checks call a loop: with several queues each has one of its own.
func (a *app) loopName(loop, queue string) string {
	if a.queues.several() {
		loop += " " + queue
	}
	return loop
}

// logOf is the log of what serves a queue.
func (a *app) logOf(queue string) *zerolog.Logger {
	if !a.queues.several() {
		return &a.log
	}
	return new(a.log.With().Str("queue", queue).Logger())
}
