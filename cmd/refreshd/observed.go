package main

import (
	"context"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/metrics"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/scripts"
)

// store is what the loops need of a part of a queue.
type store interface {
	dispatcher.Store
	poller.Store
}

// observedStore is a part of a queue whose commits are measured.
type observedStore struct {
	*scripts.Store
	loop *metrics.Loop
}

// observed returns a part with its commits measured, unless nobody asks for numbers.
func observed(part *scripts.Store, loop *metrics.Loop) store {
	if loop == nil {
		return part
	}
	return &observedStore{part, loop}
}

func (s *observedStore) Commit(ctx context.Context, batch scripts.Batch) ([]scripts.Code, error) {
	codes, err := s.Store.Commit(ctx, batch)
	s.loop.Committed(batch, codes)
	return codes, err
}

// both tells the health checks and the metrics of each round.
func both(health func() func(error), loop *metrics.Loop) func() func(error) {
	if loop == nil {
		return health
	}
	return func() func(error) {
		well, measured := health(), loop.Begin()
		return func(err error) {
			well(err)
			measured(err)
		}
	}
}
