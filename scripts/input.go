package scripts

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// InputEntry is one entry of the input list.
type InputEntry struct {
	Raw             string
	UID, AttemptUID string // empty: the entry cannot be read
}

// InputPart reads up to n entries of the input list from a place on, oldest first. Only what stands at one place is told; entries move
// while a worker takes others.
func (s *Store) InputPart(ctx context.Context, from, n int64) ([]InputEntry, error) {
	texts, err := s.clients.Read.LRange(ctx, s.Keys.Input(), from, from+n-1).Result()
	if err != nil {
		return nil, fmt.Errorf("read a part of the input list: %w", err)
	}
	entries := make([]InputEntry, len(texts))
	for i, text := range texts {
		entry, _ := model.ParseEntry(text)
		entries[i] = InputEntry{text, entry.UID, entry.AttemptUID}
	}
	return entries, nil
}

// DropInput removes entries of the input list as they were read, and returns how many still stood there. The caller has found that
// their attempts are over, which no attempt ever ceases to be.
func (s *Store) DropInput(ctx context.Context, entries []string) (dropped int, err error) {
	pipe := s.clients.Write.Pipeline()
	replies := sendEach(entries, func(entry string) *redis.IntCmd { return pipe.LRem(ctx, s.Keys.Input(), 1, entry) })
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, wrap(err, "drop entries of the input list")
	}
	for _, reply := range replies {
		dropped += int(reply.Val())
	}
	return dropped, nil
}
