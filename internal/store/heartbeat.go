package store

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Heartbeat is the last one of a dispatcher, a poller or a worker pool.
type Heartbeat struct {
	Of    model.Party
	Key   string // of the set in which it stands
	Owner string
	At    time.Time
}

// Heartbeats reads the last heartbeat of every dispatcher, poller and worker pool, and then the clock: none of them was given later, unless
// the clock has been set back since. A set of the wrong type counts as empty.
func (s Report) Heartbeats(ctx context.Context) (heartbeats []Heartbeat, now time.Time, err error) {
	pipe := s.Clients.Read.Pipeline()
	replies := s.askHeartbeats(ctx, pipe)
	clock := s.askTime(ctx, pipe)
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, time.Time{}, fmt.Errorf("read heartbeats: %w", err)
	}
	now, err = s.readTime(clock)
	return replies.read(), now, err
}

// heartbeatReply is what a pipeline tells of the heartbeats of one party.
type heartbeatReply struct {
	of    model.Party
	key   string
	reply *redis.ZSliceCmd
}

type heartbeatReplies []heartbeatReply

// askHeartbeats asks for all heartbeats in a pipeline.
func (s Report) askHeartbeats(ctx context.Context, pipe redis.Pipeliner) heartbeatReplies {
	keys := map[model.Party]string{
		model.PartyDispatcher: s.Keys.Dispatchers(), model.PartyPoller: s.Keys.Pollers(), model.PartyWorker: s.Keys.Workers(),
	}
	return SendEach(model.Parties, func(party model.Party) heartbeatReply {
		return heartbeatReply{party, keys[party], pipe.ZRangeWithScores(ctx, keys[party], 0, -1)}
	})
}

func (r heartbeatReplies) read() (heartbeats []Heartbeat) {
	for _, set := range r {
		for _, member := range set.reply.Val() {
			at := time.UnixMilli(int64(min(member.Score, maxScore))).UTC()
			heartbeats = append(heartbeats, Heartbeat{set.of, set.key, fmt.Sprint(member.Member), at})
		}
	}
	return heartbeats
}
