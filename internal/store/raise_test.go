package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// opened opens the queue as a program does.
func opened(t *testing.T, b *fixture.Bench) *store.Queue {
	t.Helper()
	q, err := store.Open(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue, Clock: func() time.Time { return b.Clock() }})
	check.Must(t, err)
	return q
}

// lives gives daemons a heartbeat.
func lives(t *testing.T, b *fixture.Bench, set string, at time.Time, names ...string) {
	t.Helper()
	for _, name := range names {
		check.Must(t, b.Redis.ZAdd(t.Context(), set, redis.Z{Score: float64(at.UnixMilli()), Member: name}).Err())
	}
}

func TestADaemonRaisesTheLayoutOnceAndHasAllModelsMendedBehindTheEndOfOlderOnes(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		b.MustApply(b.Put("m1", "{}"))
		lives(t, b, b.Keys.Dispatchers, b.Clock(), "d1")
		lives(t, b, b.Keys.Pollers, b.Clock(), "p1")
		lives(t, b, b.Keys.Pollers, b.Clock().Add(-store.SettledAfter-time.Second), "dead")
		q, other := opened(t, b), opened(t, b)
		check.Must(t, q.Raise(t.Context()))
		found, err := b.Redis.HGetAll(t.Context(), b.Keys.Settings).Result()
		check.Must(t, err)
		check.Equal(t, fixture.Hash{store.SettingLayout: strconv.Itoa(store.Layout)}, found)
		check.Equal(t, store.Layout, q.Layout)
		check.Equal(t, store.MendID, "layout-"+strconv.Itoa(store.Layout))
		began, bulk := model.FormatTime(b.Clock()), b.Keys.Bulk(store.MendID)
		check.Equal(t, fixture.Hash{"action": "mend", "rate": "2000/s", "since": began, "after": "d1 p1"}, b.Redis.HGetAll(t.Context(), bulk).Val())

		lives(t, b, b.Keys.Dispatchers, b.Clock(), "of this release")
		check.Must(t, b.Redis.ZRem(t.Context(), b.Keys.Dispatchers, "d1").Err())
		b.Step(store.SettledAfter / 2)
		check.Equal(t, fixture.List{"p1"}, check.Got(flow.Of(b.Store).Bulks(t.Context()))(t)[0].After)
		b.Step(store.SettledAfter)
		check.Equal(t, 0, len(check.Got(flow.Of(b.Store).Bulks(t.Context()))(t)[0].After))

		check.Must(t, other.Raise(t.Context())) // it has been raised meanwhile
		check.Equal(t, store.Layout, other.Layout)
		check.Equal(t, began, b.Redis.HGet(t.Context(), bulk, "since").Val())
	})
}

func TestALayoutIsRaisedInAQueueThatWasNeverUsedWithoutAWalk(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		check.Must(t, opened(t, b).Raise(t.Context()))
		check.Equal(t, store.Layout, opened(t, b).Layout)
		check.Equal(t, 0, len(check.Got(flow.Of(b.Store).Bulks(t.Context()))(t)))
	})
}

// TestEachPartIsMendedBeforeTheSharedLayoutIsRaised lets the raise fail in the second part first: then the first part is asked again.
func TestEachPartIsMendedBeforeTheSharedLayoutIsRaised(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		check.Must(t, store.Create(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue}, 2))
		q := opened(t, b)
		for _, part := range q.Parts {
			check.Must(t, b.Redis.HSet(t.Context(), part.Keys.Stats, "create", 1).Err())
		}
		second := &q.Parts[1].Keys
		check.Must(t, b.Redis.Set(t.Context(), second.Bulks, "of another type", 0).Err())
		err := q.Raise(t.Context())
		check.FailIf(t, err == nil || q.Layout != 1 || opened(t, b).Layout != 1, "expected a layout that is not raised, found %d, %v", q.Layout, err)
		check.Must(t, b.Redis.Del(t.Context(), second.Bulks).Err())
		check.Must(t, q.Raise(t.Context()))
		check.Equal(t, store.Layout, opened(t, b).Layout)
		for _, part := range q.Parts {
			bulks, err := flow.Of(part).Bulks(t.Context())
			check.Must(t, err)
			check.FailIf(t, len(bulks) != 1 || bulks[0].Rate != store.MendRate.Share(2), "%s: expected it mended, found %+v", part.Keys.Queue, bulks)
		}
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

// TestAModelOfAnOlderReleaseThatNeverSucceededIsNotFresh reads what releases wrote that knew no freshness `never`.
func TestAModelOfAnOlderReleaseThatNeverSucceededIsNotFresh(t *testing.T) {
	for _, test := range []struct {
		hash fixture.Hash
		want model.Freshness
	}{
		{fixture.Hash{"freshness": "fresh"}, model.FreshnessNever},
		{fixture.Hash{"freshness": "fresh", "last_success_at": "2026-11-21T07:00:00.000Z"}, model.Fresh},
		{fixture.Hash{"freshness": "late"}, model.FreshnessLate},
		{fixture.Hash{"refresh_why": "planned"}, ""},
	} {
		got := store.NewRecord("m", test.hash).Freshness
		check.FailIf(t, got != test.want, "%v: expected %q, found %q", test.hash, test.want, got)
	}
}

// TestALayoutIsRaisedOnlyBehindTheWalkWhereverACallFails lets the n-th call of a daemon that begins fail, in a queue of two parts, and the next one begin.
func TestALayoutIsRaisedOnlyBehindTheWalkWhereverACallFails(t *testing.T) {
	raise := func(n int) (struck bool) {
		b, fault := fixture.NewBench(t, testkit.Miniredis(t)), new(testkit.Fault)
		check.Must(t, store.Create(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue}, 2))
		q := opened(t, b)
		for _, part := range q.Parts {
			check.Must(t, b.Redis.HSet(t.Context(), part.Keys.Stats, "create", 1).Err())
		}
		b.Clients.Write.AddHook(fault)
		fault.Arm(n)
		err := q.Raise(t.Context())
		struck = fault.Struck()
		fault.Arm(0)
		check.FailIf(t, struck != (err != nil), "call %d: failed: %v, told: %v", n, struck, err)
		for _, again := range []bool{false, true} {
			if again {
				check.Must(t, q.Raise(t.Context()))
			}
			raised := opened(t, b).Layout == store.Layout
			check.FailIf(t, again && !raised, "call %d: expected a layout that is raised in the end", n)
			for _, part := range q.Parts {
				walks := b.Redis.ZCard(t.Context(), part.Keys.Bulks).Val()
				check.FailIf(t, raised && walks != 1, "call %d: expected one walk in %s, found %d", n, part.Keys.Queue, walks)
			}
		}
		return struck
	}
	n := 1
	for raise(n) {
		n++
	}
	check.FailIf(t, n < 8, "expected more calls than %d", n)
}
