package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// opened opens the queue as a program does.
func opened(t *testing.T, b *bench) *store.Queue {
	t.Helper()
	q, err := store.Open(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue, Clock: func() time.Time { return b.Clock() }})
	must(t, err)
	return q
}

// lives gives daemons a heartbeat.
func lives(t *testing.T, b *bench, set string, at time.Time, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, b.Redis().ZAdd(t.Context(), set, redis.Z{Score: float64(at.UnixMilli()), Member: name}).Err())
	}
}

func TestADaemonRaisesTheLayoutOnceAndHasAllModelsMendedBehindTheEndOfOlderOnes(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.MustApply(b.Put("m1", "{}"))
		lives(t, b, b.Keys.Dispatchers, b.Clock(), "d1")
		lives(t, b, b.Keys.Pollers, b.Clock(), "p1")
		lives(t, b, b.Keys.Pollers, b.Clock().Add(-store.SettledAfter-time.Second), "dead")
		q, other := opened(t, b), opened(t, b)
		must(t, q.Raise(t.Context()))
		found, err := b.Redis().HGetAll(t.Context(), b.Keys.Settings).Result()
		must(t, err)
		expectEqual(t, "settings", hash{store.SettingLayout: strconv.Itoa(store.Layout)}, found)
		expectEqual(t, "layout", store.Layout, q.Layout)
		expectEqual(t, "id", store.MendID, "layout-"+strconv.Itoa(store.Layout))
		began, bulk := model.FormatTime(b.Clock()), b.Keys.Bulk(store.MendID)
		expectEqual(t, "bulk", hash{"action": "mend", "rate": "2000/s", "since": began, "after": "d1 p1"}, b.Redis().HGetAll(t.Context(), bulk).Val())

		lives(t, b, b.Keys.Dispatchers, b.Clock(), "of this release")
		must(t, b.Redis().ZRem(t.Context(), b.Keys.Dispatchers, "d1").Err())
		b.Step(store.SettledAfter / 2)
		expectEqual(t, "still to end", list{"p1"}, bulksOf(t, b)[0].After)
		b.Step(store.SettledAfter)
		expectEqual(t, "still to end", 0, len(bulksOf(t, b)[0].After))

		must(t, other.Raise(t.Context())) // it has been raised meanwhile
		expectEqual(t, "layout", store.Layout, other.Layout)
		expectEqual(t, "begun", began, b.Redis().HGet(t.Context(), bulk, "since").Val())
	})
}

func TestALayoutIsRaisedInAQueueThatWasNeverUsedWithoutAWalk(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		must(t, opened(t, b).Raise(t.Context()))
		expectEqual(t, "layout", store.Layout, opened(t, b).Layout)
		expectEqual(t, "bulks", 0, len(bulksOf(t, b)))
	})
}

// TestEachPartIsMendedBeforeTheSharedLayoutIsRaised lets the raise fail in the second part first: then the first part is asked again.
func TestEachPartIsMendedBeforeTheSharedLayoutIsRaised(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		must(t, store.Create(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue}, 2))
		q := opened(t, b)
		for _, part := range q.Parts {
			must(t, b.Redis().HSet(t.Context(), part.Keys.Stats, "create", 1).Err())
		}
		second := &q.Parts[1].Keys
		must(t, b.Redis().Set(t.Context(), second.Bulks, "of another type", 0).Err())
		err := q.Raise(t.Context())
		failIf(t, err == nil || q.Layout != 1 || opened(t, b).Layout != 1, "expected a layout that is not raised, found %d, %v", q.Layout, err)
		must(t, b.Redis().Del(t.Context(), second.Bulks).Err())
		must(t, q.Raise(t.Context()))
		expectEqual(t, "layout", store.Layout, opened(t, b).Layout)
		for _, part := range q.Parts {
			bulks, err := flow.Of(part).Bulks(t.Context())
			must(t, err)
			failIf(t, len(bulks) != 1 || bulks[0].Rate != store.MendRate.Share(2), "%s: expected it mended, found %+v", part.Keys.Queue, bulks)
		}
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

// TestAModelOfAnOlderReleaseThatNeverSucceededIsNotFresh reads what releases wrote that knew no freshness `never`.
func TestAModelOfAnOlderReleaseThatNeverSucceededIsNotFresh(t *testing.T) {
	for _, test := range []struct {
		hash hash
		want model.Freshness
	}{
		{hash{"freshness": "fresh"}, model.FreshnessNever},
		{hash{"freshness": "fresh", "last_success_at": "2026-11-21T07:00:00.000Z"}, model.Fresh},
		{hash{"freshness": "late"}, model.FreshnessLate},
		{hash{"refresh_why": "planned"}, ""},
	} {
		got := store.NewRecord("m", test.hash).Freshness
		failIf(t, got != test.want, "%v: expected %q, found %q", test.hash, test.want, got)
	}
}

// TestALayoutIsRaisedOnlyBehindTheWalkWhereverACallFails lets the n-th call of a daemon that begins fail, in a queue of two parts, and the next one begin.
func TestALayoutIsRaisedOnlyBehindTheWalkWhereverACallFails(t *testing.T) {
	raise := func(n int) (struck bool) {
		b, fault := newBench(t, testkit.Miniredis(t)), new(testkit.Fault)
		must(t, store.Create(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue}, 2))
		q := opened(t, b)
		for _, part := range q.Parts {
			must(t, b.Redis().HSet(t.Context(), part.Keys.Stats, "create", 1).Err())
		}
		b.Clients.Write.AddHook(fault)
		fault.Arm(n)
		err := q.Raise(t.Context())
		struck = fault.Struck()
		fault.Arm(0)
		failIf(t, struck != (err != nil), "call %d: failed: %v, told: %v", n, struck, err)
		for _, again := range []bool{false, true} {
			if again {
				must(t, q.Raise(t.Context()))
			}
			raised := opened(t, b).Layout == store.Layout
			failIf(t, again && !raised, "call %d: expected a layout that is raised in the end", n)
			for _, part := range q.Parts {
				walks := b.Redis().ZCard(t.Context(), part.Keys.Bulks).Val()
				failIf(t, raised && walks != 1, "call %d: expected one walk in %s, found %d", n, part.Keys.Queue, walks)
			}
		}
		return struck
	}
	n := 1
	for raise(n) {
		n++
	}
	failIf(t, n < 8, "expected more calls than %d", n)
}
