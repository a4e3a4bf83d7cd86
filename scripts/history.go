package scripts

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

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

// LastReasons reads why the last attempts of models ended, by their uids; of one that ended well, or has none, there is no reason.
func (s *Store) LastReasons(ctx context.Context, uids []string) (map[string]string, error) {
	if len(uids) == 0 {
		return nil, nil
	}
	pipe := s.clients.Read.Pipeline()
	newest := sendEach(uids, func(uid string) *redis.StringCmd { return pipe.LIndex(ctx, s.Keys.History(uid), 0) })
	if err := execReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	reasons := make(map[string]string, len(uids))
	for i, uid := range uids {
		if attempt, err := model.ParseAttempt(newest[i].Val()); err == nil && newest[i].Val() != "" {
			reasons[uid] = attempt.Reason
		}
	}
	return reasons, nil
}
