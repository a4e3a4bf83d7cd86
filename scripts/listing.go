package scripts

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/policy"
)

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
	return scan(ctx, "list models", func(cursor uint64) ([]string, uint64, error) {
		return node.Scan(ctx, cursor, pattern, scanCount).Result()
	}, func(keys []string) error { return visit(seen.fresh(keys, s.Keys.models())) })
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
	names = slices.DeleteFunc(names, policy.IsInline)
	if !slices.Contains(names, DefaultPolicyName) {
		names = append(names, DefaultPolicyName)
	}
	slices.Sort(names)
	return names, nil
}
