package store

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// scanCount is about how many keys or members one call looks at, half a millisecond: Redis serves others in between.
const scanCount = 200

// KeyKind says what a key holds of which a queue has many.
type KeyKind int

// The kinds of keys of which a queue has many, and of indexes of which it has one.
const (
	KeyModel KeyKind = iota
	KeyPayload
	KeyHistory
	KeyClaimed
	KeyTaken
	KeyReply
	KeyBulk
	KeyError
	KeyLabel
	KeyGate // what waits for one
	KeyLimit
	KeyRate
	KeyCircuitState
	KeyTold
	KeyNotices
	KeyRecipients
	// Of these there is one.
	KeyFailing
	KeyDisabled
	KeyParked
)

// QueueKey is one of many keys of a kind.
type QueueKey struct {
	Kind KeyKind
	Name string // uid of the model, or owner of the list, name of the reply list, id of the bulk, or the label, gate or key of a limit
}

// EachKey hands over the keys of the queue of which there are many, in chunks and in no order. A key may come twice, and what is
// put or removed meanwhile may be missed. It ends early with the error of visit.
func (s *Store) EachKey(ctx context.Context, visit func([]QueueKey) error) error {
	return s.scanKeys(ctx, "walk over the keys", s.Keys.Queue()+":", func(names []string) error {
		return visit(s.Keys.sort(names))
	})
}

// EachModel hands the uids of all stored models that begin with prefix to visit, in chunks and in no order, each uid once.
// It walks the keys, so that it also finds what no set knows; what is put or removed meanwhile may be missed. It ends early
// with the error of visit.
func (s *Store) EachModel(ctx context.Context, prefix string, visit func(uids []string) error) error {
	seen := newSeen()
	return s.scanKeys(ctx, "list models", s.Keys.models()+prefix, func(keys []string) error {
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

// scanKeys walks over the keys that begin with prefix.
func (s *Store) scanKeys(ctx context.Context, doing, prefix string, visit func(keys []string) error) error {
	node, err := masterFor(ctx, s.clients.Read, s.Keys.Due())
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	pattern := escapeGlob(prefix) + "*"
	return scan(ctx, doing, func(cursor uint64) ([]string, uint64, error) {
		return node.Scan(ctx, cursor, pattern, scanCount).Result()
	}, visit)
}

// Clear removes all keys of the queue. Nobody may use it meanwhile.
func (s *Store) Clear(ctx context.Context) error {
	k := s.Keys
	err := s.clients.Write.Unlink(ctx, k.Input(), k.Output(), k.Control()).Err()
	if err != nil {
		return fmt.Errorf("clear the queue: %w", err)
	}
	return s.scanKeys(ctx, "clear the queue", k.Queue()+":", func(keys []string) error {
		return s.clients.Write.Unlink(ctx, keys...).Err()
	})
}

// Size is how many keys the Redis holds, of all its users; on a cluster the node that holds the queue.
func (s *Store) Size(ctx context.Context) (int, error) {
	node, err := masterFor(ctx, s.clients.Read, s.Keys.Due())
	if err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	keys, err := node.DBSize(ctx).Result()
	return int(keys), wrap(err, "count keys")
}

// sort keeps the keys of which a queue has many. The lane is named like a claimed list, but there is one, and no poller owns it.
func (k Keys) sort(names []string) []QueueKey {
	prefixes := map[KeyKind]string{
		KeyModel: k.Model(""), KeyPayload: k.Payload(""), KeyHistory: k.History(""), KeyClaimed: k.Claimed(""), KeyTaken: k.Taken(""), KeyReply: k.Reply(""), KeyBulk: k.Bulk(""), KeyError: k.Error(""),
		KeyLabel: k.Label(""), KeyGate: k.ParkedBy(""), KeyLimit: k.Limit(""), KeyRate: k.Rate(""), KeyCircuitState: k.Circuit(""),
		KeyTold: k.Told(""), KeyNotices: k.Notices(""), KeyRecipients: k.Recipients(""),
	}
	keys := make([]QueueKey, 0, len(names))
	for _, name := range names {
		for kind, prefix := range prefixes {
			if rest, is := strings.CutPrefix(name, prefix); is && name != k.Lane() {
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
		for chunk := range slices.Chunk(items, scanCount) { // a small set and an embedded server come as one piece
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

// EachMember hands over the members of a sorted set, such as Keys.Due, in chunks and in no order. A member may come twice.
func (s *Store) EachMember(ctx context.Context, key string, visit func(members []string) error) error {
	return scan(ctx, "walk over a set", func(cursor uint64) ([]string, uint64, error) {
		return s.clients.Read.ZScan(ctx, key, cursor, "", scanCount).Result()
	}, func(pairs []string) error {
		members := make([]string, 0, len(pairs)/2)
		for pair := range slices.Chunk(pairs, 2) { // each with its score
			members = append(members, pair[0])
		}
		return visit(members)
	})
}

// eachField hands over the fields of a hash with their values, in no order. One may come twice.
func (s *Store) eachField(ctx context.Context, doing, key string, visit func(field, value string)) error {
	return scan(ctx, doing, func(cursor uint64) ([]string, uint64, error) {
		return s.clients.Read.HScan(ctx, key, cursor, "", scanCount).Result()
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
