package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// StaleModel is a model that is stale.
type StaleModel struct {
	UID   string
	Since time.Time
}

// LongestStale reads the first so many models that are stale for longest, from a place of their order on.
func (s Report) LongestStale(ctx context.Context, from, count int) ([]StaleModel, error) {
	found, err := s.Clients.Read.ZRangeWithScores(ctx, s.Keys.Stale, int64(from), int64(from+count-1)).Result()
	models := Map(found, func(z redis.Z) StaleModel { return StaleModel{Text(z.Member), time.UnixMilli(int64(z.Score)).UTC()} })
	return models, Wrap(err, "read which models are stale")
}
