package scripts

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	return scan(ctx, func(cursor uint64) ([]string, uint64, error) {
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

// scan walks with a cursor until its end.
func scan(ctx context.Context, next func(cursor uint64) ([]string, uint64, error), visit func([]string) error) error {
	for cursor := uint64(0); ; {
		items, following, err := next(cursor)
		if err != nil {
			return fmt.Errorf("scan: %w", err)
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
	return scan(ctx, func(cursor uint64) ([]string, uint64, error) {
		return s.clients.Read.ZScan(ctx, key, cursor, "", scanCount).Result()
	}, func(pairs []string) error { return visit(everySecond(pairs)) })
}

// EachPolicy hands over all stored policies. problem says why one cannot be read; empty: it can.
func (s *Store) EachPolicy(ctx context.Context, visit func(name, problem string)) error {
	return scan(ctx, func(cursor uint64) ([]string, uint64, error) {
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

// WithoutModel picks the uids that have no model key.
func (s *Store) WithoutModel(ctx context.Context, uids []string) (without []string, err error) {
	pipe, replies := s.clients.Read.Pipeline(), make([]*redis.IntCmd, len(uids))
	for i, uid := range uids {
		replies[i] = pipe.Exists(ctx, s.Keys.Model(uid))
	}
	if err := execReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("look for models: %w", err)
	}
	for i, uid := range uids {
		if replies[i].Val() == 0 {
			without = append(without, uid)
		}
	}
	return without, nil
}

// Types reads what kinds of values keys hold, in their order; "none": there is no such key.
func (s *Store) Types(ctx context.Context, keys []string) ([]string, error) {
	pipe, replies := s.clients.Read.Pipeline(), make([]*redis.StatusCmd, len(keys))
	for i, key := range keys {
		replies[i] = pipe.Type(ctx, key)
	}
	if err := execReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read types: %w", err)
	}
	types := make([]string, len(keys))
	for i, reply := range replies {
		types[i] = reply.Val()
	}
	return types, nil
}

// Holding is a claimed or taken list with the heartbeat of its owner, both at one instant.
type Holding struct {
	Entries       int64
	Known         bool // the owner is known
	LastHeartbeat time.Time
}

// ClaimedBy reads the claimed list of a poller.
func (s *Store) ClaimedBy(ctx context.Context, owner string) (Holding, error) {
	return s.holding(ctx, s.Keys.Claimed(owner), s.Keys.Pollers(), owner)
}

// TakenBy reads the taken list of a worker pool.
func (s *Store) TakenBy(ctx context.Context, owner string) (Holding, error) {
	return s.holding(ctx, s.Keys.Taken(owner), s.Keys.Workers(), owner)
}

func (s *Store) holding(ctx context.Context, list, owners, owner string) (Holding, error) {
	pipe := s.clients.Read.TxPipeline()
	entries, seen := pipe.LLen(ctx, list), pipe.ZScore(ctx, owners, owner)
	if err := execReads(ctx, pipe); err != nil {
		return Holding{}, fmt.Errorf("read the list of %q: %w", owner, err)
	}
	// A set of owners that cannot be read tells nothing about this one.
	known := !missing(seen.Err())
	return Holding{entries.Val(), known, time.UnixMilli(int64(seen.Val())).UTC()}, nil
}

// RelistPoller makes a poller known whose claimed list nobody would look at: as an expired one, so that the next poller takes over.
func (s *Store) RelistPoller(ctx context.Context, owner string) error {
	if err := s.clients.Write.ZAddNX(ctx, s.Keys.Pollers(), redis.Z{Score: 0, Member: owner}).Err(); err != nil {
		return fmt.Errorf("list poller %q again: %w", owner, err)
	}
	return nil
}
