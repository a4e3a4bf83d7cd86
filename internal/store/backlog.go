package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Backlog is what waits in a queue for others than the daemons, and the calls that wait.
type Backlog struct {
	Outbox, Undelivered, Rejected, Wake int64
	OldestNotice                        time.Time
}

// Backlog reads what waits. A key of the wrong type counts as empty.
func (s Report) Backlog(ctx context.Context) (Backlog, error) {
	pipe, k := s.Clients.Read.Pipeline(), s.Keys
	rejected, undelivered, wake := pipe.LLen(ctx, k.Rejected()), pipe.LLen(ctx, k.Undelivered()), pipe.LLen(ctx, k.Wake())
	if err := ExecReads(ctx, pipe); err != nil {
		return Backlog{}, fmt.Errorf("read what waits: %w", err)
	}
	outbox, oldest, err := s.undelivered(ctx)
	return Backlog{Outbox: outbox, Undelivered: undelivered.Val(), Rejected: rejected.Val(), Wake: wake.Val(), OldestNotice: oldest}, err
}

// mostCounted is up to how many entries of the outbox are counted one by one. Of more, those that were acknowledged and not trimmed yet count too.
const mostCounted = 1000

// undelivered counts the notices that were not delivered yet: what some group of the outbox has not acknowledged, and what waits in the lines of the
// notifier. It tells of when the oldest of them is. A key of the wrong type counts as empty.
func (s Report) undelivered(ctx context.Context) (count int64, oldest time.Time, err error) {
	first, err := s.firstUnread(ctx)
	if _, misfit := Misfit(err); err != nil && !misfit {
		return 0, time.Time{}, err
	}
	most := int64(mostCounted)
	if first == "" { // nobody has acknowledged any: they all count
		most = 1
	}
	pipe, k := s.Clients.Read.Pipeline(), s.Keys
	recipients, entries := pipe.HKeys(ctx, k.Deliveries()), pipe.XRangeN(ctx, k.Outbox(), cmp.Or(first, "-"), "+", most)
	outbox := pipe.XLen(ctx, k.Outbox()) // last, as miniredis answers it twice where the type is wrong
	if err := ExecReads(ctx, pipe); err != nil {
		return 0, time.Time{}, fmt.Errorf("read the outbox: %w", err)
	}
	if count = int64(len(entries.Val())); count == most {
		count = outbox.Val()
	}
	pipe = s.Clients.Read.Pipeline()
	lines := SendEach(recipients.Val(), func(recipient string) *redis.IntCmd { return pipe.LLen(ctx, k.Notices(recipient)) })
	heads := SendEach(recipients.Val(), func(recipient string) *redis.StringCmd { return pipe.LIndex(ctx, k.Notices(recipient), 0) })
	err = Wrap(ExecReads(ctx, pipe), "read the lines of recipients")
	oldest = noticedAt(entries.Val())
	for i, line := range lines {
		var head struct{ At time.Time }
		_ = json.Unmarshal([]byte(heads[i].Val()), &head) // what cannot be read, or is none, has no time
		count, oldest = count+line.Val(), earlier(oldest, head.At)
	}
	return count, oldest, err
}

// LastRejected reads the reason of the message that was rejected last; empty: there is none or it cannot be read.
func (s Report) LastRejected(ctx context.Context) (string, error) {
	text, err := s.Clients.Read.LIndex(ctx, s.Keys.Rejected(), -1).Result()
	if err != nil && !Missing(err) {
		return "", fmt.Errorf("read the last rejected message: %w", err)
	}
	return readRejected(text).Reason, nil
}
