// Package outbox reads the notifications of a queue for a notifier, and keeps a mailbox for each recipient.
package outbox

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// notifierGroup is the consumer group of all notifiers, and their one consumer: which of them has read an entry does not matter, as routing
// it acknowledges it.
const notifierGroup = "notifier"

// Entry is one entry of <queue>:outbox.
type Entry struct {
	ID     string
	Fields map[string]string
}

// Read takes entries that no notifier has taken, oldest first. It does not wait. They are pending until Route acknowledges them.
func (o Outbox) Read(ctx context.Context, limit int) ([]Entry, error) {
	read := &goredis.XReadGroupArgs{
		Group: notifierGroup, Consumer: notifierGroup, Streams: []string{o.store.Keys.Outbox, ">"}, Count: int64(limit), Block: -1,
	}
	streams, err := o.store.Clients.Write.XReadGroup(ctx, read).Result()
	switch {
	case goredis.HasErrorPrefix(err, "NOGROUP"):
		return nil, o.createGroup(ctx)
	case err != nil:
		return nil, redis.Wrap(redis.IgnoreMissing(err), "read the outbox")
	}
	return entriesOf(streams[0].Messages), nil
}

// createGroup makes the group of the notifiers, which begins with the oldest entry.
func (o Outbox) createGroup(ctx context.Context) error {
	err := o.store.Clients.Write.XGroupCreateMkStream(ctx, o.store.Keys.Outbox, notifierGroup, "0").Err()
	if goredis.HasErrorPrefix(err, "BUSYGROUP") { // another notifier was faster
		return nil
	}
	return redis.Wrap(err, "create the group of notifiers")
}

// Adopt takes entries that a notifier has taken a while ago and not acknowledged: it was killed.
func (o Outbox) Adopt(ctx context.Context, while time.Duration, limit int) ([]Entry, error) {
	claim := &goredis.XAutoClaimArgs{
		Stream: o.store.Keys.Outbox, Group: notifierGroup, Consumer: notifierGroup, MinIdle: while, Start: "0-0", Count: int64(limit),
	}
	messages, _, err := o.store.Clients.Write.XAutoClaim(ctx, claim).Result()
	if goredis.HasErrorPrefix(err, "NOGROUP") {
		return nil, o.createGroup(ctx)
	}
	return entriesOf(messages), redis.Wrap(err, "take over entries of the outbox")
}

func entriesOf(messages []goredis.XMessage) []Entry {
	return redis.Map(messages, func(message goredis.XMessage) Entry {
		entry := Entry{message.ID, make(map[string]string, len(message.Values))}
		for name, value := range message.Values {
			entry.Fields[name] = redis.Text(value)
		}
		return entry
	})
}

// Outbox is the side of a part that the notifier reads and settles: the outbox, and the mailboxes of recipients.
type Outbox struct{ store *store.Store }

// Of reads and settles notices of a part of a queue.
func Of(part *store.Store) Outbox { return Outbox{part} }
