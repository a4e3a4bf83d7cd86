package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// clusterSize is the smallest number of masters that Redis Cluster is meant for.
const clusterSize = 3

// hashSlots is the number of slots of every Redis Cluster.
const hashSlots = 16384

func startCluster() (*backend, error) {
	return startNodes(clusterSize, "--cluster-node-timeout", "5000")
}

// startReplicated starts a cluster that soon takes a silent node for dead, and goes on with the slots of the others meanwhile.
func startReplicated() (*backend, error) {
	return startNodes(2*clusterSize, "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no",
		"--repl-diskless-sync-delay", "0")
}

// startNodes starts as many nodes and makes a cluster of them: the first are masters, the others replicas of one master each.
func startNodes(count int, args ...string) (*backend, error) {
	b := &backend{}
	for range count {
		n, err := newClusterNode(args...)
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
func newClusterNode(args ...string) (*node, error) {
	return onFreePorts(func() (*node, error) {
		bus, err := freePort()
		if err != nil {
			return nil, err
		}
		return tryNode(append([]string{"--cluster-enabled", "yes", "--cluster-port", bus}, args...))
	})
}

// join introduces every node to the first, deals out the slots and lets the replicas follow, as redis-cli --cluster create does.
func (b *backend) join() error {
	for i, n := range b.nodes {
		if err := b.introduce(i); err != nil {
			return fmt.Errorf("join node %s to the cluster: %w", n.addr, err)
		}
	}
	for i, replica := range b.nodes[clusterSize:] {
		if err := replica.follow(b.nodes[i]); err != nil {
			return fmt.Errorf("let %s follow %s: %w", replica.addr, b.nodes[i].addr, err)
		}
	}
	return b.awaitCluster()
}

// introduce makes one node known, and a master of its slots if it is to be one.
func (b *backend) introduce(i int) error {
	known := b.nodes[0]
	bus := known.args[slices.Index(known.args, "--cluster-port")+1]
	host, port, err := net.SplitHostPort(known.addr)
	if err != nil {
		return err
	}
	return withNode(b.nodes[i].addr, func(ctx context.Context, client *redis.Client) error {
		err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()
		if i < clusterSize {
			first, last := i*hashSlots/clusterSize, (i+1)*hashSlots/clusterSize-1
			err = errors.Join(err, client.ClusterAddSlotsRange(ctx, first, last).Err())
		}
		return errors.Join(err, client.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err())
	})
}

// follow makes the node a replica, as soon as it knows the master.
func (n *node) follow(master *node) error {
	id, err := master.id()
	if err != nil {
		return err
	}
	return withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
		var refused error
		err := poll(ctx, n.exited, func() bool { refused = client.ClusterReplicate(ctx, id).Err(); return refused == nil })
		return errors.Join(err, refused)
	})
}

// id is the name of the node in its cluster.
func (n *node) id() (id string, err error) {
	err = withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
		id, err = client.Do(ctx, "CLUSTER", "MYID").Text()
		return err
	})
	return id, err
}

// awaitCluster waits until every node knows all others and serves, and every replica follows; for a single server it returns at once.
func (b *backend) awaitCluster() error {
	if len(b.nodes) == 1 {
		return nil
	}
	return b.awaitNodes(func(ctx context.Context, client *redis.Client) bool {
		return clusterServes(ctx, client) && b.isComplete(ctx, client)
	})
}

// awaitNodes waits until a condition holds for every living node, one after the other.
func (b *backend) awaitNodes(holds func(context.Context, *redis.Client) bool) error {
	for _, n := range b.living() {
		err := withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
			return poll(ctx, n.exited, func() bool { return holds(ctx, client) })
		})
		if err != nil {
			return fmt.Errorf("await cluster node %s: %w%s", n.addr, err, n.logTail())
		}
	}
	return nil
}

func (b *backend) living() []*node {
	return slices.DeleteFunc(slices.Clone(b.nodes), (*node).isDead)
}

// clusterServes tells whether a node takes every slot for served.
func clusterServes(ctx context.Context, client *redis.Client) bool {
	info, err := client.ClusterInfo(ctx).Result()
	slots := fmt.Sprintf("cluster_slots_ok:%d\r\n", hashSlots)
	return err == nil && strings.Contains(info, "cluster_state:ok\r\n") && strings.Contains(info, slots)
}

// isComplete tells whether a node knows those that live as masters and replicas in good health, and has its own replicas, or its master.
func (b *backend) isComplete(ctx context.Context, client *redis.Client) bool {
	nodes, err := client.ClusterNodes(ctx).Result()
	if err != nil || strings.Count(nodes, "\n") != len(b.nodes) ||
		strings.Count(nodes, "master ") != clusterSize || strings.Count(nodes, "slave ") != len(b.living())-clusterSize {
		return false
	}
	info, err := client.Info(ctx, "replication").Result()
	if strings.Contains(info, "role:slave\r\n") {
		return strings.Contains(info, "\r\nmaster_link_status:up\r\n")
	}
	return err == nil && strings.Count(info, ",state=online,") == strings.Count(nodes, "slave "+ownLine(nodes)[0])
}

// ownLine returns the words of a node about itself. The first is its id, those from the ninth on are its slots.
func ownLine(nodes string) []string {
	for line := range strings.Lines(nodes) {
		if strings.Contains(line, " myself,") {
			return strings.Fields(line)
		}
	}
	return make([]string, 8)
}

// ownSlots returns the slots that a node serves, and those on their way.
func ownSlots(ctx context.Context, client *redis.Client) (string, error) {
	nodes, err := client.ClusterNodes(ctx).Result()
	return strings.Join(ownLine(nodes)[8:], " "), err
}
