package scripts

import (
	"context"
	"fmt"

	"github.com/refreshd/refreshd/model"
)

// Queued reads the input list: attempt uid to the entry as it stands there. It reads all of it at one instant: read in
// parts, it would miss entries that move to another place when a dispatcher takes others back meanwhile, and a missed one
// looks like one that a worker took.
func (s *Store) Queued(ctx context.Context) (map[string]string, error) {
	entries, err := s.clients.Read.LRange(ctx, s.Keys.Input(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read queued attempts: %w", err)
	}
	queued := make(map[string]string, len(entries))
	for _, entry := range entries {
		if uid := model.InputUID(entry); uid != "" {
			queued[uid] = entry
		}
	}
	return queued, nil
}
