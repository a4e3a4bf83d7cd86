package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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
		Group: notifierGroup, Consumer: notifierGroup, Streams: []string{s.Keys.Outbox, ">"}, Count: int64(limit), Block: -1,
	}
	streams, err := s.Clients.Write.XReadGroup(ctx, read).Result()
	switch {
	case redis.HasErrorPrefix(err, "NOGROUP"):
		return nil, s.createGroup(ctx)
	case err != nil:
		return nil, Wrap(ignoreMissing(err), "read the outbox")
	}
	return outboxEntries(streams[0].Messages), nil
}

// createGroup makes the group of the notifiers, which begins with what stands in the outbox already.
func (s Outbox) createGroup(ctx context.Context) error {
	err := s.Clients.Write.XGroupCreateMkStream(ctx, s.Keys.Outbox, notifierGroup, "0").Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") { // another notifier was faster
		return nil
	}
	return Wrap(err, "create the group of notifiers")
}

// AdoptOutbox takes entries that a notifier has taken a while ago and not acknowledged: it was killed.
func (s Outbox) AdoptOutbox(ctx context.Context, while time.Duration, limit int) ([]OutboxEntry, error) {
	claim := &redis.XAutoClaimArgs{
		Stream: s.Keys.Outbox, Group: notifierGroup, Consumer: notifierGroup, MinIdle: while, Start: "0-0", Count: int64(limit),
	}
	messages, _, err := s.Clients.Write.XAutoClaim(ctx, claim).Result()
	if redis.HasErrorPrefix(err, "NOGROUP") {
		return nil, s.createGroup(ctx)
	}
	return outboxEntries(messages), Wrap(err, "take over entries of the outbox")
}

func outboxEntries(messages []redis.XMessage) []OutboxEntry {
	return Map(messages, func(message redis.XMessage) OutboxEntry {
		entry := OutboxEntry{message.ID, make(map[string]string, len(message.Values))}
		for name, value := range message.Values {
			entry.Fields[name] = Text(value)
		}
		return entry
	})
}

// Outbox is what the notifier reads and settles of a part: the outbox, and the notices that wait for their recipients.
type Outbox struct{ *Store }

// Outbox reads and settles notices.
func (s *Store) Outbox() Outbox { return Outbox{s} }

var trimOutbox = Load("trim-outbox.lua")

// TrimOutbox removes from the outbox what all its groups have acknowledged, and what nobody has read in time, of which it returns how many
// went.
func (s *Store) TrimOutbox(ctx context.Context) (unread int, err error) {
	first, err := s.firstUnread(ctx)
	if err != nil {
		return 0, err
	}
	keys := []string{s.Keys.Outbox, s.Keys.Stats}
	unread, err = Run(ctx, s.Clients.Write, trimOutbox, keys, first, s.config.OutboxKeep.Milliseconds(), s.config.OutboxCap).Int()
	return unread, Wrap(err, "trim the outbox")
}

// firstUnread is the id of the first entry of the outbox that some group has not acknowledged; empty: there is no group. A group only moves
// forward, so that what lies before that may go at any time.
func (s *Store) firstUnread(ctx context.Context) (first string, err error) {
	groups, err := s.Clients.Read.XInfoGroups(ctx, s.Keys.Outbox).Result()
	if err != nil {
		if strings.Contains(err.Error(), "no such key") {
			err = nil
		}
		return "", Wrap(err, "read the groups of the outbox")
	}
	for _, group := range groups {
		ms, sequence, _ := strings.Cut(group.LastDeliveredID, "-")
		n, _ := strconv.ParseUint(sequence, 10, 64) // not an int64: whoever adds an entry by hand may say any
		unread := ms + "-" + strconv.FormatUint(n+1, 10)
		if group.Pending > 0 {
			pending, err := s.Clients.Read.XPending(ctx, s.Keys.Outbox, group.Name).Result()
			if err != nil {
				return "", fmt.Errorf("read what is pending in the outbox: %w", err)
			}
			if pending.Count > 0 {
				unread = pending.Lower
			}
		}
		if first == "" || compareIDs(unread, first) < 0 {
			first = unread
		}
	}
	return first, nil
}
