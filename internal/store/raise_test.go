package store_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// opened opens the queue as a program does.
func opened(t *testing.T, b *fixture.Bench) *store.Queue {
	t.Helper()
	q, err := store.Open(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue, Clock: func() time.Time { return b.Clock() }})
	check.Must(t, err)
	return q
}

func TestADaemonRaisesTheLayoutOnce(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		q, other := opened(t, b), opened(t, b)
		check.Must(t, q.Raise(t.Context()))
		found, err := b.Redis.HGetAll(t.Context(), b.Keys.Settings).Result()
		check.Must(t, err)
		check.Equal(t, fixture.Hash{store.SettingLayout: strconv.Itoa(store.Layout)}, found)
		check.Equal(t, store.Layout, q.Layout)
		check.Equal(t, store.Layout, opened(t, b).Layout)

		check.Must(t, other.Raise(t.Context())) // it has been raised meanwhile
		check.Equal(t, store.Layout, other.Layout)
	})
}

func TestALayoutIsNeverLowered(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		q, newer := opened(t, b), strconv.Itoa(store.Layout+1)
		b.Redis.HSet(t.Context(), b.Keys.Settings, store.SettingLayout, newer)
		err := q.Raise(t.Context())
		found := b.Redis.HGet(t.Context(), b.Keys.Settings, store.SettingLayout).Val()
		check.FailIf(t, err != nil || found != newer, "expected layout %s, found %s, %v", newer, found, err)
	})
}

// TestALayoutIsRaisedInTheEndWhereverACallFails lets the n-th call of a daemon that begins fail, and the next one begin.
func TestALayoutIsRaisedInTheEndWhereverACallFails(t *testing.T) {
	raise := func(n int) (struck bool) {
		b, fault := fixture.NewBench(t, testkit.Miniredis(t)), new(testkit.Fault)
		q := opened(t, b)
		b.Clients.Write.AddHook(fault)
		fault.Arm(n)
		err := q.Raise(t.Context())
		struck = fault.Struck()
		fault.Arm(0)
		check.FailIf(t, struck != (err != nil), "call %d: failed: %v, told: %v", n, struck, err)
		check.Must(t, q.Raise(t.Context()))
		check.Equal(t, store.Layout, opened(t, b).Layout)
		return struck
	}
	n := 1
	for raise(n) {
		n++
	}
	check.FailIf(t, n < 3, "expected more calls than %d", n)
}

type forbidden string

func (f forbidden) Error() string { return string(f) }
func (forbidden) RedisError()     {}

// TestADaemonGoesOnWhereTheServiceForbidsWATCH plays a service without transactions.
func TestADaemonGoesOnWhereTheServiceForbidsWATCH(t *testing.T) {
	b := fixture.NewBench(t, testkit.Miniredis(t))
	q := opened(t, b)
	refused := 0
	b.Clients.Write.AddHook(testkit.Hook(func(_ context.Context, commands []goredis.Cmder, next func() error) error {
		if commands[0].Name() != "watch" {
			return next()
		}
		refused++
		return forbidden("NOPERM this user has no permissions to run the 'watch' command")
	}))
	var watch store.ZoneWatch
	for what, err := range map[string]error{"raise the layout": q.Raise(t.Context()), "note the zones": watch.Note(t.Context(), q.Parts[0], "d1", b.Clock())} {
		if err != nil {
			t.Errorf("%s: got %v, want it left alone", what, err)
		}
	}
	if q.Layout != 1 || refused != 2 {
		t.Errorf("got layout %d and %d refusals, want 1 and 2", q.Layout, refused)
	}
	check.Must(t, watch.Note(t.Context(), q.Parts[0], "d1", b.Clock().Add(time.Second)))
	if refused != 2 {
		t.Errorf("asked again after a second, want it to wait")
	}
}
