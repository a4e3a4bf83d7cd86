package store

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestStatsTellsWhatTheQueueHolds(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		now := float64(b.now.UnixMilli())
		b.seed(keys{
			":due": scores{"now": now, "past": now - 1, "soon": now + 1}, ":running": scores{"r": now},
			":stale_at": scores{"a": now, "b": now, "c": now}, ":late": scores{"b": now, "c": float64(model.Never.UnixMilli())}, ":urgent": scores{"u": now}, ":stale": scores{"d": now, "e": now},
			"-input": list{"1", "2"}, "-output": list{"1", "2", "3"}, "-control": list{"1"},
			":pollers": scores{"p1": now, "p2": now, "idle": now}, ":claimed:p1": list{"o1"}, ":claimed:p2": list{"o1", "c2"},
			":rejected": list{"x"}, ":stats": hash{"start": "7", "broken": "many"},
		})
		b.mustApply(b.put("m1", "{}"))
		stats, err := b.Report().Stats(t.Context())
		must(t, err)
		b.redis.Set(t.Context(), b.Keys.Journal, "no stream", 0)
		if _, err := b.Report().Stats(t.Context()); err == nil {
			t.Error("expected a journal of another type to be told, found nothing")
		}
		expectEqual(t, "stats", Stats{
			At: b.now, Due: 4, OldestDue: b.now.Add(-time.Millisecond), Urgent: 1, Waiting: 1, Running: 1,
			ParkedBy: map[string]int64{}, Living: map[model.Role]int64{model.RoleDispatcher: 0, model.RolePoller: 3, model.RoleWorker: 0}, Freshness: FreshnessCounts{"fresh": 1, "never": 1, "late": 1, "stale": 2}, Input: 2, Output: 3, Control: 1, Claimed: 3, Errors: map[string]int64{}, Rejected: 1, Journal: 1,
			Counters: map[string]int64{"start": 7, "create": 1},
		}, stats)
	})
}

func TestHistoryIsReadNewestFirst(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"))
		for _, uid := range []string{"a1", "a2"} {
			b.mustApply(b.start("m1", uid))
			b.now = b.now.Add(time.Second)
			record := b.load("m1")
			b.mustApply(record.Decide(record.Fail(policy.Failure{}, b.now), b.now))
		}
		b.redis.RPush(t.Context(), b.Keys.History("m1"), "no JSON")
		attempts, err := b.Report().History(t.Context(), "m1")
		must(t, err)
		var told []string
		for _, attempt := range attempts {
			told = append(told, attempt.AttemptUID+" "+string(attempt.Outcome)+" "+model.FormatTime(attempt.EndedAt))
		}
		expectEqual(t, "attempts", list{"a2 failure 2026-11-21T06:00:02.000Z", "a1 failure 2026-11-21T06:00:01.000Z"}, told)
	})
}
