package demo

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// snapshot is the state of all models at about one instant.
type snapshot struct {
	now      time.Time
	models   []*scripts.Record // in the order of the cast
	queued   map[string]string // attempts that no worker has taken, by their uid
	counters map[string]int64
	seen     int // behaviours ticked off
}

func takeSnapshot(ctx context.Context, store *scripts.Store) (snapshot, error) {
	stats, err := store.Stats(ctx)
	if err != nil {
		return snapshot{}, err
	}
	uids := make([]string, len(cast))
	for i, role := range cast {
		uids[i] = role.uid
	}
	records, err := store.Load(ctx, uids)
	if err != nil {
		return snapshot{}, err
	}
	queued, err := store.Queued(ctx)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{now: stats.At, queued: queued, counters: stats.Counters}
	for _, uid := range uids {
		if records[uid].Exists {
			s.models = append(s.models, records[uid])
		}
	}
	return s, nil
}
