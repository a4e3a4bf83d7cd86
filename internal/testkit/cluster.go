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

const hashSlots = 16384

// startNodes starts as many nodes and makes a cluster of them: the first are masters, the others replicas of one master each.
func startNodes(count int, args ...string) (*Server, error) {
	s := &Server{}
	for range count {
		n, err := onFreePorts(func() (*node, error) {
			bus, err := freePort() // of the cluster bus: the default, port + 10000, may be taken or above 65535
			if err != nil {
				return nil, err
			}
			return tryNode(append([]string{"--cluster-enabled", "yes", "--cluster-port", bus}, args...))
		})
		if err != nil {
			s.stop()
			return nil, err
		}
		s.nodes = append(s.nodes, n)
	}
	if err := s.join(); err != nil {
		s.stop()
		return nil, err
	}
	return s.ready()
}

// join introduces every node to the first, deals out the slots and lets the replicas follow, as redis-cli --cluster create does.
func (s *Server) join() error {
	known := s.nodes[0]
	bus := known.args[slices.Index(known.args, "--cluster-port")+1]
	host, port, err := net.SplitHostPort(known.addr)
	if err != nil {
		return err
	}
	for i, n := range s.nodes {
		err := withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
			err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()
			if i < clusterSize {
				first, last := i*hashSlots/clusterSize, (i+1)*hashSlots/clusterSize-1
				err = errors.Join(err, client.ClusterAddSlotsRange(ctx, first, last).Err())
			}
			return errors.Join(err, client.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err())
		})
		if err != nil {
			return fmt.Errorf("join node %s to the cluster: %w", n.addr, err)
		}
	}
	for i, replica := range s.nodes[clusterSize:] {
		master := s.nodes[i]
		var id string
		err := withNode(master.addr, func(ctx context.Context, client *redis.Client) (err error) {
			id, err = client.Do(ctx, "CLUSTER", "MYID").Text()
			return err
		})
		if err == nil {
			err = withNode(replica.addr, func(ctx context.Context, client *redis.Client) error {
				var refused error // until it knows the master
				err := poll(ctx, replica.exited, func() bool { refused = client.ClusterReplicate(ctx, id).Err(); return refused == nil })
				return errors.Join(err, refused)
			})
		}
		if err != nil {
			return fmt.Errorf("let %s follow %s: %w", replica.addr, master.addr, err)
		}
	}
	return s.awaitCluster()
}

// awaitCluster waits until every node knows all others and serves, and every replica follows; for a single server it returns at once.
func (s *Server) awaitCluster() error {
	if len(s.nodes) == 1 {
		return nil
	}
	return s.awaitNodes(func(ctx context.Context, client *redis.Client) bool {
		return clusterServes(ctx, client) && s.isComplete(ctx, client)
	})
}

// awaitNodes waits until a condition holds for every living node, one after the other.
func (s *Server) awaitNodes(holds func(context.Context, *redis.Client) bool) error {
	for _, n := range s.living() {
		err := withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
			return poll(ctx, n.exited, func() bool { return holds(ctx, client) })
		})
		if err != nil {
			return fmt.Errorf("await cluster node %s: %w%s", n.addr, err, n.logTail())
		}
	}
	return nil
}

func (s *Server) living() []*node {
	return slices.DeleteFunc(slices.Clone(s.nodes), (*node).isDead)
}

func clusterServes(ctx context.Context, client *redis.Client) bool {
	info, err := client.ClusterInfo(ctx).Result()
	slots := fmt.Sprintf("cluster_slots_ok:%d\r\n", hashSlots)
	return err == nil && strings.Contains(info, "cluster_state:ok\r\n") && strings.Contains(info, slots)
}

// isComplete reports whether a node sees the live nodes as masters and replicas in good health, and has its own replicas, or its master.
func (s *Server) isComplete(ctx context.Context, client *redis.Client) bool {
	nodes, err := client.ClusterNodes(ctx).Result()
	if err != nil || strings.Count(nodes, "\n") != len(s.nodes) ||
		strings.Count(nodes, "master ") != clusterSize || strings.Count(nodes, "slave ") != len(s.living())-clusterSize {
		return false
	}
	info, err := client.Info(ctx, "replication").Result()
	if isReplica(info) {
		return strings.Contains(info, "\r\nmaster_link_status:up\r\n")
	}
	return err == nil && strings.Count(info, ",state=online,") == strings.Count(nodes, "slave "+ownLine(nodes)[0])
}

// isReplica reads the replication section of INFO.
func isReplica(info string) bool { return strings.Contains(info, "role:slave\r\n") }

// ownLine returns the words of a node about itself. The first is its id, those from the ninth on are its slots.
func ownLine(nodes string) []string {
	for line := range strings.Lines(nodes) {
		if strings.Contains(line, " myself,") {
			return strings.Fields(line)
		}
	}
	return make([]string, 8)
}
