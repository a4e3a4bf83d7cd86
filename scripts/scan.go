package scripts

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// scanCount is about how many keys or members one call looks at, half a millisecond: Redis serves others in between.
const scanCount = 200

// KeyKind says what a key holds of which a queue has many.
type KeyKind int

// The kinds of keys of which a queue has many.
const (
	KeyModel KeyKind = iota
	KeyPayload
	KeyHistory
	KeyClaimed
	KeyTaken
)

// QueueKey is one of many keys of a kind.
type QueueKey struct {
	Kind KeyKind
	Name string // uid of the model, or owner of the list
}

// EachKey hands over the keys of the queue of which there are many, in chunks and in no order. A key may come twice, and what is
// put or removed meanwhile may be missed. It ends early with the error of visit.
func (s *Store) EachKey(ctx context.Context, visit func([]QueueKey) error) error {
	node, err := s.scanNode(ctx)
	if err != nil {
		return fmt.Errorf("walk over the keys: %w", err)
	}
	pattern := escapeGlob(s.Keys.Queue()+":") + "*"
	return scan(ctx, "walk over the keys", func(cursor uint64) ([]string, uint64, error) {
		return node.Scan(ctx, cursor, pattern, scanCount).Result()
	}, func(names []string) error { return visit(s.Keys.sort(names)) })
}

// sort keeps the keys of which a queue has many.
func (k Keys) sort(names []string) []QueueKey {
	prefixes := map[KeyKind]string{KeyModel: k.Model(""), KeyPayload: k.Payload(""), KeyHistory: k.History(""), KeyClaimed: k.Claimed(""), KeyTaken: k.Taken("")}
	keys := make([]QueueKey, 0, len(names))
	for _, name := range names {
		for kind, prefix := range prefixes {
			if rest, is := strings.CutPrefix(name, prefix); is {
				keys = append(keys, QueueKey{kind, rest})
			}
		}
	}
	return keys
}

// scan walks with a cursor until its end. An error says what it was doing.
func scan(ctx context.Context, what string, next func(cursor uint64) ([]string, uint64, error), visit func([]string) error) error {
	for cursor := uint64(0); ; {
		items, following, err := next(cursor)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for len(items) > 0 { // a small set and an embedded server come as one piece
			n := min(scanCount, len(items))
			if err := visit(items[:n]); err != nil {
				return err
			}
			items = items[n:]
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if cursor = following; cursor == 0 {
			return nil
		}
	}
}

// EachMember hands over the members of a sorted set, such as Keys.Due, in chunks and in no order. A member may come twice.
func (s *Store) EachMember(ctx context.Context, key string, visit func(members []string) error) error {
	return scan(ctx, "walk over a set", func(cursor uint64) ([]string, uint64, error) {
		return s.clients.Read.ZScan(ctx, key, cursor, "", scanCount).Result()
	}, func(pairs []string) error { return visit(everySecond(pairs)) })
}

// EachPolicy hands over all stored policies. problem says why one cannot be read; empty: it can.
func (s *Store) EachPolicy(ctx context.Context, visit func(name, problem string)) error {
	return scan(ctx, "walk over the policies", func(cursor uint64) ([]string, uint64, error) {
		return s.clients.Read.HScan(ctx, s.Keys.Policies(), cursor, "", scanCount).Result()
	}, func(pairs []string) error {
		for i := 0; i+1 < len(pairs); i += 2 {
			problem := ""
			if _, err := s.policies.parse(pairs[i+1]); err != nil {
				problem = err.Error()
			}
			visit(pairs[i], problem)
		}
		return nil
	})
}

// everySecond keeps the names of a list of names and values.
func everySecond(pairs []string) []string {
	names := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		names = append(names, pairs[i])
	}
	return names
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
