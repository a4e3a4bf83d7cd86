package testkit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// KillMaster ends the node of a cluster that serves a key, as kill -9 would, and returns its address.
func (s *Server) KillMaster(t testing.TB, key string) (address string) {
	t.Helper()
	address, _ = s.master(t, keySlot(t, s, key))
	s.node(t, address).kill()
	return address
}

// AwaitFailover waits until every living node of a cluster knows another master than the killed one for a key, and serves.
func (s *Server) AwaitFailover(t testing.TB, key, killed string) {
	t.Helper()
	s.awaitMaster(t, keySlot(t, s, key), func(master string) bool { return master != killed })
}

// RestartNode starts a killed node of a cluster again, and returns when it has found its place: that of a replica if another was
// promoted meanwhile.
func (s *Server) RestartNode(t testing.TB, address string) {
	t.Helper()
	Must(t, s.node(t, address).start())
	Must(t, s.backend.awaitCluster())
}

// MoveSlot moves the slot of a key to another master, with all its keys, while it is in use. It returns when every node knows.
func (s *Server) MoveSlot(t testing.TB, key string) {
	t.Helper()
	slot := keySlot(t, s, key)
	source, sourceID := s.master(t, slot)
	masters := s.masters(t)
	others := slices.DeleteFunc(slices.Collect(maps.Keys(masters)), func(address string) bool { return address == source })
	target, targetID := others[0], masters[others[0]]
	set := func(address, state, id string) {
		Must(t, withNode(address, func(ctx context.Context, client *redis.Client) error {
			return client.Do(ctx, "CLUSTER", "SETSLOT", slot, state, id).Err()
		}))
	}
	set(target, "IMPORTING", sourceID)
	set(source, "MIGRATING", targetID)
	Must(t, withNode(source, func(ctx context.Context, client *redis.Client) error { return drain(ctx, client, slot, target) }))
	// The target first: a source that has given the slot away already would send clients there who would be sent back.
	for _, master := range slices.Insert(others, 1, source) {
		set(master, "NODE", targetID)
	}
	Must(t, withNode(source, func(ctx context.Context, client *redis.Client) error {
		count, err := client.ClusterCountKeysInSlot(ctx, slot).Result()
		if err == nil && count > 0 { // where nobody would look for them
			err = fmt.Errorf("slot %d: expected no keys left at %s, found %d", slot, source, count)
		}
		return err
	}))
	s.awaitMaster(t, slot, func(master string) bool { return master == target })
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
		words := []any{"MIGRATE", host, port, "", 0, Limit.Milliseconds(), "KEYS"}
		for _, key := range keys {
			words = append(words, key)
		}
		if err := source.Do(ctx, words...).Err(); err != nil {
			return fmt.Errorf("move %d keys to %s: %w", len(keys), target, err)
		}
	}
}

func keySlot(t testing.TB, s *Server, key string) (slot int) {
	t.Helper()
	s.ask(t, func(ctx context.Context, client *redis.Client) error {
		found, err := client.ClusterKeySlot(ctx, key).Result()
		slot = int(found)
		return err
	})
	return slot
}

func (s *Server) ask(t testing.TB, do func(context.Context, *redis.Client) error) {
	t.Helper()
	s.nodes(t)
	living := s.backend.living()
	if len(living) == 0 {
		t.Fatal("expected a node that lives, found none")
	}
	Must(t, withNode(living[0].addr, do))
}

// master returns the address and the id of the master of a slot, as a node that lives knows it.
func (s *Server) master(t testing.TB, slot int) (address, id string) {
	t.Helper()
	s.ask(t, func(ctx context.Context, client *redis.Client) (err error) {
		address, id, err = masterOf(ctx, client, slot)
		return err
	})
	return address, id
}

// masters returns the id of each master that serves slots, by address.
func (s *Server) masters(t testing.TB) map[string]string {
	t.Helper()
	masters := map[string]string{}
	s.ask(t, func(ctx context.Context, client *redis.Client) error {
		ranges, err := client.ClusterSlots(ctx).Result()
		for _, r := range ranges {
			masters[r.Nodes[0].Addr] = r.Nodes[0].ID
		}
		return err
	})
	return masters
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

// awaitMaster waits until every living node serves and knows a master of a slot that is the right one.
func (s *Server) awaitMaster(t testing.TB, slot int, right func(address string) bool) {
	t.Helper()
	Must(t, s.backend.awaitNodes(func(ctx context.Context, client *redis.Client) bool {
		address, _, err := masterOf(ctx, client, slot)
		return err == nil && right(address) && clusterServes(ctx, client)
	}))
}

func (s *Server) node(t testing.TB, address string) *node {
	t.Helper()
	nodes := s.nodes(t)
	i := slices.IndexFunc(nodes, func(n *node) bool { return n.addr == address })
	if i < 0 {
		t.Fatalf("expected a node of the cluster, found %s", address)
	}
	return nodes[i]
}
