package store

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// SetBack makes a heartbeat from the future one of now. An owner that lives gives its own soon; one that is forgotten stays so.
func (s *Store) SetBack(ctx context.Context, heartbeat Heartbeat, now time.Time) error {
	by := redis.ZAddArgs{XX: true, LT: true, Members: []redis.Z{{Score: float64(now.UnixMilli()), Member: heartbeat.Owner}}}
	err := s.clients.Write.ZAddArgs(ctx, heartbeat.Key, by).Err()
	return wrap(err, fmt.Sprintf("set back the heartbeat of %q", heartbeat.Owner))
}

// TrimWake shortens the wake list to the one token that is enough.
func (s *Store) TrimWake(ctx context.Context) error {
	return wrap(s.clients.Write.LTrim(ctx, s.Keys.Wake(), 0, 0).Err(), "trim the wake list")
}

// AddExpiredPoller makes a poller known whose claimed list nobody would look at: as an expired one, so that the next poller takes over.
func (s *Store) AddExpiredPoller(ctx context.Context, owner string) error {
	err := s.clients.Write.ZAddNX(ctx, s.Keys.Pollers(), redis.Z{Score: 0, Member: owner}).Err()
	return wrap(err, fmt.Sprintf("list poller %q again", owner))
}

// DropInput removes an entry of the input list as it was read, and returns how many still stood there: one or none. The caller has
// found that its attempt is over, which no attempt ever ceases to be.
func (s *Store) DropInput(ctx context.Context, entry string) (int, error) {
	dropped, err := s.clients.Write.LRem(ctx, s.Keys.Input(), 1, entry).Result()
	return int(dropped), wrap(err, "drop entries of the input list")
}
