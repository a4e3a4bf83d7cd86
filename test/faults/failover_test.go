package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// TestAWorkerThatWaitsForTheReplicaNeverRunsWhatAFailoverLost lets a replica be promoted while the old master goes on. Of a key that lets one attempt run,
// the new master counts the one that it knows of, and starts the other again: a worker sees by WAIT which of the two its attempt is.
func TestAWorkerThatWaitsForTheReplicaNeverRunsWhatAFailoverLost(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, 2, 1, time.Minute)
	host, port, err := net.SplitHostPort(c.Server.Addr)
	must(t, err)
	replica := testkit.Redis(t, "--replicaof", host, port)
	successor := fixture.Live(t, replica)
	// takes is the work of a worker: it takes an attempt, and asks how many replicas know of that.
	takes := func(q *fixture.Queue) (entry, int64) {
		t.Helper()
		client := redis.NewClient(&redis.Options{Addr: q.Server.Addr, MaxRetries: -1})
		one := client.Conn()
		defer func() { _, _ = one.Close(), client.Close() }()
		raw, err := one.LPop(t.Context(), q.Store.Keys.Input).Result()
		var e entry
		if err = cmp.Or(err, json.Unmarshal([]byte(raw), &e)); err != nil {
			t.Fatal(err)
		}
		known, err := one.Wait(t.Context(), 1, time.Second).Result()
		must(t, err)
		return e, known
	}
	round := func(q *fixture.Queue) dispatcher.Round {
		t.Helper()
		d, err := dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{})
		must(t, err)
		r, err := d.RunOnce(t.Context())
		must(t, err)
		return r
	}
	check.Eventually(t, "a replica that follows", func() bool {
		return successor.Redis.Exists(t.Context(), c.Store.Keys.Due).Val() == 1
	})
	round(c.Queue)
	first, known := takes(c.Queue)
	stopIf(t, known != 1, "want the first attempt known to the replica, %d know it", known)
	must(t, successor.Redis.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	if r := round(successor); r.Started != 0 || successor.Redis.ZCard(t.Context(), successor.Store.Keys.Limit("host=h000")).Val() != 1 {
		t.Errorf("want the first attempt counted by the new master, got %+v", r)
	}
	// The old master has not heard of it yet: it ends the first attempt, and starts the second model.
	records, err := c.Store.Load(t.Context(), []string{first.UID})
	must(t, err)
	now := time.Now()
	c.Commit(now, records[first.UID].Decide(records[first.UID].Succeed(now, nil), now))
	check.Eventually(t, "the second model is started", func() bool {
		round(c.Queue)
		return c.Redis.LLen(t.Context(), c.Store.Keys.Input).Val() > 0
	})
	if second, known := takes(c.Queue); known != 0 || second.UID == first.UID {
		t.Errorf("want a worker told that no replica knows of %s, %d do", second.UID, known)
	}
}

// watched is a master with one replica and three sentinels; two of them must agree.
type watched struct {
	t               testing.TB
	master, replica *testkit.Server
	sentinels       []string // addresses
}

func newWatched(t *testing.T, downAfter time.Duration) *watched {
	t.Helper()
	w := &watched{t: t, master: testkit.Redis(t, "--repl-diskless-sync-delay", "0")}
	host, port, err := net.SplitHostPort(w.master.Addr)
	must(t, err)
	w.replica = testkit.Redis(t, "--replicaof", host, port)
	for range 3 {
		w.sentinels = append(w.sentinels, testkit.StartSentinel(t, w.master.Addr, 2,
			fmt.Sprintf("sentinel down-after-milliseconds mymaster %d\nsentinel failover-timeout mymaster 5000\n", downAfter.Milliseconds())))
	}
	return w
}

// awaitSafe waits until the replica follows and every sentinel knows it and both others.
func (w *watched) awaitSafe() {
	w.t.Helper()
	replica := w.replica.Client(w.t)
	check.Eventually(w.t, "a replica that follows", func() bool {
		return strings.Contains(replica.Info(context.Background(), "replication").Val(), "master_link_status:up")
	})
	for _, address := range w.sentinels {
		sentinel := w.sentinel(address)
		check.Eventually(w.t, "a sentinel that knows all others", func() bool {
			others, err := sentinel.Sentinels(context.Background(), "mymaster").Result()
			replicas, failed := sentinel.Replicas(context.Background(), "mymaster").Result()
			return errors.Join(err, failed) == nil && len(others) == len(w.sentinels)-1 && len(replicas) == 1
		})
	}
}

func (w *watched) sentinel(address string) *redis.SentinelClient {
	client := redis.NewSentinelClient(&redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1})
	w.t.Cleanup(func() { _ = client.Close() })
	return client
}

// failOver kills the master once the replica knows all that it knows, and returns when the sentinels have agreed on the replica.
func (w *watched) failOver() {
	w.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: w.master.Addr, MaxRetries: -1})
	one := client.Conn()
	defer func() { _, _ = one.Close(), client.Close() }()
	must(w.t, one.Set(context.Background(), "known to the replica", "", time.Minute).Err())
	known, err := one.Wait(context.Background(), 1, check.Limit).Result()
	stopIf(w.t, known != 1 || err != nil, "want a replica that has all, got %d, %v", known, err)
	w.master.Kill(w.t)
	sentinel := w.sentinel(w.sentinels[0])
	check.Eventually(w.t, "sentinels that agree on the replica", func() bool {
		found := sentinel.GetMasterAddrByName(context.Background(), "mymaster").Val()
		return len(found) == 2 && net.JoinHostPort(found[0], found[1]) == w.replica.Addr
	})
}

func TestAFailoverBySentinelsCostsTheTimeUntilTheyAgree(t *testing.T) {
	long.Only(t)
	t.Parallel()
	w := newWatched(t, time.Second)
	address := "redis-sentinel://" + strings.Join(w.sentinels, ",") + "/mymaster"
	d := newDrill(t, address, address)
	w.awaitSafe()
	d.conclude(func() {
		killed := time.Now()
		w.master.Kill(t)
		d.cut = killed.Add(-time.Second) // the replica may lag behind
		d.progress(10)
		t.Logf("a result was applied again %s after the kill", time.Since(killed).Round(10*time.Millisecond))
		role, err := w.replica.Client(t).Info(d.ctx, "replication").Result()
		failIf(t, err != nil || !strings.Contains(role, "role:master"), "the fault did not strike: want another master, got %s, %v", role, err)
		w.master.Restart(t) // the sentinels make a replica of it
	})
}

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
		words := []any{"MIGRATE", host, port, "", 0, check.Limit.Milliseconds(), "KEYS"}
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
		ranges, err := slotsOf(ctx, client)
		for _, r := range ranges {
			masters[r.Nodes[0].Addr] = r.Nodes[0].ID
		}
		return err
	})
	return master, masters, slot
}

func slotsOf(ctx context.Context, client *redis.Client) ([]redis.ClusterSlot, error) {
	return client.ClusterSlots(ctx).Result() //nolint:staticcheck // the master is first there; CLUSTER SHARDS marks it by its role alone
}

func masterOf(ctx context.Context, client *redis.Client, slot int) (address, id string, err error) {
	ranges, err := slotsOf(ctx, client)
	for _, r := range ranges {
		if r.Start <= slot && slot <= r.End {
			return r.Nodes[0].Addr, r.Nodes[0].ID, nil // its master is first
		}
	}
	return "", "", cmp.Or(err, fmt.Errorf("slot %d: expected a master, found none", slot))
}

// TestAMovedSlotServesEveryKeyThatIsWrittenMeanwhile is also about an assumption of the drills with a killed master: each write that was
// confirmed is there, at one node alone.
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
				check.StopIf(t, err != nil, "write key %d: %v", i, err)
				want[key] = testkit.Value{Type: "string", Data: fmt.Sprint(i)}
				if i == 300 {
					close(first)
				}
			}
			target, _, _ := mastersFor(t, s, "{a}")
			check.FailIf(t, target == source, "the slot is still at %s", source)
			check.Equal(t, want, s.Dump(t))
		})
	}
}
