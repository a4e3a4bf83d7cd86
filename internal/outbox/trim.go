package outbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/internal/redis"
)

var trimOutbox = redis.LoadScript("trim-outbox.lua")

// TrimOutbox removes entries that all groups have acknowledged, or nobody has in time, and returns how many nobody has read.
func (o Outbox) TrimOutbox(ctx context.Context) (unread int, err error) {
	first, err := o.FirstUnread(ctx)
	if err != nil {
		return 0, err
	}
	keys := []string{o.store.Keys.Outbox, o.store.Keys.Stats}
	unread, err = redis.RunScript(ctx, o.store.Clients.Write, trimOutbox, keys, first, o.store.Config.OutboxKeep.Milliseconds(), o.store.Config.OutboxCap).Int()
	return unread, redis.Wrap(err, "trim the outbox")
}

// FirstUnread is the id of the first entry of the outbox that some group has not acknowledged; empty: there is no group. A group only moves
// forward, so that what lies before that may go at any time.
func (o Outbox) FirstUnread(ctx context.Context) (first string, err error) {
	groups, err := o.store.Clients.Read.XInfoGroups(ctx, o.store.Keys.Outbox).Result()
	if err != nil {
		if strings.Contains(err.Error(), "no such key") {
			err = nil
		}
		return "", redis.Wrap(err, "read the groups of the outbox")
	}
	for _, group := range groups {
		ms, sequence, _ := strings.Cut(group.LastDeliveredID, "-")
		n, _ := strconv.ParseUint(sequence, 10, 64) // not an int64: an entry that was added by hand may have any
		unread := ms + "-" + strconv.FormatUint(n+1, 10)
		if group.Pending > 0 {
			pending, err := o.store.Clients.Read.XPending(ctx, o.store.Keys.Outbox, group.Name).Result()
			if err != nil {
				return "", fmt.Errorf("read what is pending in the outbox: %w", err)
			}
			if pending.Count > 0 {
				unread = pending.Lower
			}
		}
		if first == "" || redis.CompareIDs(unread, first) < 0 {
			first = unread
		}
	}
	return first, nil
}
