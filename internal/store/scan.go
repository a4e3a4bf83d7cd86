package store

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ScanCount is about how many keys or members one call looks at, half a millisecond: Redis serves others in between.
const ScanCount = 200

// EachModel hands the uids of all stored models that begin with prefix to visit, in chunks and in no order, each uid once.
// It walks the keys, so that it also finds what no set knows; what is put or removed meanwhile may be missed. It ends early
// with the error of visit.
func (s *Store) EachModel(ctx context.Context, prefix string, visit func(uids []string) error) error {
	seen := newSeen()
	return s.ScanKeys(ctx, "list models", s.Keys.models()+prefix, func(keys []string) error {
		return visit(seen.fresh(keys, s.Keys.models()))
	})
}

// seen remembers uids by a hash, because SCAN may return a key twice and the names of a million models would take 100 MB.
type seen struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newSeen() seen { return seen{maphash.MakeSeed(), make(map[uint64]struct{})} }

// fresh returns the uids of keys that it has not returned before.
func (s seen) fresh(keys []string, prefix string) []string {
	uids := make([]string, 0, len(keys))
	for _, key := range keys {
		hash := maphash.String(s.seed, key)
		if _, known := s.hashes[hash]; known {
			continue
		}
		s.hashes[hash] = struct{}{}
		uids = append(uids, strings.TrimPrefix(key, prefix))
	}
	return uids
}

// ScanKeys walks over the keys that begin with prefix.
func (s *Store) ScanKeys(ctx context.Context, doing, prefix string, visit func(keys []string) error) error {
	node, err := masterFor(ctx, s.Clients.Read, s.Keys.Due())
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	pattern := escapeGlob(prefix) + "*"
	return Scan(ctx, doing, func(cursor uint64) ([]string, uint64, error) {
		return node.Scan(ctx, cursor, pattern, ScanCount).Result()
	}, visit)
}

// Scan walks with a cursor until its end. An error says what it was doing.
func Scan(ctx context.Context, what string, next func(cursor uint64) ([]string, uint64, error), visit func([]string) error) error {
	for cursor := uint64(0); ; {
		items, following, err := next(cursor)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for chunk := range slices.Chunk(items, ScanCount) { // a small set and an embedded server come as one piece
			if err := visit(chunk); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if cursor = following; cursor == 0 {
			return nil
		}
	}
}

// eachField hands over the fields of a hash with their values, in no order. One may come twice.
func (s *Store) eachField(ctx context.Context, doing, key string, visit func(field, value string)) error {
	return Scan(ctx, doing, func(cursor uint64) ([]string, uint64, error) {
		return s.Clients.Read.HScan(ctx, key, cursor, "", ScanCount).Result()
	}, func(pairs []string) error {
		for pair := range slices.Chunk(pairs, 2) {
			visit(pair[0], pair[1])
		}
		return nil
	})
}

// masterFor is the node on which a key lives: a cluster client would send a command without keys to any node.
func masterFor(ctx context.Context, client redis.UniversalClient, key string) (redis.Cmdable, error) {
	if cluster, is := client.(*redis.ClusterClient); is {
		return cluster.MasterForKey(ctx, key)
	}
	return client, nil
}

// escapeGlob makes a text mean itself in a pattern of SCAN.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// AtomicBatch is how many models are read in one step, in which Redis serves nobody else: below a millisecond.
const AtomicBatch = 20
