package testkit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit/long"
)

// replicate writes a key, and returns when a replica has it too.
func replicate(t *testing.T, s *Server, key, value string) {
	t.Helper()
	address, _ := s.master(t, keySlot(t, s, key))
	must(t, withNode(address, func(ctx context.Context, client *redis.Client) error {
		conn := client.Conn() // WAIT is about the writes of its own connection
		defer func() { _ = conn.Close() }()
		if err := conn.Set(ctx, key, value, 0).Err(); err != nil {
			return err
		}
		acknowledged, err := conn.Wait(ctx, 1, Limit).Result()
		if err == nil && acknowledged != 1 {
			err = fmt.Errorf("want the write on 1 replica, got %d", acknowledged)
		}
		return err
	}))
}

// role is what a node says of itself.
func role(t *testing.T, address string) (role string) {
	t.Helper()
	must(t, withNode(address, func(ctx context.Context, client *redis.Client) error {
		answer, err := client.Do(ctx, "ROLE").Slice()
		if err == nil {
			role = fmt.Sprint(answer[0])
		}
		return err
	}))
	return role
}

func TestAPromotedReplicaServesWhatWasWrittenBefore(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := ReplicatedCluster(t)
	replicate(t, s, "{a}1", "before")
	before := s.Dump(t)
	killed := s.KillMaster(t, "{a}1")
	s.AwaitFailover(t, "{a}1", killed)
	if diff := cmp.Diff(before, s.Dump(t)); diff != "" {
		t.Errorf("state after failover (-before +after):\n%s", diff)
	}
	if got, err := s.Client(t).Get(t.Context(), "{a}1").Result(); got != "before" {
		t.Errorf("GET from the promoted replica = %q, %v; want what was written before", got, err)
	}

	s.RestartNode(t, killed)
	if got := role(t, killed); got != "slave" {
		t.Errorf("the killed master returned as %s, want a replica", got)
	}
	replicate(t, s, "{a}2", "after") // who else is there to acknowledge it?
}

func TestAReplicatedClusterIsEmptiedAtItsMasters(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := ReplicatedCluster(t)
	replicate(t, s, "k", "v")
	if got := len(s.masters(t)); got != clusterSize || len(s.Addrs) != 2*clusterSize {
		t.Errorf("%d masters among %d nodes, want %d with a replica each", got, len(s.Addrs), clusterSize)
	}
	s.Flush(t)
	if dump := s.Dump(t); len(dump) != 0 {
		t.Errorf("dump after Flush = %v, want nothing", dump)
	}
}

// writer writes numbered keys of one slot, and one more again and again, until it is stopped or refused.
type writer struct {
	stop    chan struct{}
	written chan int // how many keys there are, for whoever looks; closed at the end
	count   int
	err     error
}

func (w *writer) run(ctx context.Context, client redis.UniversalClient) {
	defer close(w.written)
	for ; w.err == nil; w.count++ {
		select {
		case <-w.stop:
			return
		case w.written <- w.count:
		default:
		}
		w.err = errors.Join(client.Set(ctx, fmt.Sprint("{a}", w.count), w.count, 0).Err(), client.Incr(ctx, "{a}sum").Err())
	}
}

// write starts a writer that goes where a cluster sends it, and returns when it has written a few keys.
func write(t *testing.T, s *Server) *writer {
	t.Helper()
	options := s.Options().Cluster()
	options.MaxRedirects = 10
	client := redis.NewClusterClient(options)
	t.Cleanup(func() { _ = client.Close() })
	w := &writer{stop: make(chan struct{}), written: make(chan int)}
	go w.run(context.WithoutCancel(t.Context()), client)
	w.await(t, 300)
	return w
}

// await waits until more keys are written.
func (w *writer) await(t *testing.T, more int) {
	t.Helper()
	for enough := <-w.written + more; ; {
		count, running := <-w.written
		if !running {
			t.Fatalf("write key %d: %v", w.count, w.err)
		}
		if count >= enough {
			return
		}
	}
}

// end stops the writer, which must have been refused nothing.
func (w *writer) end(t *testing.T) {
	t.Helper()
	close(w.stop)
	for range w.written {
	}
	must(t, w.err)
}

func TestAMovedSlotServesEveryKeyThatIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	for name, lend := range map[string]func(testing.TB) *Server{"masters": Cluster, "with replicas": ReplicatedCluster} {
		t.Run(name, func(t *testing.T) {
			s := lend(t)
			source, _ := s.master(t, keySlot(t, s, "{a}"))
			w := write(t, s)
			s.MoveSlot(t, "{a}")
			if target, _ := s.master(t, keySlot(t, s, "{a}")); target == source {
				t.Errorf("the slot is still at %s", source)
			}
			w.await(t, 10)
			w.end(t)
			w.expectAll(t, s)
		})
	}
}

// expectAll wants every key with its value, and at one node only.
func (w *writer) expectAll(t *testing.T, s *Server) {
	t.Helper()
	want := map[string]Value{"{a}sum": {Type: "string", Data: fmt.Sprint(w.count)}}
	for i := range w.count {
		want[fmt.Sprint("{a}", i)] = Value{Type: "string", Data: fmt.Sprint(i)}
	}
	if diff := cmp.Diff(want, s.Dump(t)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
