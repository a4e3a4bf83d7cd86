package faults

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// TestAWorkerThatWaitsForTheReplicaNeverRunsWhatAFailoverLost lets a replica be promoted while the old master goes on. Of a key that lets one attempt run,
// the new master counts the one that it was told of, and starts again what it was not told of: a worker sees by WAIT which of the two its attempt is.
func TestAWorkerThatWaitsForTheReplicaNeverRunsWhatAFailoverLost(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, 2, 1, time.Minute)
	host, port, err := net.SplitHostPort(c.Server.Addr)
	must(t, err)
	replica := testkit.Redis(t, "--replicaof", host, port)
	successor := fixture.Live(t, replica)
	// takes is what a worker does: it takes an attempt, and asks how many replicas know of that.
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
		d, err := dispatcher.New(q.Store, dispatcher.Config{})
		must(t, err)
		r, err := d.RunOnce(t.Context())
		must(t, err)
		return r
	}
	testkit.Eventually(t, "a replica that follows", func() bool {
		return successor.Redis.Exists(t.Context(), c.Store.Keys.Due).Val() == 1
	})
	round(c.Queue)
	first, known := takes(c.Queue)
	stopIf(t, known != 1, "want the first attempt known to the replica, %d know it", known)
	if err := successor.Redis.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if r := round(successor); r.Started != 0 || successor.Redis.ZCard(t.Context(), successor.Store.Keys.Limit("host=h000")).Val() != 1 {
		t.Errorf("want the first attempt counted by the new master, got %+v", r)
	}
	// The old master has not heard of it yet: it ends the first attempt, and starts the second model.
	records, err := c.Store.Load(t.Context(), []string{first.UID})
	must(t, err)
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

// watched is a master with one replica and three sentinels, two of which must agree.
type watched struct {
	t               testing.TB
	master, replica *testkit.Server
	sentinels       []string // addresses
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, master: testkit.Redis(t, "--repl-diskless-sync-delay", "0")}
	host, port, err := net.SplitHostPort(w.master.Addr)
	must(t, err)
	w.replica = testkit.Redis(t, "--replicaof", host, port)
	for range 3 {
		w.sentinels = append(w.sentinels, w.sentinel(host, port))
	}
	return w
}

// sentinel starts one sentinel; its program is redis-server by another name.
func (w *watched) sentinel(host, port string) string {
	w.t.Helper()
	address := testkit.FreeAddress(w.t)
	_, own, _ := net.SplitHostPort(address)
	dir := w.t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor mymaster %s %s 2\n", own, dir, host, port) +
		"sentinel down-after-milliseconds mymaster 1000\nsentinel failover-timeout mymaster 5000\n"
	must(w.t, os.WriteFile(config, []byte(text), 0o600))
	testkit.Start(w.t, "redis-server", config, "--sentinel")
	return address
}

// untilSafe waits until the replica follows and every sentinel knows it and both others.
func (w *watched) untilSafe(d *drill) {
	w.t.Helper()
	replica := w.replica.Client(w.t)
	d.until("a replica that follows", func() (bool, error) {
		info, err := replica.Info(d.ctx, "replication").Result()
		return strings.Contains(info, "master_link_status:up"), err
	})
	for _, address := range w.sentinels {
		sentinel := redis.NewSentinelClient(&redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1})
		w.t.Cleanup(func() { _ = sentinel.Close() })
		d.until("a sentinel that knows all others", func() (bool, error) {
			others, err := sentinel.Sentinels(d.ctx, "mymaster").Result()
			replicas, failed := sentinel.Replicas(d.ctx, "mymaster").Result()
			return len(others) == len(w.sentinels)-1 && len(replicas) == 1, errors.Join(err, failed)
		})
	}
}

func TestAFailoverBySentinelsCostsTheTimeUntilTheyAgree(t *testing.T) {
	long.Only(t)
	t.Parallel()
	w := newWatched(t)
	address := "redis-sentinel://" + strings.Join(w.sentinels, ",") + "/mymaster"
	d := newDrill(t, address, address)
	w.untilSafe(d)
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
