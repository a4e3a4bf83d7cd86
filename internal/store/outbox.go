package store

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// notifierGroup is the consumer group of all notifiers, and their one consumer: which of them has read an entry does not matter, as routing
// it acknowledges it.
const notifierGroup = "notifier"

// OutboxEntry is one entry of <queue>:outbox as it stands there.
type OutboxEntry struct {
	ID     string
	Fields map[string]string
}

// ReadOutbox takes entries that no notifier has taken, oldest first. It does not wait. They are pending until Route acknowledges them.
func (s Outbox) ReadOutbox(ctx context.Context, limit int) ([]OutboxEntry, error) {
	read := &redis.XReadGroupArgs{
		Group: notifierGroup, Consumer: notifierGroup, Streams: []string{s.Keys.Outbox(), ">"}, Count: int64(limit), Block: -1,
	}
	streams, err := s.Clients.Write.XReadGroup(ctx, read).Result()
	switch {
	case redis.HasErrorPrefix(err, "NOGROUP"):
		return nil, s.createGroup(ctx)
	case Missing(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return outboxEntries(streams[0].Messages), nil
}

// createGroup makes the group of the notifiers, which begins with what stands in the outbox already.
func (s Outbox) createGroup(ctx context.Context) error {
	err := s.Clients.Write.XGroupCreateMkStream(ctx, s.Keys.Outbox(), notifierGroup, "0").Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") { // another notifier was faster
		return nil
	}
	return Wrap(err, "create the group of notifiers")
}

// AdoptOutbox takes entries that a notifier has taken a while ago and not acknowledged: it was killed.
func (s Outbox) AdoptOutbox(ctx context.Context, while time.Duration, limit int) ([]OutboxEntry, error) {
	claim := &redis.XAutoClaimArgs{
		Stream: s.Keys.Outbox(), Group: notifierGroup, Consumer: notifierGroup, MinIdle: while, Start: "0-0", Count: int64(limit),
	}
	messages, _, err := s.Clients.Write.XAutoClaim(ctx, claim).Result()
	if redis.HasErrorPrefix(err, "NOGROUP") {
		return nil, s.createGroup(ctx)
	}
	return outboxEntries(messages), Wrap(err, "take over entries of the outbox")
}

func outboxEntries(messages []redis.XMessage) []OutboxEntry {
	entries := make([]OutboxEntry, len(messages))
	for i, message := range messages {
		entries[i] = OutboxEntry{message.ID, make(map[string]string, len(message.Values))}
		for name, value := range message.Values {
			entries[i].Fields[name] = Text(value)
		}
	}
	return entries
}

// Outbox is what the notifier reads and settles of a part: the outbox, and the notices that wait for their recipients.
type Outbox struct{ *Store }

// Outbox reads and settles notices.
func (s *Store) Outbox() Outbox { return Outbox{s} }
