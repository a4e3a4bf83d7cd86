package operate

import (
	"cmp"
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/store"
)

// insistence tries again what a part of a queue does not answer. One goroutine only.
type insistence struct {
	retry    *backoff.Backoff
	patience time.Duration

	left context.Context // it ends with the patience; nil: the last call was answered
	stop context.CancelFunc
}

func (s *saving) insist(part *store.Store) store.Executor {
	log := cmp.Or(s.operator.Log, new(zerolog.Nop()))
	i := &insistence{patience: cmp.Or(s.operator.patience, patience)}
	i.retry = backoff.New(backoff.Config{Part: "save", What: "a batch", First: cmp.Or(s.operator.pause, firstPause), Max: 5 * time.Second, Log: log})
	return &store.Insistent{Executor: part, Again: i.again}
}

func (i *insistence) again(ctx context.Context, err error) bool {
	pause := i.retry.After(err)
	if err == nil {
		if i.left != nil {
			i.stop()
			i.left = nil
		}
		return false
	}
	if i.left == nil {
		i.left, i.stop = context.WithTimeout(ctx, i.patience)
	}
	backoff.Rest(i.left, pause, nil)
	return i.left.Err() == nil
}
