package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Server is what Redis tells of itself: the fields of INFO.
type Server map[string]string

// Server reads what Redis tells of itself; on a cluster the node that holds the queue.
func (s *Store) Server(ctx context.Context) (Server, error) {
	node, err := masterFor(ctx, s.clients.Read, s.Keys.Due())
	if err != nil {
		return nil, fmt.Errorf("find the node of the queue: %w", err)
	}
	text, err := node.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask redis about itself: %w", err)
	}
	fields := make(Server)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields, nil
}

// RedisTime reads the clock of Redis, also when Config.Clock replaces it.
func (s *Store) RedisTime(ctx context.Context) (time.Time, error) {
	node, err := masterFor(ctx, s.clients.Write, s.Keys.Due()) // Write: a repeated command would look like a slow clock
	if err != nil {
		return time.Time{}, fmt.Errorf("find the node of the queue: %w", err)
	}
	now, err := node.Time(ctx).Result()
	return now, wrap(err, "read the clock of redis")
}
