package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is what Redis tells of itself: the fields of INFO.
type Server map[string]string

// Server reads what Redis tells of itself; on a cluster the node that holds the queue.
func (s Report) Server(ctx context.Context) (Server, error) {
	node, err := masterFor(ctx, s.Clients.Read, s.Keys.Due())
	if err != nil {
		return nil, fmt.Errorf("find the node of the queue: %w", err)
	}
	text, err := node.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask redis about itself: %w", err)
	}
	fields := make(Server)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields, nil
}

// RedisTime reads the clock of Redis, also when Config.Clock replaces it.
func (s Report) RedisTime(ctx context.Context) (time.Time, error) {
	node, err := masterFor(ctx, s.Clients.Write, s.Keys.Due()) // Write: a repeated command would look like a slow clock
	if err != nil {
		return time.Time{}, fmt.Errorf("find the node of the queue: %w", err)
	}
	now, err := node.Time(ctx).Result()
	return now, Wrap(err, "read the clock of redis")
}

// Size is how many keys the Redis holds, of all its users; on a cluster the node that holds the queue.
func (s Report) Size(ctx context.Context) (int, error) {
	node, err := masterFor(ctx, s.Clients.Read, s.Keys.Due())
	if err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	keys, err := node.DBSize(ctx).Result()
	return int(keys), Wrap(err, "count keys")
}

// Clear removes all keys of the queue. Nobody may use it meanwhile.
func (s Report) Clear(ctx context.Context) error {
	k := s.Keys
	err := s.Clients.Write.Unlink(ctx, k.Input(), k.Output(), k.Control()).Err()
	if err != nil {
		return fmt.Errorf("clear the queue: %w", err)
	}
	return s.ScanKeys(ctx, "clear the queue", k.Queue()+":", func(keys []string) error {
		return s.Clients.Write.Unlink(ctx, keys...).Err()
	})
}

// Types reads what kinds of values keys hold, in their order; "none": there is no such key.
func (s Report) Types(ctx context.Context, keys []string) ([]string, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := SendEach(keys, func(key string) *redis.StatusCmd { return pipe.Type(ctx, key) })
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read types: %w", err)
	}
	types := make([]string, len(keys))
	for i, reply := range replies {
		types[i] = reply.Val()
	}
	return types, nil
}

// TellBroken says of each broken model what its key holds.
func (s Report) TellBroken(ctx context.Context, records map[string]*Record) error {
	var broken []*Record
	var keys []string
	for _, record := range records {
		if record.Broken {
			broken, keys = append(broken, record), append(keys, s.Keys.Model(record.UID))
		}
	}
	types, err := s.Types(ctx, keys)
	for i, is := range types {
		broken[i].Fault = "key: expected a hash, found a " + is
	}
	return err
}
