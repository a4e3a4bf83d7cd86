package scripts

import (
	"context"
	"fmt"

	"github.com/refreshd/refreshd/model"
)

// History reads the attempts of one model that ended last, newest first. An entry that cannot be read is left out.
func (s *Store) History(ctx context.Context, uid string) ([]model.Attempt, error) {
	entries, err := s.clients.Read.LRange(ctx, s.Keys.History(uid), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	attempts := make([]model.Attempt, 0, len(entries))
	for _, entry := range entries {
		if attempt, err := model.ParseAttempt(entry); err == nil {
			attempts = append(attempts, attempt)
		}
	}
	return attempts, nil
}
