package scripts

import (
	"context"
	"fmt"
	"time"
)

// TrimWake shortens the wake list to the one token that is enough.
func (s *Store) TrimWake(ctx context.Context) error {
	return wrap(s.clients.Write.LTrim(ctx, s.Keys.Wake(), 0, 0).Err(), "trim the wake list")
}

// Backlog is what waits in a queue for others than the daemons, and the calls that wait.
type Backlog struct {
	Outbox, Undelivered, Rejected, Wake int64
	OldestNotice                        time.Time
}

// Backlog reads what waits. A key of the wrong type counts as empty.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	pipe, k := s.clients.Read.Pipeline(), s.Keys
	rejected, undelivered, wake := pipe.LLen(ctx, k.Rejected()), pipe.LLen(ctx, k.Undelivered()), pipe.LLen(ctx, k.Wake())
	oldest := pipe.XRangeN(ctx, k.Outbox(), "-", "+", 1)
	outbox := pipe.XLen(ctx, k.Outbox()) // last, as miniredis answers it twice where the type is wrong
	if err := execReads(ctx, pipe); err != nil {
		return Backlog{}, fmt.Errorf("read what waits: %w", err)
	}
	return Backlog{
		Outbox: outbox.Val(), Undelivered: undelivered.Val(), Rejected: rejected.Val(), Wake: wake.Val(), OldestNotice: noticedAt(oldest.Val()),
	}, nil
}

// LastRejected reads the reason of the message that was rejected last; empty: there is none or it cannot be read.
func (s *Store) LastRejected(ctx context.Context) (string, error) {
	text, err := s.clients.Read.LIndex(ctx, s.Keys.Rejected(), -1).Result()
	if err != nil && !missing(err) {
		return "", fmt.Errorf("read the last rejected message: %w", err)
	}
	return readRejected(text).Reason, nil
}
