// Package inspect reads and repairs data for the doctor.
package inspect

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// Part is one part of a queue, as it is inspected.
type Part struct{ store *store.Store }

// Of inspects a part of a queue.
func Of(part *store.Store) Part { return Part{part} }

// SetBack changes a heartbeat from the future to now, unless its owner was forgotten.
func (s Part) SetBack(ctx context.Context, heartbeat store.Heartbeat, now time.Time) error {
	by := goredis.ZAddArgs{XX: true, LT: true, Members: []goredis.Z{{Score: float64(now.UnixMilli()), Member: heartbeat.Owner}}}
	err := s.store.Clients.Write.ZAddArgs(ctx, heartbeat.Key, by).Err()
	return redis.Wrap(err, fmt.Sprintf("set back the heartbeat of %q", heartbeat.Owner))
}

// TrimWake shortens the wake list to the one token that is enough.
func (s Part) TrimWake(ctx context.Context) error {
	return redis.Wrap(s.store.Clients.Write.LTrim(ctx, s.store.Keys.Wake, 0, 0).Err(), "trim the wake list")
}

// AddExpiredPoller registers the owner of an orphaned claimed list as an expired poller, so that the next poller takes over.
func (s Part) AddExpiredPoller(ctx context.Context, owner string) error {
	err := s.store.Clients.Write.ZAddNX(ctx, s.store.Keys.Pollers, goredis.Z{Score: 0, Member: owner}).Err()
	return redis.Wrap(err, fmt.Sprintf("list poller %q again", owner))
}

// DropInput removes an entry of the input list as it was read, and returns how many still stood there: one or none. The caller has
// found that its attempt is over, which no attempt ever ceases to be.
func (s Part) DropInput(ctx context.Context, entry string) (int, error) {
	dropped, err := s.store.Clients.Write.LRem(ctx, s.store.Keys.Input, 1, entry).Result()
	return int(dropped), redis.Wrap(err, "drop entries of the input list")
}
