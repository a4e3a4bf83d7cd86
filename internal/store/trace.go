package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Used reports whether anything was ever stored in the queue.
func (q QueueReport) Used(ctx context.Context) (bool, error) {
	for _, part := range q.Parts {
		if found, err := part.anyKey(ctx); err != nil || found != "" {
			return found != "", err
		}
	}
	return false, nil
}

// mostLooks bounds the search for other queues: so often it looks at about scanCount keys.
const mostLooks = 100

// Others are the names of other queues of the same Redis that have counted something, in order. It looks at some 20,000 keys at most, on a
// cluster of one node, and so may miss some.
func (q QueueReport) Others(ctx context.Context) ([]string, error) {
	store := q.Parts[0]
	node, err := masterFor(ctx, store.Clients.Read, store.Keys.Due())
	if err != nil {
		return nil, fmt.Errorf("look for queues: %w", err)
	}
	var names []string
	looks := 0
	err = Scan(ctx, "look for queues", func(cursor uint64) ([]string, uint64, error) {
		if looks++; looks > mostLooks {
			return nil, 0, nil
		}
		return node.Scan(ctx, cursor, "*"+Keys{}.Stats(), ScanCount).Result()
	}, func(keys []string) error {
		for _, key := range keys {
			keys := Keys{strings.TrimSuffix(key, Keys{}.Stats())}
			if whole, _, like := keys.whole(); like {
				keys.queue = whole.bare()
			}
			if keys.queue != q.Name && queuePattern.MatchString(keys.queue) {
				names = append(names, keys.queue)
			}
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}
