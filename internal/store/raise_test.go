package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
)

// opened opens the queue as a program does.
func opened(t *testing.T, b *bench) *store.Queue {
	t.Helper()
	q, err := store.Open(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue, Clock: func() time.Time { return b.Clock() }})
	must(t, err)
	return q
}

func TestADaemonRaisesTheLayoutOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		q, other := opened(t, b), opened(t, b)
		must(t, q.Raise(t.Context()))
		found, err := b.Redis().HGetAll(t.Context(), b.Keys.Settings).Result()
		must(t, err)
		expectEqual(t, "settings", hash{store.SettingLayout: strconv.Itoa(store.Layout)}, found)
		expectEqual(t, "layout", store.Layout, q.Layout)
		expectEqual(t, "layout of who opens it", store.Layout, opened(t, b).Layout)

		must(t, other.Raise(t.Context())) // it has been raised meanwhile
		expectEqual(t, "layout", store.Layout, other.Layout)
	})
}

func TestALayoutIsNeverLowered(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		q, newer := opened(t, b), strconv.Itoa(store.Layout+1)
		b.Redis().HSet(t.Context(), b.Keys.Settings, store.SettingLayout, newer)
		err := q.Raise(t.Context())
		found := b.Redis().HGet(t.Context(), b.Keys.Settings, store.SettingLayout).Val()
		failIf(t, err != nil || found != newer, "expected layout %s, found %s, %v", newer, found, err)
	})
}

// TestALayoutIsRaisedInTheEndWhereverACallFails lets the n-th call of a daemon that begins fail, and the next one begin.
func TestALayoutIsRaisedInTheEndWhereverACallFails(t *testing.T) {
	raise := func(n int) (struck bool) {
		b, fault := newBench(t, testkit.Miniredis(t)), new(testkit.Fault)
		q := opened(t, b)
		b.Clients.Write.AddHook(fault)
		fault.Arm(n)
		err := q.Raise(t.Context())
		struck = fault.Struck()
		fault.Arm(0)
		failIf(t, struck != (err != nil), "call %d: failed: %v, told: %v", n, struck, err)
		must(t, q.Raise(t.Context()))
		expectEqual(t, "layout", store.Layout, opened(t, b).Layout)
		return struck
	}
	n := 1
	for raise(n) {
		n++
	}
	failIf(t, n < 3, "expected more calls than %d", n)
}
