package store

import (
	"context"
	"fmt"
)

// Queued reads the input list, all of it at one instant: attempt uid to the entry as it stands there.
func (s *Store) Queued(ctx context.Context) (map[string]string, error) {
	entries, err := s.Clients.Read.LRange(ctx, s.Keys.Input, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read queued attempts: %w", err)
	}
	queued := make(map[string]string, len(entries))
	for _, raw := range entries {
		if entry, _ := s.Wire().ParseEntry(raw); entry.AttemptUID != "" {
			queued[entry.AttemptUID] = raw
		}
	}
	return queued, nil
}

// InputEntry is one entry of the input list.
type InputEntry struct {
	Raw             string
	UID, AttemptUID string // empty: the entry cannot be read
}

// InputPart reads up to n entries of the input list from a place on, oldest first. Only what stands at one place is told; entries move
// while a worker takes others.
func (s *Store) InputPart(ctx context.Context, from, n int64) ([]InputEntry, error) {
	texts, err := s.Clients.Read.LRange(ctx, s.Keys.Input, from, from+n-1).Result()
	if err != nil {
		return nil, fmt.Errorf("read a part of the input list: %w", err)
	}
	entries := make([]InputEntry, len(texts))
	for i, text := range texts {
		entry, _ := s.Wire().ParseEntry(text)
		entries[i] = InputEntry{text, entry.UID, entry.AttemptUID}
	}
	return entries, nil
}
