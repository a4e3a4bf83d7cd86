package scripts

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// TrimWake shortens the wake list to the one token that is enough.
func (s *Store) TrimWake(ctx context.Context) error {
	return wrap(s.clients.Write.LTrim(ctx, s.Keys.Wake(), 0, 0).Err(), "trim the wake list")
}

// Backlog is what waits in a queue, and since when. What is urgent is due too.
type Backlog struct {
	Input, Messages, Outbox, Rejected, Wake int64 // Messages: of workers and applications
	OldestNotice                            time.Time
	OldestDue, OldestDeadline               time.Time // zero: none
}

// Backlog reads what waits. A key of the wrong type counts as empty.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	pipe, k := s.clients.Read.Pipeline(), s.Keys
	input, output, control := pipe.LLen(ctx, k.Input()), pipe.LLen(ctx, k.Output()), pipe.LLen(ctx, k.Control())
	outbox, rejected, wake := pipe.XLen(ctx, k.Outbox()), pipe.LLen(ctx, k.Rejected()), pipe.LLen(ctx, k.Wake())
	oldest := pipe.XRangeN(ctx, k.Outbox(), "-", "+", 1)
	urgent := pipe.ZRangeWithScores(ctx, k.Urgent(), 0, 0)
	due, deadline := pipe.ZRangeWithScores(ctx, k.Due(), 0, 0), pipe.ZRangeWithScores(ctx, k.Running(), 0, 0)
	if err := execReads(ctx, pipe); err != nil {
		return Backlog{}, fmt.Errorf("read what waits: %w", err)
	}
	b := Backlog{
		Input: input.Val(), Messages: output.Val() + control.Val(), Outbox: outbox.Val(), Rejected: rejected.Val(), Wake: wake.Val(),
		OldestDue: firstScore(due.Val()), OldestDeadline: firstScore(deadline.Val()),
	}
	if at := firstScore(urgent.Val()); b.OldestDue.IsZero() || !at.IsZero() && at.Before(b.OldestDue) {
		b.OldestDue = at
	}
	if entries := oldest.Val(); len(entries) > 0 {
		b.OldestNotice = readNotification(entries[0].Values).At
	}
	return b, nil
}

func firstScore(members []redis.Z) time.Time {
	if len(members) == 0 || members[0].Score > maxScore {
		return time.Time{}
	}
	return time.UnixMilli(int64(members[0].Score)).UTC()
}

// LastRejected reads the reason of the message that was rejected last; empty: there is none or it cannot be read.
func (s *Store) LastRejected(ctx context.Context) (string, error) {
	text, err := s.clients.Read.LIndex(ctx, s.Keys.Rejected(), -1).Result()
	if err != nil && !missing(err) {
		return "", fmt.Errorf("read the last rejected message: %w", err)
	}
	return readRejected(text).Reason, nil
}
