package report_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestStatsTellsWhatTheQueueHolds(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		now, ahead := float64(b.Clock().UnixMilli()), float64(model.RunAhead.Milliseconds())
		b.Seed(keys{
			":due": scores{"now": now, "past": now - 1, "soon": now + 1}, ":running": scores{"r": now},
			":stale_at": scores{"a": now, "b": now, "c": now}, ":late": scores{"b": now, "c": float64(model.Never.UnixMilli())}, ":urgent": scores{"u": now, "its slot": now + 1, "run": now - ahead, "run's slot": now - ahead + 1}, ":stale": scores{"d": now, "e": now},
			"-input": list{"1", "2"}, "-output": list{"1", "2", "3"}, "-control": list{"1"},
			":pollers": scores{"p1": now, "p2": now, "idle": now}, ":claimed:p1": list{"o1"}, ":claimed:p2": list{"o1", "c2"},
			":rejected": list{"x"}, ":stats": hash{"start": "7", "broken": "many"},
		})
		b.MustApply(b.Put("m1", "{}"))
		stats, err := report.Of(b.Store).Stats(t.Context())
		must(t, err)
		b.Redis.Set(t.Context(), b.Keys.Journal, "no stream", 0)
		if _, err := report.Of(b.Store).Stats(t.Context()); err == nil {
			t.Error("expected a journal of another type to be told, found nothing")
		}
		expectEqual(t, "stats", report.Stats{
			At: b.Clock(), Due: 5, OldestDue: b.Clock().Add(-time.Millisecond), Urgent: 2, Waiting: 3, Running: 1,
			ParkedBy: map[string]int64{}, Living: map[model.Role]int64{model.RoleDispatcher: 0, model.RolePoller: 3, model.RoleWorker: 0}, Freshness: report.FreshnessCounts{"fresh": 1, "never": 1, "late": 1, "stale": 2}, Input: 2, Output: 3, Control: 1, Claimed: 3, Errors: map[string]int64{}, Rejected: 1, Journal: 1,
			Counters: map[string]int64{"start": 7, "create": 1},
		}, stats)
	})
}

// What somebody wants at once may wait for a slot of its limits: it is not due.
func TestWhatWaitsForASlotIsNotCountedAsDue(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		later := float64(b.Clock().Add(time.Minute).UnixMilli())
		b.Seed(keys{":urgent": scores{"a": later, "b": later - float64(model.RunAhead.Milliseconds())}})
		stats, err := report.Of(b.Store).Stats(t.Context())
		if err != nil || stats.Due != 0 || stats.Urgent != 0 || stats.Waiting != 2 || !stats.OldestDue.IsZero() {
			t.Errorf("got %d due since %s, %d urgent, %d waiting, %v, want 2 waiting alone", stats.Due, stats.OldestDue, stats.Urgent, stats.Waiting, err)
		}
	})
}

// The history keeps the newest attempts, newest first.
func TestWhenTheLastAttemptStartedStandsInTheModelAndThenInItsHistory(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.MustApply(b.Put("m1", "{}"))
		var started []string
		for i := range 5 {
			b.MustApply(b.Hand("m1", fmt.Sprint("a", i)))
			started = append(started, model.FormatTime(b.Clock()))
			expectEqual(t, "started_at", started[i], b.State()[":model:m1"].(hash)["started_at"])
			b.Step(time.Minute)
			record := b.One("m1")
			b.MustApply(record.Decide(record.Fail(policy.Failure{}, b.Clock()), b.Clock()))
		}
		expectEqual(t, "attempts kept", 3, len(b.State()[":history:m1"].(list)))
		b.Redis.RPush(t.Context(), b.Keys.History("m1"), "no JSON")
		attempts, err := report.Of(b.Store).History(t.Context(), "m1")
		must(t, err)
		var told list
		for _, a := range attempts {
			told = append(told, a.AttemptUID+" "+string(a.Outcome)+" "+model.FormatTime(a.StartedAt)+" "+a.EndedAt.Sub(a.StartedAt).String())
		}
		expectEqual(t, "attempts", list{"a4 failure " + started[4] + " 1m0s", "a3 failure " + started[3] + " 1m0s", "a2 failure " + started[2] + " 1m0s"}, told)
	}, func(c *store.Config) { c.HistoryCap = 3 })
}

// retryCounts are total, successful and cycles.
type retryCounts [3]int64

func TestRetriesAndTheCyclesThatTheySavedAreCountedForQueueAndModel(t *testing.T) {
	tests := map[string]struct {
		ends []string
		want retryCounts
	}{
		"the first run succeeds":               {[]string{"success", "success"}, retryCounts{0, 0, 0}},
		"the first retry succeeds":             {[]string{"failure", "success"}, retryCounts{1, 1, 1}},
		"the second retry succeeds":            {[]string{"failure", "timeout", "success"}, retryCounts{2, 1, 1}},
		"the retries do not help":              {[]string{"failure", "failure", "timeout"}, retryCounts{2, 0, 1}},
		"two cycles, one saved":                {[]string{"failure", "success", "success", "failure", "timeout", "failure"}, retryCounts{3, 1, 2}},
		"what does not count is not counted":   {[]string{"failure", "postponed", "interrupted", "withdrawn", "success"}, retryCounts{1, 1, 1}},
		"what does not count before the first": {[]string{"interrupted", "withdrawn", "success"}, retryCounts{0, 0, 0}},
		"a failure of the first run alone":     {[]string{"failure"}, retryCounts{0, 0, 0}},
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for name, test := range tests {
			b := b.Fresh(t)
			b.WithPolicy(`{"timeout":"1s","retries":["0s","0s"],"on_exhausted":"give_up"}`)
			b.Run(test.ends...)
			stats, err := report.Of(b.Store).Stats(t.Context())
			must(t, err)
			total, successful, cycles := stats.Retries()
			expectEqual(t, name+": of the queue", test.want, retryCounts{total, successful, cycles})
			m := b.One("m1")
			expectEqual(t, name+": of the model", test.want, retryCounts{int64(m.TotalRetries), int64(m.SuccessfulRetries), int64(m.RetriedCycles)})
		}
	})
}
