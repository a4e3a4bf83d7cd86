package store

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// History reads the attempts of one model that ended last, newest first. An entry that cannot be read is left out.
func (s Report) History(ctx context.Context, uid string) ([]model.Attempt, error) {
	entries, err := s.Clients.Read.LRange(ctx, s.Keys.History(uid), 0, -1).Result()
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

// reasonsRead is among how many of its last attempts the failure of a model is looked for: others may have been cancelled since.
const reasonsRead = 5

// LastReasons reads why models failed last, by their uids; of one of which no failure is known, why its last attempt ended. One that ended
// well, or has none, has no reason.
func (s Report) LastReasons(ctx context.Context, uids []string) (map[string]string, error) {
	if len(uids) == 0 {
		return nil, nil
	}
	pipe := s.Clients.Read.Pipeline()
	newest := SendEach(uids, func(uid string) *redis.StringSliceCmd {
		return pipe.LRange(ctx, s.Keys.History(uid), 0, reasonsRead-1)
	})
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	reasons := make(map[string]string, len(uids))
	for i, uid := range uids {
		reasons[uid] = lastReason(newest[i].Val())
	}
	return reasons, nil
}

func lastReason(entries []string) (reason string) {
	for i, entry := range entries {
		attempt, err := model.ParseAttempt(entry)
		switch {
		case err == nil && (attempt.Outcome == model.EventFailure || attempt.Outcome == model.EventTimeout):
			return attempt.Reason
		case err == nil && i == 0:
			reason = attempt.Reason
		}
	}
	return reason
}
