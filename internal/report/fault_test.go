package report_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// failed saves a model that has failed and one that waits in each part; more of them in the second.
func failed(t testing.TB, queue *store.Queue) {
	t.Helper()
	for i, part := range queue.Parts {
		for n := range i + 1 {
			b := fixture.OnPart(t, part)
			uid := fmt.Sprint("part", i, "-", n)
			b.Fail(uid, b.Clock())
			b.MustApply(b.Put("again-"+uid, "{}"))
			b.MustApply(b.Hand("again-"+uid, "a"+uid))
			record := b.One("again-" + uid)
			b.MustApply(record.Decide(record.Fail(policy.Failure{Reason: "HTTP 500"}, b.Clock()), b.Clock()))
			must(t, part.Clients.Write.RPush(t.Context(), part.Keys.Input, "{}").Err())
		}
	}
}

// TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis lets no error of Redis pass for an answer.
func TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis(t *testing.T) {
	ctx, now := t.Context(), fixture.SixOClock
	r := func(q *store.Queue) report.Report { return report.Of(q.Parts[0]) }
	queued := &store.Record{Model: model.Model{UID: "m1", State: model.State{AttemptUID: "a1"}}}
	fixture.EachFault(t, failed, map[string]func(q *store.Queue) error{
		"failure groups": func(q *store.Queue) error { return only(r(q).FailureGroups(ctx)) },
		"past groups":    func(q *store.Queue) error { return only(r(q).PastFailureGroups(ctx)) },
		"failure group":  func(q *store.Queue) error { _, _, err := r(q).FailureGroup(ctx, "id"); return err },
		"failing alike":  func(q *store.Queue) error { return only(r(q).FailingAlike(ctx, "id")) },
		"history":        func(q *store.Queue) error { return only(r(q).History(ctx, "m1")) },
		"tail":           func(q *store.Queue) error { _, _, err := r(q).Tail(ctx, report.TailStart); return err },
		"tail outbox":    func(q *store.Queue) error { _, _, err := r(q).TailOutbox(ctx, report.TailStart); return err },
		"each entry": func(q *store.Queue) error {
			return r(q).EachEntry(ctx, time.Time{}, func(model.JournalEntry) error { return nil })
		},
		"recent": func(q *store.Queue) error {
			return report.OfQueue(q).Recent(ctx, "", func(string, model.JournalEntry) error { return nil })
		},
		"log":            func(q *store.Queue) error { return only(r(q).Log(ctx, "a1")) },
		"last reasons":   func(q *store.Queue) error { return only(r(q).LastReasons(ctx, []string{"m1"})) },
		"queue position": func(q *store.Queue) error { return only(r(q).QueuePosition(ctx, queued)) },
		"note a sample":  func(q *store.Queue) error { return r(q).NoteSample(ctx, now) },
		"samples":        func(q *store.Queue) error { return only(report.OfQueue(q).Samples(ctx)) },
		"stats":          func(q *store.Queue) error { return only(report.OfQueue(q).Stats(ctx)) },
		"version":        func(q *store.Queue) error { return only(report.OfQueue(q).Version(ctx)) },
		"longest stale":  func(q *store.Queue) error { return only(r(q).LongestStale(ctx, 0, 9)) },
	})
}

func TestStatsAndSamplesAreAddedUpOverAllParts(t *testing.T) {
	fixture.Parts(t, func(t *testing.T, queue *store.Queue) {
		ctx := t.Context()
		failed(t, queue)
		second := queue.Parts[1]
		must(t, second.Clients.Write.HSet(ctx, second.Keys.QueueCircuit, "opened_at", "2026-11-21T06:00:00.000Z").Err())
		must(t, second.Clients.Write.ZAdd(ctx, second.Keys.Due, fixture.At(six-60_000, "due")).Err())
		must(t, second.Clients.Write.ZAdd(ctx, second.Keys.Parked, fixture.At(six, "parked")).Err())
		must(t, second.Clients.Write.ZAdd(ctx, second.Keys.Gates, fixture.At(six, "circuit:host=h")).Err())
		must(t, second.Clients.Write.ZAdd(ctx, second.Keys.ParkedBy("circuit:host=h"), fixture.At(six, "parked")).Err())
		for _, role := range model.Roles {
			for i, part := range queue.Parts {
				for n := range 2 - i {
					beat := fixture.At(float64(part.Config.Clock().UnixMilli()), fmt.Sprint("p", n))
					must(t, part.Clients.Write.ZAdd(ctx, part.Keys.Heartbeats()[role], beat).Err())
				}
			}
		}
		one, two := check.Got(report.Of(queue.Parts[0]).Stats(ctx))(t), check.Got(report.Of(second).Stats(ctx))(t)
		sum := check.Got(report.OfQueue(queue).Stats(ctx))(t)
		of := func(s report.Stats) []int64 {
			return []int64{
				s.Due, s.Urgent, s.Waiting, s.Running, s.Failing, s.Disabled, s.Parked, s.Input, s.Output, s.Control, s.Claimed, s.Rejected, s.Journal,
				s.Outbox, s.OpenCircuits, s.ParkedBy["circuit"], s.Counters["failure"], s.Counters["start"], s.Freshness[model.FreshnessNever],
			}
		}
		var added []int64
		for i, n := range of(one) {
			added = append(added, n+of(two)[i])
		}
		expectEqual(t, "sums", added, of(sum))
		expectEqual(t, "failures of all parts", int64(2+4), sum.Counters["failure"])
		failIf(t, len(sum.Errors) == 0 || !sum.QueueCircuitOpen || !sum.OldestDue.Equal(two.OldestDue) || two.OldestDue.IsZero() || sum.At.Before(two.At),
			"want what the second part has, got %+v of %+v", sum, two)
		for _, role := range model.Roles {
			expectEqual(t, string(role)+": as where there are fewest", int64(1), sum.Living[role])
		}
		for _, part := range queue.Parts {
			must(t, report.Of(part).NoteSample(ctx, fixture.SixOClock))
		}
		samples := check.Got(report.OfQueue(queue).Samples(ctx))(t)
		stopIf(t, len(samples) != 1, "want one sample, got %v", samples)
		expectEqual(t, "starts and the longest wait", [3]int64{6, 9, 60}, [3]int64{samples[0].Values[report.MetricStarts], samples[0].Values[report.MetricInput], samples[0].Values[report.MetricWait]})
	})
}
