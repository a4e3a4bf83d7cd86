package store

import (
	"context"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/redis"
)

// Used reports whether anything was ever stored in the queue.
func (q QueueReport) Used(ctx context.Context) (bool, error) {
	for _, part := range q.queue.Parts {
		if found, err := part.anyKey(ctx); err != nil || found != "" {
			return found != "", err
		}
	}
	return false, nil
}

// maxQueueScans bounds the search for other queues: each scans about scanCount keys.
const maxQueueScans = 100

// Others lists the other queues of the same Redis that have counted something, by name. It scans some 20,000 keys at most, on a cluster of one node, so
// it may miss some.
func (q QueueReport) Others(ctx context.Context) ([]string, error) {
	node, err := q.queue.Parts[0].node(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	counters, scans := newKeys("").Stats, 0
	err = redis.Scan(ctx, "look for queues", func(cursor uint64) ([]string, uint64, error) {
		if scans++; scans > maxQueueScans {
			return nil, 0, nil
		}
		return node.Scan(ctx, cursor, "*"+counters, redis.ScanCount).Result()
	}, func(keys []string) error {
		for _, key := range keys {
			name := strings.TrimSuffix(key, counters)
			if whole, _, like := wholeOf(name); like {
				name = bareName(whole)
			}
			if name != q.queue.Name && queuePattern.MatchString(name) {
				names = append(names, name)
			}
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}
