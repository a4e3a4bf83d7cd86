package scripts

import (
	"context"
	"fmt"

	"github.com/refreshd/refreshd/model"
)

const queuedChunk = 1000

// Queued reads the input list: attempt uid to the entry as it stands there. It reads from the tail: workers take from the
// head meanwhile, and so no entry that stays can be missed.
func (s *Store) Queued(ctx context.Context) (map[string]string, error) {
	queued := make(map[string]string)
	for last := int64(-1); ; last -= queuedChunk {
		entries, err := s.clients.Read.LRange(ctx, s.Keys.Input(), last-queuedChunk+1, last).Result()
		if err != nil {
			return nil, fmt.Errorf("read queued attempts: %w", err)
		}
		for _, entry := range entries {
			if uid := model.InputUID(entry); uid != "" {
				queued[uid] = entry
			}
		}
		if len(entries) < queuedChunk {
			return queued, nil
		}
	}
}
