package testkit

import (
	"context"
	"errors"
	"maps"

	"github.com/redis/go-redis/v9"
)

// backend is what runs behind one Server: a single redis-server, or the nodes of a cluster.
type backend struct {
	nodes  []*node
	config []map[string]string // of each node, as it was when the backend had started
}

func startSingle(args ...string) (*backend, error) {
	n, err := newNode(args...)
	if err != nil {
		return nil, err
	}
	b := &backend{nodes: []*node{n}}
	return b.ready()
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
		if err == nil && config["cluster-enabled"] == "yes" {
			config["slots of its own"], err = ownSlots(ctx, client)
		}
		return err
	})
	return config, err
}

// reset makes the backend as good as new for the next test, and says no when it cannot: a test may have killed a node,
// paused it, changed its configuration or moved a slot.
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
		flush(ctx, client),
	)
}

// flush removes every key of a node that is no replica; a replica follows its master.
func flush(ctx context.Context, client *redis.Client) error {
	if err := client.FlushAll(ctx).Err(); !redis.IsReadOnlyError(err) {
		return err
	}
	return nil
}

func (b *backend) stop() {
	for _, n := range b.nodes {
		n.stop()
	}
}
