package store

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// migration moves the slot of a queue from one master of a cluster to another, by hand.
type migration struct {
	t              *testing.T
	slot           int
	source, target *redis.Client
}

func newMigration(t *testing.T, s *testkit.Server) *migration {
	t.Helper()
	var nodes []*redis.Client
	for _, addr := range s.Addrs {
		node := redis.NewClient((&testkit.Server{Addrs: []string{addr}}).Options().Simple())
		t.Cleanup(func() { _ = node.Close() })
		nodes = append(nodes, node)
	}
	m := &migration{t: t, slot: int(nodes[0].ClusterKeySlot(t.Context(), benchQueue).Val())}
	owner := slices.IndexFunc(nodes, func(node *redis.Client) bool { return len(m.keys(node)) > 0 })
	m.source, m.target = nodes[owner], nodes[(owner+1)%len(nodes)]
	return m
}

func (m *migration) keys(node *redis.Client) []string {
	return node.ClusterGetKeysInSlot(m.t.Context(), m.slot, 100).Val()
}

func (m *migration) set(node *redis.Client, state string, other *redis.Client) {
	m.t.Helper()
	id := other.Do(m.t.Context(), "CLUSTER", "MYID").Val()
	must(m.t, node.Do(m.t.Context(), "CLUSTER", "SETSLOT", m.slot, state, id).Err())
}

func (m *migration) move(keys ...string) {
	m.t.Helper()
	host, port, err := net.SplitHostPort(m.target.Options().Addr)
	must(m.t, err)
	for _, key := range keys {
		must(m.t, m.source.Do(m.t.Context(), "MIGRATE", host, port, key, 0, testkit.Limit.Milliseconds()).Err())
	}
}

func TestAQueueWhoseSlotMovesStandsStillUnharmedAndGoesOnWhereItIsThen(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Cluster(t)
	b := newBench(t, s)
	b.seed(keys{":due": scores{"m": 1}, ":running": scores{"n": 1}, "-output": list{"o"}})
	before := b.state()
	store, err := New(connect(t, "redis-cluster://"+s.Addr, ConnectOptions{}), Config{Queue: benchQueue})
	must(t, err)
	claim := func(ctx context.Context) error { _, err := store.Claim(ctx, "p", 1, time.Second); return err }
	read := func(ctx context.Context) error { _, err := store.ReadDue(ctx, DueRequest{Limit: 1}); return err }

	m := newMigration(t, s)
	m.set(m.target, "IMPORTING", m.source)
	m.set(m.source, "MIGRATING", m.target)
	m.move(b.Keys.Due)
	for name, call := range map[string]func(context.Context) error{"claim": claim, "read": read} {
		err := call(t.Context())
		failIf(t, !redis.IsTryAgainError(errors.Unwrap(err)), "%s in a slot of two nodes: expected TRYAGAIN, found %v", name, err)
	}
	m.move(m.keys(m.source)...)
	m.set(m.target, "NODE", m.target)
	m.set(m.source, "NODE", m.target)
	expectEqual(t, "the queue", before, newBench(t, s).state())

	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	for _, call := range []func(context.Context) error{read, claim} {
		for err := call(ctx); err != nil; err = call(ctx) {
			stopIf(t, ctx.Err() != nil, "expected the queue to go on, found %v", err)
		}
	}
}
