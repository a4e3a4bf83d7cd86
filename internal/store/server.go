package store

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
)

// Server has the fields of INFO.
type Server map[string]string

// Server reads INFO; on a cluster of the node that holds the queue.
func (s Report) Server(ctx context.Context) (Server, error) {
	node, err := s.store.node(ctx)
	if err != nil {
		return nil, err
	}
	text, err := node.Info(ctx).Result()
	fields := make(Server)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields, redis.Wrap(err, "ask redis about itself")
}

// node is the node of the queue, for commands without a key.
func (s *Store) node(ctx context.Context) (goredis.Cmdable, error) {
	node, err := redis.MasterFor(ctx, s.Clients.Read, s.Keys.Due)
	return node, redis.Wrap(err, "find the node of the queue")
}

// Identity is the name that a server gives itself.
type Identity struct {
	Name    string `json:"name"` // such as Redis or Valkey; empty: unknown
	Version string `json:"version"`
	Mode    string `json:"mode"` // standalone, sentinel or cluster
}

// Identity asks by HELLO, which an ACL cannot forbid; on a cluster the node that holds the queue.
func (s Report) Identity(ctx context.Context) (Identity, error) {
	node, err := s.store.node(ctx)
	if err != nil {
		return Identity{}, err
	}
	pipe := node.Pipeline()
	reply := pipe.Do(ctx, "HELLO")
	_, err = pipe.Exec(ctx)
	fields, _ := reply.Val().(map[any]any)
	name := redis.Text(fields["server"])
	if name != "" {
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	return Identity{name, redis.Text(fields["version"]), redis.Text(fields["mode"])}, redis.Wrap(err, "ask redis for its name")
}

// TryCommands runs commands that some services forbid, in a way that changes nothing, and returns their names and results.
func (s Report) TryCommands(ctx context.Context) (names []string, results []error, err error) {
	node, err := s.store.node(ctx)
	if err != nil {
		return nil, nil, err
	}
	tried, err := node.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, words := range [][]any{{"TIME"}, {"SCAN", 0}, {"XLEN", s.store.Keys.Outbox}, {"MULTI"}, {"EXEC"}} {
			pipe.Do(ctx, words...)
		}
		return nil
	})
	if err != nil && !redis.Answered(err) {
		return nil, nil, fmt.Errorf("try commands: %w", err)
	}
	for _, command := range tried {
		names, results = append(names, strings.ToUpper(command.Name())), append(results, command.Err())
	}
	return names, results, nil
}

// RedisTime reads the clock of Redis, also when Config.Clock replaces it.
func (s Report) RedisTime(ctx context.Context) (time.Time, error) {
	node, err := redis.MasterFor(ctx, s.store.Clients.Write, s.store.Keys.Due) // Write: a repeated command would look like a slow clock
	if err != nil {
		return time.Time{}, fmt.Errorf("find the node of the queue: %w", err)
	}
	now, err := node.Time(ctx).Result()
	return now, redis.Wrap(err, "read the clock of redis")
}

// Size is how many keys the Redis holds, of all its users; on a cluster the node that holds the queue.
func (s Report) Size(ctx context.Context) (int, error) {
	node, err := s.store.node(ctx)
	if err != nil {
		return 0, err
	}
	keys, err := node.DBSize(ctx).Result()
	return int(keys), redis.Wrap(err, "count keys")
}

// Clear removes all keys of the queue. Nobody may use it meanwhile.
func (s Report) Clear(ctx context.Context) error {
	k := &s.store.Keys
	if err := s.store.Clients.Write.Unlink(ctx, k.Input, k.Output, k.Control).Err(); err != nil {
		return fmt.Errorf("clear the queue: %w", err)
	}
	return s.ScanKeys(ctx, "clear the queue", redis.AnyPrefix(k.Queue+":"), func(keys []string) error {
		return s.store.Clients.Write.Unlink(ctx, keys...).Err()
	})
}

// Types reads the types of keys, in their order; "none": there is no such key.
func (s Report) Types(ctx context.Context, keys []string) ([]string, error) {
	return redis.ReadEach(ctx, s.store.Clients.Read, "read types", keys, func(pipe goredis.Pipeliner, key string) *goredis.StatusCmd { return pipe.Type(ctx, key) })
}

// ExplainBroken names the type of the key of each broken model.
func (s Report) ExplainBroken(ctx context.Context, records map[string]*Record) error {
	var broken []*Record
	var keys []string
	for _, record := range records {
		if record.Broken {
			broken, keys = append(broken, record), append(keys, s.store.Keys.Model(record.UID))
		}
	}
	types, err := s.Types(ctx, keys)
	if err != nil {
		return err
	}
	for i, is := range types {
		broken[i].Fault = "key: expected a hash, found a " + is
	}
	return nil
}

// seen remembers uids by a hash, because SCAN may return a key twice and the names of a million models would take 100 MB.
type seen struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newSeen() seen { return seen{maphash.MakeSeed(), make(map[uint64]struct{})} }

// fresh returns the uids that it has not returned before.
func (s seen) fresh(uids []string) []string {
	return slices.DeleteFunc(slices.Clone(uids), func(uid string) bool { return s.knows(uid, true) })
}

// knows reports whether a uid was kept before, and keeps it if that is wanted.
func (s seen) knows(uid string, keep bool) bool {
	hash := maphash.String(s.seed, uid)
	_, known := s.hashes[hash]
	if keep {
		s.hashes[hash] = struct{}{}
	}
	return known
}

// ScanKeys walks over the keys that fit a pattern, see redis.AnyPrefix.
func (s Report) ScanKeys(ctx context.Context, doing, pattern string, visit func(keys []string) error) error {
	node, err := s.store.node(ctx)
	if err != nil {
		return err
	}
	return redis.Scan(ctx, doing, func(cursor uint64) ([]string, uint64, error) {
		return node.Scan(ctx, cursor, pattern, redis.ScanCount).Result()
	}, visit)
}

// AtomicBatch is how many models are read in one step, in which Redis serves nobody else: below a millisecond.
const AtomicBatch = 20
