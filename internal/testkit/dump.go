package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Value is the value of one key in a Dump.
type Value struct {
	Type    string // as the command TYPE says
	Data    any    // string; []string of a list; map[string]string of a hash; map[string]float64 of a zset; map[string]bool of a set; Stream
	Expires bool   // whether the key has a time to live
}

// Stream is the data of a stream.
type Stream struct {
	Entries []redis.XMessage
	Groups  []Group // by name
}

// Group is a consumer group of a stream.
type Group struct {
	Name            string
	LastDeliveredID string
	Pending         int64
}

// Dump reads every key with its value. Two dumps of equal states are equal, whatever the server, so a test can compare
// one taken before a call with one taken after it.
func (s *Server) Dump(t testing.TB) map[string]Value {
	t.Helper()
	all := map[string]Value{}
	s.eachNode(t, "dump", func(ctx context.Context, client *redis.Client) error {
		pipe, types, ttls := client.Pipeline(), map[string]*redis.StatusCmd{}, map[string]*redis.DurationCmd{}
		keys := client.Scan(ctx, 0, "*", 1000).Iterator()
		for keys.Next(ctx) {
			types[keys.Val()], ttls[keys.Val()] = pipe.Type(ctx, keys.Val()), pipe.PTTL(ctx, keys.Val())
		}
		_, err := pipe.Exec(ctx)
		if err = errors.Join(keys.Err(), err); err != nil {
			return fmt.Errorf("read the types of keys: %w", err)
		}
		for key, kind := range types {
			data, err := readData(ctx, client, kind.Val(), key)
			if err != nil {
				return fmt.Errorf("read key %q: %w", key, err)
			}
			all[key] = Value{Type: kind.Val(), Data: data, Expires: ttls[key].Val() > 0}
		}
		return nil
	})
	return all
}

func readData(ctx context.Context, client *redis.Client, kind, key string) (any, error) {
	switch kind {
	case "string":
		return client.Get(ctx, key).Result()
	case "list":
		return client.LRange(ctx, key, 0, -1).Result()
	case "hash":
		return client.HGetAll(ctx, key).Result()
	case "zset":
		members, err := client.ZRangeWithScores(ctx, key, 0, -1).Result()
		scores := map[string]float64{}
		for _, z := range members {
			scores[fmt.Sprint(z.Member)] = z.Score
		}
		return scores, err
	case "set":
		names, err := client.SMembers(ctx, key).Result()
		members := map[string]bool{}
		for _, name := range names {
			members[name] = true
		}
		return members, err
	case "stream":
		entries, err := client.XRange(ctx, key, "-", "+").Result()
		if err != nil {
			return nil, err
		}
		infos, err := client.XInfoGroups(ctx, key).Result()
		var groups []Group
		for _, g := range infos {
			if !strings.Contains(g.LastDeliveredID, "-") { // miniredis keeps the short form "0" as it was given
				g.LastDeliveredID += "-0"
			}
			groups = append(groups, Group{Name: g.Name, LastDeliveredID: g.LastDeliveredID, Pending: g.Pending})
		}
		slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
		return Stream{Entries: entries, Groups: groups}, err
	default:
		return nil, fmt.Errorf("expected a known type, found %q", kind)
	}
}
