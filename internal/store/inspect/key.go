package inspect

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// EachMember hands over the members of a set, sorted or not, in chunks and in no order. A member may come twice.
func (s Part) EachMember(ctx context.Context, key string, sorted bool, visit func(members []string) error) error {
	return redis.Scan(ctx, "walk over a set", func(cursor uint64) ([]string, uint64, error) {
		return store.ScanMembers(ctx, s.store.Clients.Read, key, sorted, cursor)
	}, visit)
}

// Lengths reads how long lists are. A key of the wrong type counts as empty.
func (s Part) Lengths(ctx context.Context, keys ...string) ([]int64, error) {
	return redis.ReadEach(ctx, s.store.Clients.Read, "read the lengths of lists", keys, func(pipe goredis.Pipeliner, key string) *goredis.IntCmd { return pipe.LLen(ctx, key) })
}
