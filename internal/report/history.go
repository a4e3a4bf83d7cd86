package report

import (
	"context"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// History reads the attempts of one model that ended last, newest first. An entry that cannot be read is left out.
func (r Report) History(ctx context.Context, uid string) ([]model.Attempt, error) {
	entries, err := r.store.Clients.Read.LRange(ctx, r.store.Keys.History(uid), 0, -1).Result()
	return store.ParseAttempts(entries), redis.Wrap(err, "read history")
}
