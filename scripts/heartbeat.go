package scripts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Heartbeat is the last one of a poller or of a worker pool.
type Heartbeat struct {
	Key   string // of the set in which it stands
	Owner string
	At    time.Time
}

// Heartbeats reads the last heartbeat of every poller and worker pool, and then the clock: none of them was given later, unless the
// clock has been set back since. A set of the wrong type counts as empty.
func (s *Store) Heartbeats(ctx context.Context) (heartbeats []Heartbeat, now time.Time, err error) {
	pipe, sets := s.clients.Read.Pipeline(), []string{s.Keys.Pollers(), s.Keys.Workers()}
	replies := sendEach(sets, func(key string) *redis.ZSliceCmd { return pipe.ZRangeWithScores(ctx, key, 0, -1) })
	clock := s.askTime(ctx, pipe)
	if err := execReads(ctx, pipe); err != nil {
		return nil, time.Time{}, fmt.Errorf("read heartbeats: %w", err)
	}
	for i, key := range sets {
		for _, member := range replies[i].Val() {
			at := time.UnixMilli(int64(min(member.Score, maxScore))).UTC()
			heartbeats = append(heartbeats, Heartbeat{key, fmt.Sprint(member.Member), at})
		}
	}
	now, err = s.readTime(clock)
	return heartbeats, now, err
}

// expired lists the heartbeats of a set that are at least a lease old at now. One that lies further ahead than heartbeats may be given
// meanwhile counts too: the clock has been set back since.
func (s *Store) expired(ctx context.Context, key string, now time.Time, lease, ahead time.Duration) (last []Heartbeat, err error) {
	pipe := s.clients.Read.Pipeline()
	old := pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: "-inf", Max: millis(now.Add(-lease))})
	future := pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: "(" + millis(now.Add(ahead)), Max: "+inf"})
	_, err = pipe.Exec(ctx)
	for _, z := range slices.Concat(old.Val(), future.Val()) {
		last = append(last, Heartbeat{key, fmt.Sprint(z.Member), time.UnixMilli(int64(z.Score)).UTC()})
	}
	return last, err
}

// SetBack makes a heartbeat from the future one of now. An owner that lives gives its own soon; one that is forgotten stays so.
func (s *Store) SetBack(ctx context.Context, heartbeat Heartbeat, now time.Time) error {
	by := redis.ZAddArgs{XX: true, LT: true, Members: []redis.Z{{Score: float64(now.UnixMilli()), Member: heartbeat.Owner}}}
	err := s.clients.Write.ZAddArgs(ctx, heartbeat.Key, by).Err()
	return wrap(err, fmt.Sprintf("set back the heartbeat of %q", heartbeat.Owner))
}
