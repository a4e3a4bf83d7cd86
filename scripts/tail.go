package scripts

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// tailBatch is how many entries one call reads at most.
const tailBatch = 500

// TailStart is the position before everything that a stream holds.
const TailStart = "0-0"

// Tail returns the journal's entries after a position and the position behind them. It waits up to a second for the first;
// none came: the position stays. Values that cannot be read are zero values: to watch must never fail by what is watched.
func (s *Store) Tail(ctx context.Context, after string) ([]model.JournalEntry, string, error) {
	read := &redis.XReadArgs{Streams: []string{s.Keys.Journal(), after}, Count: tailBatch, Block: blockFor}
	streams, err := s.clients.Block.XRead(ctx, read).Result()
	if err != nil && !missing(err) {
		return nil, after, fmt.Errorf("read the journal: %w", err)
	}
	var entries []model.JournalEntry
	for _, stream := range streams {
		for _, message := range stream.Messages {
			entries, after = append(entries, readJournalEntry(message.Values)), message.ID
		}
	}
	return entries, after, nil
}

// TailOutbox returns the notifications after a position and the position behind them. It does not wait.
func (s *Store) TailOutbox(ctx context.Context, after string) ([]model.Notification, string, error) {
	messages, err := s.clients.Read.XRangeN(ctx, s.Keys.Outbox(), "("+after, "+", tailBatch).Result()
	if err != nil {
		return nil, after, fmt.Errorf("read the outbox: %w", err)
	}
	entries := make([]model.Notification, len(messages))
	for i, message := range messages {
		entries[i], after = readNotification(message.Values), message.ID
	}
	return entries, after, nil
}
