package store

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// recentBatch is how many entries one call reads.
const recentBatch = 1000

// EachEntry hands over the entries that were written to the journal since an instant, oldest first, by the clock of Redis. It ends early with
// the error of visit.
func (s Report) EachEntry(ctx context.Context, since time.Time, visit func(model.JournalEntry) error) error {
	for after := Millis(since); ; {
		messages, err := s.Clients.Read.XRangeN(ctx, s.Keys.Journal(), after, "+", recentBatch).Result()
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		for _, message := range messages {
			if err := visit(readJournalEntry(message.Values)); err != nil {
				return err
			}
			after = "(" + message.ID
		}
		if len(messages) < recentBatch {
			return nil
		}
	}
}

// Histories reads the newest attempts that have ended, at most so many, of each of some models, newest first. What cannot be read is left out.
func (s Report) Histories(ctx context.Context, uids []string, most int) (map[string][]model.Attempt, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := SendEach(uids, func(uid string) *redis.StringSliceCmd { return pipe.LRange(ctx, s.Keys.History(uid), 0, int64(most)-1) })
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read histories: %w", err)
	}
	histories := make(map[string][]model.Attempt, len(uids))
	for i, uid := range uids {
		for _, entry := range replies[i].Val() {
			if attempt, err := model.ParseAttempt(entry); err == nil {
				histories[uid] = append(histories[uid], attempt)
			}
		}
	}
	return histories, nil
}
