package scripts

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// OwnedList is a claimed or taken list with the heartbeat of its owner, both at one instant.
type OwnedList struct {
	Entries       int64
	Known         bool // the owner is known
	LastHeartbeat time.Time
}

// ClaimedBy reads the claimed list of a poller.
func (s *Store) ClaimedBy(ctx context.Context, owner string) (OwnedList, error) {
	return s.ownedList(ctx, s.Keys.Claimed(owner), s.Keys.Pollers(), owner)
}

// TakenBy reads the taken list of a worker pool.
func (s *Store) TakenBy(ctx context.Context, owner string) (OwnedList, error) {
	return s.ownedList(ctx, s.Keys.Taken(owner), s.Keys.Workers(), owner)
}

func (s *Store) ownedList(ctx context.Context, list, owners, owner string) (OwnedList, error) {
	pipe := s.clients.Read.TxPipeline()
	entries, seen := pipe.LLen(ctx, list), pipe.ZScore(ctx, owners, owner)
	if err := execReads(ctx, pipe); err != nil {
		return OwnedList{}, fmt.Errorf("read the list of %q: %w", owner, err)
	}
	// A set of owners that cannot be read tells nothing about this one.
	known := !missing(seen.Err())
	return OwnedList{entries.Val(), known, time.UnixMilli(int64(seen.Val())).UTC()}, nil
}

// AddExpiredPoller makes a poller known whose claimed list nobody would look at: as an expired one, so that the next poller takes over.
func (s *Store) AddExpiredPoller(ctx context.Context, owner string) error {
	if err := s.clients.Write.ZAddNX(ctx, s.Keys.Pollers(), redis.Z{Score: 0, Member: owner}).Err(); err != nil {
		return fmt.Errorf("list poller %q again: %w", owner, err)
	}
	return nil
}
