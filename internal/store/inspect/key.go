package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
)

// QueueKey is one of many keys of a kind.
type QueueKey struct {
	Kind store.KeyKind
	Name string // uid of the model, or owner of the list, name of the reply list, id of the bulk, or the label, gate or key of a limit
}

// EachKey hands over the keys of the queue of which there are many, in chunks and in no order. A key may come twice, and what is
// put or removed meanwhile may be missed. It ends early with the error of visit.
func (s Part) EachKey(ctx context.Context, visit func([]QueueKey) error) error {
	k := &s.Keys
	prefixes := map[store.KeyKind]string{
		store.KeyModel: k.Model(""), store.KeyPayload: k.Payload(""), store.KeyHistory: k.History(""), store.KeyClaimed: k.Claimed(""), store.KeyTaken: k.Taken(""), store.KeyReply: k.Reply(""), store.KeyBulk: k.Bulk(""), store.KeyError: k.Error(""),
		store.KeyLabel: k.Label(""), store.KeyGate: k.ParkedBy(""), store.KeyLimit: k.Limit(""), store.KeyRate: k.Rate(""), store.KeyCircuitState: k.Circuit(""),
		store.KeyTold: k.Told(""), store.KeyNotices: k.Notices(""), store.KeyRecipients: k.Recipients(""),
	}
	return s.Report().ScanKeys(ctx, "walk over the keys", k.Queue+":", func(names []string) error {
		keys := make([]QueueKey, 0, len(names))
		for _, name := range names {
			for kind, prefix := range prefixes {
				if rest, is := strings.CutPrefix(name, prefix); is && name != k.ClaimedCommands { // no poller owns these
					keys = append(keys, QueueKey{kind, rest})
				}
			}
		}
		return visit(keys)
	})
}

// EachMember hands over the members of a sorted set, such as Keys.Due, in chunks and in no order. A member may come twice.
func (s Part) EachMember(ctx context.Context, key string, visit func(members []string) error) error {
	return store.Scan(ctx, "walk over a set", func(cursor uint64) ([]string, uint64, error) {
		return s.Clients.Read.ZScan(ctx, key, cursor, "", store.ScanCount).Result()
	}, func(pairs []string) error {
		members := make([]string, 0, len(pairs)/2)
		for pair := range slices.Chunk(pairs, 2) { // each with its score
			members = append(members, pair[0])
		}
		return visit(members)
	})
}

// Lengths reads how long lists are. A key of the wrong type counts as empty.
func (s Part) Lengths(ctx context.Context, keys ...string) ([]int64, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := store.SendEach(keys, func(key string) *redis.IntCmd { return pipe.LLen(ctx, key) })
	err := store.ExecReads(ctx, pipe)
	return store.SendEach(replies, (*redis.IntCmd).Val), store.Wrap(err, "read the lengths of lists")
}
