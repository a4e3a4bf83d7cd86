package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

var trimOutbox = Load("trim-outbox.lua")

// TrimOutbox removes from the outbox what all its groups have acknowledged, and what nobody has read in time, of which it returns how many
// went.
func (s *Store) TrimOutbox(ctx context.Context) (unread int, err error) {
	first, err := s.firstUnread(ctx)
	if err != nil {
		return 0, err
	}
	keys := []string{s.Keys.Outbox(), s.Keys.Stats()}
	unread, err = Run(ctx, s.Clients.Write, trimOutbox, keys, first, s.config.OutboxKeep.Milliseconds(), s.config.OutboxCap).Int()
	return unread, Wrap(err, "trim the outbox")
}

// firstUnread is the id of the first entry of the outbox that some group has not acknowledged; empty: there is no group. A group only moves
// forward, so that what lies before that may go at any time.
func (s *Store) firstUnread(ctx context.Context) (first string, err error) {
	groups, err := s.outboxGroups(ctx)
	if err != nil {
		return "", err
	}
	for _, group := range groups {
		unread := following(group.LastDeliveredID)
		if group.Pending > 0 {
			pending, err := s.Clients.Read.XPending(ctx, s.Keys.Outbox(), group.Name).Result()
			if err != nil {
				return "", fmt.Errorf("read what is pending in the outbox: %w", err)
			}
			if pending.Count > 0 {
				unread = pending.Lower
			}
		}
		if first == "" || before(unread, first) {
			first = unread
		}
	}
	return first, nil
}

func (s *Store) outboxGroups(ctx context.Context) ([]redis.XInfoGroup, error) {
	groups, err := s.Clients.Read.XInfoGroups(ctx, s.Keys.Outbox()).Result()
	if err != nil && strings.Contains(err.Error(), "no such key") {
		return nil, nil
	}
	return groups, Wrap(err, "read the groups of the outbox")
}

// following is the first id behind another one.
func following(id string) string {
	ms, sequence, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseUint(sequence, 10, 64)
	return ms + "-" + strconv.FormatUint(n+1, 10)
}

// before compares the ids of entries of a stream.
func before(a, b string) bool {
	if writtenAt(a) != writtenAt(b) {
		return writtenAt(a) < writtenAt(b)
	}
	_, first, _ := strings.Cut(a, "-")
	_, second, _ := strings.Cut(b, "-")
	return whole(first) < whole(second)
}
