package faults

import (
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// TestAWorkerThatWaitsForTheReplicaNeverRunsWhatAFailoverLost lets a replica be promoted while the old master goes on. Of a key that lets one attempt run,
// the new master counts the one that it was told of, and starts again what it was not told of: a worker sees by WAIT which of the two its attempt is.
func TestAWorkerThatWaitsForTheReplicaNeverRunsWhatAFailoverLost(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, 2, 1)
	host, port, err := net.SplitHostPort(c.Server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := testkit.Redis(t, "--replicaof", host, port)
	successor := fixture.Live(t, replica)
	// takes is what a worker does: it takes an attempt, and asks how many replicas know of that.
	takes := func(q *fixture.Queue) (fixture.Entry, int64) {
		t.Helper()
		client := redis.NewClient(&redis.Options{Addr: q.Server.Addr, MaxRetries: -1})
		one := client.Conn()
		defer func() { _, _ = one.Close(), client.Close() }()
		raw, err := one.LPop(t.Context(), q.Store.Keys.Input).Result()
		if err != nil {
			t.Fatal(err)
		}
		known, err := one.Wait(t.Context(), 1, time.Second).Result()
		if err != nil {
			t.Fatal(err)
		}
		return readEntry(raw).Entry, known
	}
	round := func(q *fixture.Queue) dispatcher.Round {
		t.Helper()
		d, err := dispatcher.New(q.Store, dispatcher.Config{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.RunOnce(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	testkit.Eventually(t, "a replica that follows", func() bool {
		return successor.Redis.Exists(t.Context(), c.Store.Keys.Due).Val() == 1
	})
	round(c.Queue)
	first, known := takes(c.Queue)
	if known != 1 {
		t.Fatalf("want the first attempt known to the replica, %d know it", known)
	}
	if err := successor.Redis.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if r := round(successor); r.Started != 0 || successor.Redis.ZCard(t.Context(), successor.Store.Keys.Limit("host=h000")).Val() != 1 {
		t.Errorf("want the first attempt counted by the new master, got %+v", r)
	}
	// The old master has not heard of it yet: it ends the first attempt, and starts the second model.
	records, err := c.Store.Load(t.Context(), []string{first.UID})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c.Commit(now, records[first.UID].Decide(records[first.UID].Succeed(now, nil), now))
	testkit.Eventually(t, "the second model is started", func() bool {
		round(c.Queue)
		return c.Redis.LLen(t.Context(), c.Store.Keys.Input).Val() > 0
	})
	if second, known := takes(c.Queue); known != 0 || second.UID == first.UID {
		t.Errorf("want a worker told that no replica knows of %s, %d do", second.UID, known)
	}
}
