package testkit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// fleet is the set of processes that make up one server: a single redis-server, or the nodes of a cluster.
type fleet struct {
	nodes  []*process
	config []map[string]string // of each node, as it was when the fleet had started
}

// clusterSize is the smallest number of masters that Redis Cluster is meant for.
const clusterSize = 3

// hashSlots is the number of slots of every Redis Cluster.
const hashSlots = 16384

func startSingle(args ...string) (*fleet, error) {
	p, err := newProcess(args...)
	if err != nil {
		return nil, err
	}
	return (&fleet{nodes: []*process{p}}).ready()
}

func startCluster() (*fleet, error) {
	f := &fleet{}
	for range clusterSize {
		p, err := newClusterNode()
		if err != nil {
			f.stop()
			return nil, err
		}
		f.nodes = append(f.nodes, p)
	}
	if err := f.join(); err != nil {
		f.stop()
		return nil, err
	}
	return f.ready()
}

// newClusterNode takes a free port for the cluster bus too: the default, port + 10000, may be taken or above 65535.
func newClusterNode() (*process, error) {
	bus, err := freePort()
	if err != nil {
		return nil, err
	}
	return newProcess("--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "5000")
}

// join deals out the slots and introduces every node to the first, as redis-cli --cluster create does.
func (f *fleet) join() error {
	for i, p := range f.nodes {
		first, last := i*hashSlots/clusterSize, (i+1)*hashSlots/clusterSize-1
		err := withNode(p.addr, func(ctx context.Context, node *redis.Client) error {
			return errors.Join(
				node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(),
				node.ClusterAddSlotsRange(ctx, first, last).Err(),
				f.nodes[0].meet(ctx, node),
			)
		})
		if err != nil {
			return fmt.Errorf("join node %s to the cluster: %w", p.addr, err)
		}
	}
	return f.awaitCluster()
}

// meet introduces node to p.
func (p *process) meet(ctx context.Context, node *redis.Client) error {
	host, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		return err
	}
	return node.Do(ctx, "CLUSTER", "MEET", host, port, p.option("--cluster-port")).Err()
}

func (p *process) option(name string) string {
	for i, arg := range p.args {
		if arg == name {
			return p.args[i+1]
		}
	}
	return ""
}

// awaitCluster waits until every node knows all others and serves; for a single server it returns at once.
func (f *fleet) awaitCluster() error {
	if len(f.nodes) == 1 {
		return nil
	}
	for _, p := range f.nodes {
		err := withNode(p.addr, func(ctx context.Context, node *redis.Client) error {
			return poll(ctx, p.exited, func() bool { return clusterServes(ctx, node) })
		})
		if err != nil {
			return fmt.Errorf("await cluster node %s: %w%s", p.addr, err, p.logTail())
		}
	}
	return nil
}

func clusterServes(ctx context.Context, node *redis.Client) bool {
	info, err := node.ClusterInfo(ctx).Result()
	known := fmt.Sprintf("cluster_known_nodes:%d\r\n", clusterSize)
	slots := fmt.Sprintf("cluster_slots_ok:%d\r\n", hashSlots)
	return err == nil && strings.Contains(info, "cluster_state:ok\r\n") &&
		strings.Contains(info, known) && strings.Contains(info, slots)
}

// ready notes the configuration that a later reset compares with.
func (f *fleet) ready() (*fleet, error) {
	for _, p := range f.nodes {
		config, err := p.readConfig()
		if err != nil {
			f.stop()
			return nil, err
		}
		f.config = append(f.config, config)
	}
	return f, nil
}

func (p *process) readConfig() (config map[string]string, err error) {
	err = withNode(p.addr, func(ctx context.Context, node *redis.Client) error {
		config, err = node.ConfigGet(ctx, "*").Result()
		return err
	})
	return config, err
}

// reset makes the fleet as good as new for the next test, and says no when it cannot: a test may have killed a node,
// paused it or changed its configuration.
func (f *fleet) reset() bool {
	for i, p := range f.nodes {
		if withNode(p.addr, empty) != nil {
			return false
		}
		config, err := p.readConfig()
		if err != nil || !maps.Equal(config, f.config[i]) {
			return false
		}
	}
	return f.awaitCluster() == nil
}

// empty forgets keys, scripts and the connections that an earlier test left open.
func empty(ctx context.Context, node *redis.Client) error {
	return errors.Join(
		node.ClientKillByFilter(ctx, "TYPE", "normal").Err(),
		node.ClientKillByFilter(ctx, "TYPE", "pubsub").Err(),
		node.ScriptFlush(ctx).Err(),
		node.FlushAll(ctx).Err(),
	)
}

func (f *fleet) addrs() []string {
	var addrs []string
	for _, p := range f.nodes {
		addrs = append(addrs, p.addr)
	}
	return addrs
}

func (f *fleet) stop() {
	for _, p := range f.nodes {
		p.stop()
	}
}
