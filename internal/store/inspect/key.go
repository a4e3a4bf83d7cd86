package inspect

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
)

// EachMember hands over the members of a sorted set, such as Keys.Due, in chunks and in no order. A member may come twice.
func (s Part) EachMember(ctx context.Context, key string, visit func(members []string) error) error {
	return s.each(ctx, key, true, visit)
}

// EachUID hands over the uids that stand in an index, in chunks and in no order. One may come twice.
func (s Part) EachUID(ctx context.Context, index store.Index, visit func(uids []string) error) error {
	return s.each(ctx, s.Keys.Index(index), index.Scored(), visit)
}

func (s Part) each(ctx context.Context, key string, sorted bool, visit func(members []string) error) error {
	return store.Scan(ctx, "walk over a set", func(cursor uint64) ([]string, uint64, error) {
		return store.ScanMembers(ctx, s.Clients.Read, key, sorted, cursor)
	}, visit)
}

// Lengths reads how long lists are. A key of the wrong type counts as empty.
func (s Part) Lengths(ctx context.Context, keys ...string) ([]int64, error) {
	return store.ReadEach(ctx, s.Clients.Read, "read the lengths of lists", keys, func(pipe redis.Pipeliner, key string) *redis.IntCmd { return pipe.LLen(ctx, key) })
}
