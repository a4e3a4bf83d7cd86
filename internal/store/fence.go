package store

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Fence is what Redis knows of the attempt that a model is running.
type Fence struct {
	// AttemptUID is that of the running attempt; empty: the model is idle or gone.
	AttemptUID string
	// DeadlineAt is when the running attempt counts as timed out; zero: unknown or unreadable.
	DeadlineAt time.Time
	// Begun says that a `started` of the attempt was applied: from then on nobody moves its deadline.
	Begun bool
	// Err says why this fence could not be read; the other fields then say nothing.
	Err error
}

// Fences reads what the models with these uids are running, in the same order, and the clock. A fence that alone cannot be
// read tells so in its Err.
func (s Pool) Fences(ctx context.Context, uids []string) ([]Fence, time.Time, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := SendEach(uids, func(uid string) *redis.SliceCmd {
		return pipe.HMGet(ctx, s.Keys.Model(uid), fieldAttemptUID, fieldDeadlineAt, "processing_at")
	})
	clock := s.askTime(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command tells its own error
	now, err := s.readTime(clock)
	if err != nil {
		return nil, time.Time{}, err
	}
	fences := make([]Fence, len(uids))
	for i, reply := range replies {
		fences[i] = readFence(reply)
	}
	return fences, now, nil
}

func readFence(reply *redis.SliceCmd) Fence {
	var fields struct {
		AttemptUID string `redis:"attempt_uid"`
		DeadlineAt string `redis:"deadline_at"`
		BegunAt    string `redis:"processing_at"`
	}
	if err := reply.Scan(&fields); err != nil {
		return Fence{Err: fmt.Errorf("read a fence: %w", err)}
	}
	// A deadline that cannot be read must not hide the fence: it counts as unknown.
	deadline, _ := time.Parse(time.RFC3339, fields.DeadlineAt)
	return Fence{AttemptUID: fields.AttemptUID, DeadlineAt: deadline, Begun: fields.BegunAt != ""}
}
