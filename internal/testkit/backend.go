package testkit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// backend is what runs behind one Server: a single redis-server, or the nodes of a cluster.
type backend struct {
	nodes  []*node
	config []map[string]string // of each node, as it was when the backend had started
}

// clusterSize is the smallest number of masters that Redis Cluster is meant for.
const clusterSize = 3

// hashSlots is the number of slots of every Redis Cluster.
const hashSlots = 16384

func startSingle(args ...string) (*backend, error) {
	n, err := newNode(args...)
	if err != nil {
		return nil, err
	}
	b := &backend{nodes: []*node{n}}
	return b.ready()
}

func startCluster() (*backend, error) {
	b := &backend{}
	for range clusterSize {
		n, err := newClusterNode()
		if err != nil {
			b.stop()
			return nil, err
		}
		b.nodes = append(b.nodes, n)
	}
	if err := b.join(); err != nil {
		b.stop()
		return nil, err
	}
	return b.ready()
}

// newClusterNode takes a free port for the cluster bus too: the default, port + 10000, may be taken or above 65535.
func newClusterNode() (*node, error) {
	bus, err := freePort()
	if err != nil {
		return nil, err
	}
	return newNode("--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "5000")
}

// join deals out the slots and introduces every node to the first, as redis-cli --cluster create does.
func (b *backend) join() error {
	known := b.nodes[0]
	bus := known.args[slices.Index(known.args, "--cluster-port")+1]
	host, port, err := net.SplitHostPort(known.addr)
	if err != nil {
		return err
	}
	for i, n := range b.nodes {
		first, last := i*hashSlots/clusterSize, (i+1)*hashSlots/clusterSize-1
		err := withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
			return errors.Join(
				client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(),
				client.ClusterAddSlotsRange(ctx, first, last).Err(),
				client.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err(),
			)
		})
		if err != nil {
			return fmt.Errorf("join node %s to the cluster: %w", n.addr, err)
		}
	}
	return b.awaitCluster()
}

// awaitCluster waits until every node knows all others and serves; for a single server it returns at once.
func (b *backend) awaitCluster() error {
	if len(b.nodes) == 1 {
		return nil
	}
	for _, n := range b.nodes {
		err := withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
			return poll(ctx, n.exited, func() bool { return clusterServes(ctx, client) })
		})
		if err != nil {
			return fmt.Errorf("await cluster node %s: %w%s", n.addr, err, n.logTail())
		}
	}
	return nil
}

func clusterServes(ctx context.Context, client *redis.Client) bool {
	info, err := client.ClusterInfo(ctx).Result()
	known := fmt.Sprintf("cluster_known_nodes:%d\r\n", clusterSize)
	slots := fmt.Sprintf("cluster_slots_ok:%d\r\n", hashSlots)
	return err == nil && strings.Contains(info, "cluster_state:ok\r\n") &&
		strings.Contains(info, known) && strings.Contains(info, slots)
}

// ready notes the configuration that a later reset compares with.
func (b *backend) ready() (*backend, error) {
	for _, n := range b.nodes {
		config, err := n.readConfig()
		if err != nil {
			b.stop()
			return nil, err
		}
		b.config = append(b.config, config)
	}
	return b, nil
}

func (n *node) readConfig() (config map[string]string, err error) {
	err = withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
		config, err = client.ConfigGet(ctx, "*").Result()
		return err
	})
	return config, err
}

// reset makes the backend as good as new for the next test, and says no when it cannot: a test may have killed a node,
// paused it or changed its configuration.
func (b *backend) reset() bool {
	for i, n := range b.nodes {
		if withNode(n.addr, empty) != nil {
			return false
		}
		config, err := n.readConfig()
		if err != nil || !maps.Equal(config, b.config[i]) {
			return false
		}
	}
	return b.awaitCluster() == nil
}

// empty forgets keys, scripts and the connections that an earlier test left open.
func empty(ctx context.Context, client *redis.Client) error {
	return errors.Join(
		client.ClientKillByFilter(ctx, "TYPE", "normal").Err(),
		client.ClientKillByFilter(ctx, "TYPE", "pubsub").Err(),
		client.ScriptFlush(ctx).Err(),
		client.FlushAll(ctx).Err(),
	)
}

func (b *backend) stop() {
	for _, n := range b.nodes {
		n.stop()
	}
}
