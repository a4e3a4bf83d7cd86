package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
)

// onEachServer runs a test on all three: a fake, a real one and a cluster.
func onEachServer(t *testing.T, test func(t *testing.T, store *Store, server *testkit.Server)) {
	t.Helper()
	open := func(t *testing.T, server *testkit.Server, config Config) {
		client := server.Client(t)
		store, err := New(&Clients{Read: client, Write: client, Block: client, Clustered: server.IsCluster()}, config)
		must(t, err)
		test(t, store, server)
	}
	testkit.Both(t, func(t *testing.T, server *testkit.Server) { open(t, server, Config{}) })
	t.Run("cluster", func(t *testing.T) { open(t, testkit.Cluster(t), Config{Queue: "{bigtables}"}) })
}

func TestFencesTellsWhatEachModelIsRunning(t *testing.T) {
	onEachServer(t, func(t *testing.T, store *Store, server *testkit.Server) {
		client, deadline := server.Client(t), time.Date(2026, 11, 21, 7, 0, 0, 250e6, time.UTC)
		set := func(uid string, fields ...any) {
			must(t, client.HSet(t.Context(), store.Keys.Model(uid), fields...).Err())
		}
		set("running", "attempt_uid", "a1", "deadline_at", "2026-11-21T07:00:00.250Z", "processing_at", "2026-11-21T06:50:00.250Z")
		set("idle", "attempt_no", "0")
		set("odd", "attempt_uid", "a2", "deadline_at", "tomorrow")
		fences, now, err := store.Pool().Fences(t.Context(), []string{"running", "gone", "idle", "odd"})
		if err != nil || now.IsZero() {
			t.Fatalf("fences: now %v, err %v", now, err)
		}
		want := []Fence{{AttemptUID: "a1", DeadlineAt: deadline, Begun: true}, {}, {}, {AttemptUID: "a2"}}
		if diff := cmp.Diff(want, fences); diff != "" {
			t.Errorf("fences (-want +got):\n%s", diff)
		}
	})
}

func TestAFenceThatCannotBeReadSpoilsNoOther(t *testing.T) {
	onEachServer(t, func(t *testing.T, store *Store, server *testkit.Server) {
		client := server.Client(t)
		if err := errors.Join(
			client.Set(t.Context(), store.Keys.Model("text"), "not a hash", 0).Err(),
			client.HSet(t.Context(), store.Keys.Model("good"), "attempt_uid", "a1").Err(),
		); err != nil {
			t.Fatal(err)
		}
		fences, _, err := store.Pool().Fences(t.Context(), []string{"text", "good"})
		must(t, err)
		if fences[0].Err == nil || fences[1].Err != nil || fences[1].AttemptUID != "a1" {
			t.Errorf("fences: %+v, want an error and a1", fences)
		}
	})
}

func TestFencesOfAnUnreachableRedisIsAnErrorAndNoLostFence(t *testing.T) {
	server := testkit.Miniredis(t)
	client := server.Client(t)
	store, err := New(&Clients{Read: client, Write: client, Block: client}, Config{})
	must(t, err)
	server.Mini.Close()
	if fences, _, err := store.Pool().Fences(t.Context(), []string{"m"}); err == nil || fences != nil {
		t.Errorf("fences %v, err %v; want none and an error", fences, err)
	}
}

func TestATurnedClockIsTheClockOfWorkersToo(t *testing.T) {
	at := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	client := testkit.Miniredis(t).Client(t)
	store, err := New(&Clients{Read: client, Write: client, Block: client}, Config{Clock: func() time.Time { return at }})
	must(t, err)
	taken, errTake := store.Pool().Take(t.Context(), TakeRequest{Owner: "w1", New: true, Most: 1})
	_, looked, errFences := store.Pool().Fences(t.Context(), nil)
	if err := errors.Join(errTake, errFences); err != nil || !taken.Now.Equal(at) || !looked.Equal(at) {
		t.Errorf("take says %v, fences %v, err %v; want %v", taken.Now, looked, err, at)
	}
}
