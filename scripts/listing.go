package scripts

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// listChunk is about how many uids EachModel hands over at once.
const listChunk = 200

// EachModel hands the uids of all stored models that begin with prefix to visit, in chunks and in no order, each uid once.
// It walks the keys, so that it also finds what no set knows; what is put or removed meanwhile may be missed. It ends early
// with the error of visit.
func (s *Store) EachModel(ctx context.Context, prefix string, visit func(uids []string) error) error {
	node, err := s.scanNode(ctx)
	if err != nil {
		return fmt.Errorf("list models: %w", err)
	}
	seen := newSeen()
	pattern := escapeGlob(s.Keys.models()+prefix) + "*"
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, pattern, listChunk).Result()
		if err != nil {
			return fmt.Errorf("list models: %w", err)
		}
		uids := seen.fresh(keys, s.Keys.models())
		for chunk := range slices.Chunk(uids, listChunk) {
			if err := visit(chunk); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// scanNode is where the keys of the queue live: SCAN on a cluster client would ask any node.
func (s *Store) scanNode(ctx context.Context) (redis.Cmdable, error) {
	if cluster, ok := s.clients.Read.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, s.Keys.Due())
	}
	return s.clients.Read, nil
}

// escapeGlob makes a text mean itself in a pattern of SCAN.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
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

// PolicyNames lists the policies that were stored under a name of their own, sorted.
func (s *Store) PolicyNames(ctx context.Context) ([]string, error) {
	names, err := s.clients.Read.HKeys(ctx, s.Keys.Policies()).Result()
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "inline-") })
	if !slices.Contains(names, DefaultPolicyName) {
		names = append(names, DefaultPolicyName)
	}
	slices.Sort(names)
	return names, nil
}
