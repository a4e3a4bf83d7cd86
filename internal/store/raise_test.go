package store

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// open opens the queue as a program does.
func (b *bench) open(t *testing.T) *Queue {
	t.Helper()
	q, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue, Clock: func() time.Time { return b.now }})
	must(t, err)
	return q
}

// lives gives daemons a heartbeat.
func (b *bench) lives(t *testing.T, set string, at time.Time, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, b.redis.ZAdd(t.Context(), set, redis.Z{Score: float64(at.UnixMilli()), Member: name}).Err())
	}
}

func TestADaemonRaisesTheLayoutOnceAndHasAllModelsMendedBehindTheEndOfOlderOnes(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"))
		b.lives(t, b.Keys.Dispatchers, b.now, "d1")
		b.lives(t, b.Keys.Pollers, b.now, "p1")
		b.lives(t, b.Keys.Pollers, b.now.Add(-settledAfter-time.Second), "dead")
		q, other := b.open(t), b.open(t)
		must(t, q.Raise(t.Context()))
		found, err := b.redis.HGetAll(t.Context(), b.Keys.Settings).Result()
		must(t, err)
		expectEqual(t, "settings", hash{settingLayout: strconv.Itoa(Layout)}, found)
		expectEqual(t, "layout", Layout, q.Layout)
		expectEqual(t, "id", MendID, "layout-"+strconv.Itoa(Layout))
		began, bulk := model.FormatTime(b.now), b.Keys.Bulk(MendID)
		expectEqual(t, "bulk", hash{"action": "mend", "rate": "2000/s", "since": began, "after": "d1 p1"}, b.redis.HGetAll(t.Context(), bulk).Val())

		b.lives(t, b.Keys.Dispatchers, b.now, "of this release")
		must(t, b.redis.ZRem(t.Context(), b.Keys.Dispatchers, "d1").Err())
		b.now = b.now.Add(settledAfter / 2)
		expectEqual(t, "still to end", list{"p1"}, b.bulks(t)[0].After)
		b.now = b.now.Add(settledAfter)
		expectEqual(t, "still to end", 0, len(b.bulks(t)[0].After))

		must(t, other.Raise(t.Context())) // it has been raised meanwhile
		expectEqual(t, "layout", Layout, other.Layout)
		expectEqual(t, "begun", began, b.redis.HGet(t.Context(), bulk, "since").Val())
	})
}

func TestALayoutIsRaisedInAQueueThatWasNeverUsedWithoutAWalk(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		must(t, b.open(t).Raise(t.Context()))
		expectEqual(t, "layout", Layout, b.open(t).Layout)
		expectEqual(t, "bulks", 0, len(b.bulks(t)))
	})
}

// TestEachPartIsMendedBeforeTheSharedLayoutIsRaised lets the raise fail in the second part first: then the first part is asked again.
func TestEachPartIsMendedBeforeTheSharedLayoutIsRaised(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		must(t, Create(t.Context(), b.Clients, Config{Queue: b.Keys.Queue}, 2))
		q := b.open(t)
		for _, part := range q.Parts {
			must(t, b.redis.HSet(t.Context(), part.Keys.Stats, "create", 1).Err())
		}
		second := &q.Parts[1].Keys
		must(t, b.redis.Set(t.Context(), second.Bulks, "of another type", 0).Err())
		err := q.Raise(t.Context())
		failIf(t, err == nil || q.Layout != 1 || b.open(t).Layout != 1, "expected a layout that is not raised, found %d, %v", q.Layout, err)
		must(t, b.redis.Del(t.Context(), second.Bulks).Err())
		must(t, q.Raise(t.Context()))
		expectEqual(t, "layout", Layout, b.open(t).Layout)
		for _, part := range q.Parts {
			bulks, err := part.Bulks(t.Context())
			must(t, err)
			failIf(t, len(bulks) != 1 || bulks[0].Rate != mendRate.Share(2), "%s: expected it mended, found %+v", part.Keys.Queue, bulks)
		}
	})
}

func TestALayoutIsNeverLowered(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		q, newer := b.open(t), strconv.Itoa(Layout+1)
		b.redis.HSet(t.Context(), b.Keys.Settings, settingLayout, newer)
		err := q.Raise(t.Context())
		found := b.redis.HGet(t.Context(), b.Keys.Settings, settingLayout).Val()
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
		got := NewRecord("m", test.hash).Freshness
		failIf(t, got != test.want, "%v: expected %q, found %q", test.hash, test.want, got)
	}
}

// TestALayoutIsRaisedOnlyBehindTheWalkWhereverACallFails lets the n-th call of a daemon that begins fail, in a queue of two parts, and the next one begin.
func TestALayoutIsRaisedOnlyBehindTheWalkWhereverACallFails(t *testing.T) {
	raise := func(n int) (struck bool) {
		b, fault := newBench(t, testkit.Miniredis(t)), new(testkit.Fault)
		must(t, Create(t.Context(), b.Clients, Config{Queue: b.Keys.Queue}, 2))
		q := b.open(t)
		for _, part := range q.Parts {
			must(t, b.redis.HSet(t.Context(), part.Keys.Stats, "create", 1).Err())
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
			raised := b.open(t).Layout == Layout
			failIf(t, again && !raised, "call %d: expected a layout that is raised in the end", n)
			for _, part := range q.Parts {
				walks := b.redis.ZCard(t.Context(), part.Keys.Bulks).Val()
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
