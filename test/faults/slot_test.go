package faults

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// killMaster ends the node of a cluster that serves a key, as kill -9 would, and returns its address.
func killMaster(t testing.TB, s *testkit.Server, key string) (address string) {
	t.Helper()
	address, _, _ = mastersFor(t, s, key)
	s.KillNode(t, address)
	return address
}

// awaitMaster waits until every living node of a cluster serves and knows a master for a key that is the right one.
func awaitMaster(t testing.TB, s *testkit.Server, key string, right func(address string) bool) {
	t.Helper()
	_, _, slot := mastersFor(t, s, key)
	s.AwaitNodes(t, func(ctx context.Context, client *redis.Client) bool {
		address, _, err := masterOf(ctx, client, slot)
		return err == nil && right(address)
	})
}

// moveSlot moves the slot of a key to another master, with all its keys, while it is in use. It returns when every node knows.
func moveSlot(t testing.TB, s *testkit.Server, key string) {
	t.Helper()
	source, masters, slot := mastersFor(t, s, key)
	target := ""
	for address := range masters {
		if address != source {
			target = address
		}
	}
	set := func(address, state, id string) {
		s.On(t, address, func(ctx context.Context, client *redis.Client) error {
			return client.Do(ctx, "CLUSTER", "SETSLOT", slot, state, id).Err()
		})
	}
	set(target, "IMPORTING", masters[source])
	set(source, "MIGRATING", masters[target])
	s.On(t, source, func(ctx context.Context, client *redis.Client) error { return drain(ctx, client, slot, target) })
	// The target first: a source that has given the slot away already would send clients there who would be sent back.
	set(target, "NODE", masters[target])
	set(source, "NODE", masters[target])
	for other := range masters {
		if other != source && other != target {
			set(other, "NODE", masters[target])
		}
	}
	s.On(t, source, func(ctx context.Context, client *redis.Client) error {
		count, err := client.ClusterCountKeysInSlot(ctx, slot).Result()
		if err == nil && count > 0 { // where nobody would look for them
			err = fmt.Errorf("slot %d: expected no keys left at %s, found %d", slot, source, count)
		}
		return err
	})
	awaitMaster(t, s, key, func(master string) bool { return master == target })
}

// drain moves keys of a slot until none is left. A source that migrates lets no new ones come.
func drain(ctx context.Context, source *redis.Client, slot int, target string) error {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return err
	}
	for {
		keys, err := source.ClusterGetKeysInSlot(ctx, slot, 100).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		words := []any{"MIGRATE", host, port, "", 0, testkit.Limit.Milliseconds(), "KEYS"}
		for _, key := range keys {
			words = append(words, key)
		}
		if err := source.Do(ctx, words...).Err(); err != nil {
			return fmt.Errorf("move %d keys to %s: %w", len(keys), target, err)
		}
	}
}

// mastersFor is the slot of a key and the address of its master, as a node that lives knows it, and the ids of all masters by address.
func mastersFor(t testing.TB, s *testkit.Server, key string) (master string, masters map[string]string, slot int) {
	t.Helper()
	masters = map[string]string{}
	s.On(t, "", func(ctx context.Context, client *redis.Client) error {
		found, err := client.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			return err
		}
		slot = int(found)
		if master, _, err = masterOf(ctx, client, slot); err != nil {
			return err
		}
		ranges, err := client.ClusterSlots(ctx).Result()
		for _, r := range ranges {
			masters[r.Nodes[0].Addr] = r.Nodes[0].ID
		}
		return err
	})
	return master, masters, slot
}

func masterOf(ctx context.Context, client *redis.Client, slot int) (address, id string, err error) {
	ranges, err := client.ClusterSlots(ctx).Result()
	for _, r := range ranges {
		if r.Start <= slot && slot <= r.End {
			return r.Nodes[0].Addr, r.Nodes[0].ID, nil // its master stands first
		}
	}
	return "", "", cmp.Or(err, fmt.Errorf("slot %d: expected a master, found none", slot))
}

// TestAMovedSlotServesEveryKeyThatIsWrittenMeanwhile is also about what the drills with a killed master rely on: each write that is told to have
// succeeded is there, at one node alone.
func TestAMovedSlotServesEveryKeyThatIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	for name, lend := range map[string]func(testing.TB) *testkit.Server{"masters": testkit.Cluster, "with replicas": testkit.ReplicatedCluster} {
		t.Run(name, func(t *testing.T) {
			if name == "with replicas" {
				long.Only(t)
			}
			s := lend(t)
			source, _, _ := mastersFor(t, s, "{a}")
			options := s.Options().Cluster()
			options.MaxRedirects = 10
			client := redis.NewClusterClient(options)
			defer func() { _ = client.Close() }()
			want, moved, first := map[string]testkit.Value{}, make(chan struct{}), make(chan struct{})
			go func() {
				defer close(moved)
				<-first
				moveSlot(t, s, "{a}")
			}()
			for i, ended := 0, false; !ended; i++ { // until a little after the move
				select {
				case <-moved:
					ended = true
				default:
				}
				key := fmt.Sprint("{a}", i)
				err := client.Set(t.Context(), key, i, 0).Err()
				testkit.StopIf(t, err != nil, "write key %d: %v", i, err)
				want[key] = testkit.Value{Type: "string", Data: fmt.Sprint(i)}
				if i == 300 {
					close(first)
				}
			}
			target, _, _ := mastersFor(t, s, "{a}")
			testkit.FailIf(t, target == source, "the slot is still at %s", source)
			testkit.Equal(t, want, s.Dump(t))
		})
	}
}
