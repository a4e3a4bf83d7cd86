package operate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// used fills each part of a queue: a model that has failed, one that runs and one that waits, and what operators set.
func used(t testing.TB, queue *store.Queue) {
	t.Helper()
	ctx, o := t.Context(), Operator{Queue: queue, By: "ann"}
	must(t, queue.Fleet().PutPolicy(ctx, fixture.Policy(t, `{"name":"p1","fresh_within":"1h","rrule":"FREQ=DAILY"}`)))
	for i, part := range queue.Parts {
		b := fixture.OnPart(t, part)
		uid := fixture.Homed(i)
		b.MustApply(b.Put(uid, `{"input_url":"http://feed/x"}`))
		b.MustApply(b.Hand(uid, "a1"))
		record := b.One(uid)
		b.MustApply(record.Decide(record.Fail(policy.Failure{Reason: "HTTP 500", ErrorType: "http_500"}, b.Clock()), b.Clock()))
		runs := fixture.Homed(i + 2)
		b.MustApply(b.Put(runs, "{}"))
		b.MustApply(b.Hand(runs, "a2"))
		must(t, part.Clients.Write.ZAdd(ctx, part.Keys.ParkedBy(string(model.BySuspect)), fixture.At(1, uid)).Err())
		must(t, part.Clients.Write.ZAdd(ctx, part.Keys.Pollers, fixture.At(float64(b.Clock().UnixMilli()), "p1")).Err())
		must(t, part.Clients.Write.RPush(ctx, part.Keys.Rejected, `{"at":"2026-11-21T06:00:00Z","source":"output","raw":"m","uid":"`+uid+`"}`).Err())
		must(t, part.Clients.Write.RPush(ctx, part.Keys.Undelivered, `{"channel":"ops","recipient":"ops","notices":["{}"]}`).Err())
	}
	_, _, err := o.Hold(ctx, HoldRequest{ID: "h1", Reason: "they move"})
	must(t, err)
	must(t, o.SetLimit(ctx, LimitRequest{Key: "host=h", Running: "2"}))
	must(t, only(o.OpenCircuit(ctx, "host=h", "", "")))
	must(t, flow.OfQueue(queue).BeginBulk(ctx, "b1", model.Bulk{Action: model.BulkRun}))
}

func only[T any](v T, err error) error { return check.Only(v, err) }

// TestEachVerbReturnsTheFaultOfEachOfItsCallsToRedis lets no error of Redis pass for an answer.
func TestEachVerbReturnsTheFaultOfEachOfItsCallsToRedis(t *testing.T) {
	ctx, uid := t.Context(), fixture.Homed(0)
	o := func(q *store.Queue) Operator { return Operator{Queue: q, By: "ann"} }
	daily := `{"uid":"new","rrule":"FREQ=DAILY","dtstart":"2026-01-01"}`
	fixture.EachFault(t, used, map[string]func(q *store.Queue) error{
		"begin a bulk": func(q *store.Queue) error {
			return only(o(q).BeginBulk(ctx, BulkRequest{Action: model.CommandRun, Sure: true}))
		},
		"bulk":             func(q *store.Queue) error { return only(o(q).Bulk(ctx, "b1")) },
		"bulks":            func(q *store.Queue) error { return only(o(q).Bulks(ctx)) },
		"cancel a bulk":    func(q *store.Queue) error { return only(o(q).CancelBulk(ctx, "b1")) },
		"select":           func(q *store.Queue) error { return only(o(q).Select(ctx, "status=running", false)) },
		"select a few":     func(q *store.Queue) error { return only(o(q).Select(ctx, "status=running", true)) },
		"circuits":         func(q *store.Queue) error { return only(o(q).Circuits(ctx)) },
		"a circuit":        func(q *store.Queue) error { return only(o(q).Circuits(ctx, model.QueueCircuitKey)) },
		"open the circuit": func(q *store.Queue) error { return only(o(q).OpenCircuit(ctx, model.QueueCircuitKey, "", "")) },
		"close a circuit":  func(q *store.Queue) error { return o(q).CloseCircuit(ctx, "host=h") },
		"set the circuit": func(q *store.Queue) error {
			return o(q).SetCircuit(ctx, model.QueueCircuitKey, CircuitSettings{On: true})
		},
		"set a limit":      func(q *store.Queue) error { return o(q).SetLimit(ctx, LimitRequest{Key: "host=i", Running: "2"}) },
		"remove a limit":   func(q *store.Queue) error { return o(q).RemoveLimit(ctx, "host=h") },
		"limits":           func(q *store.Queue) error { return only(o(q).Limits(ctx)) },
		"failures":         func(q *store.Queue) error { return only(o(q).Failures(ctx, FailuresRequest{By: "error"})) },
		"failures by host": func(q *store.Queue) error { return only(o(q).Failures(ctx, FailuresRequest{By: "host"})) },
		"forecast": func(q *store.Queue) error {
			return only(o(q).Forecast(ctx, ForecastRequest{InputRequest: InputRequest{For: "1h"}, By: "host"}))
		},
		"level": func(q *store.Queue) error {
			return only(o(q).Level(ctx, LevelRequest{InputRequest: InputRequest{For: "1h"}, Within: "10m"}))
		},
		"freshness":         func(q *store.Queue) error { return only(o(q).Freshness(ctx, FreshnessRequest{})) },
		"freshness of some": func(q *store.Queue) error { return only(o(q).Freshness(ctx, FreshnessRequest{Histogram: true})) },
		"hold": func(q *store.Queue) error {
			_, _, err := o(q).Hold(ctx, HoldRequest{Reason: "x", Cancel: true})
			return err
		},
		"holds":               func(q *store.Queue) error { return only(o(q).Holds(ctx)) },
		"release":             func(q *store.Queue) error { return only(o(q).Release(ctx, ReleaseRequest{ID: "h1"})) },
		"calendars":           func(q *store.Queue) error { return only(o(q).Calendars(ctx)) },
		"rejected":            func(q *store.Queue) error { return only(o(q).Rejected(ctx, "")) },
		"requeue rejected":    func(q *store.Queue) error { return only(o(q).RequeueRejected(ctx, Messages{All: true})) },
		"drop rejected":       func(q *store.Queue) error { return only(o(q).DropRejected(ctx, Messages{All: true})) },
		"undelivered":         func(q *store.Queue) error { return only(o(q).Undelivered(ctx)) },
		"requeue undelivered": func(q *store.Queue) error { return only(o(q).RequeueUndelivered(ctx, Messages{All: true})) },
		"drop undelivered":    func(q *store.Queue) error { return only(o(q).DropUndelivered(ctx, Messages{All: true})) },
		"list": func(q *store.Queue) error {
			return only(o(q).List(ctx, ListRequest{}, func([]ListedModel) error { return nil }))
		},
		"list by due":     func(q *store.Queue) error { return only(o(q).List(ctx, ListRequest{Sort: "due", Limit: 5}, ignore)) },
		"policies":        func(q *store.Queue) error { return only(o(q).Policies(ctx)) },
		"remove a policy": func(q *store.Queue) error { return only(o(q).RemovePolicy(ctx, "p1", true)) },
		"set the queue": func(q *store.Queue) error {
			return o(q).SetQueue(ctx, SettingsRequest{ModelName: "banner", NewErrorAbove: new(5), Force: true})
		},
		"steer": func(q *store.Queue) error {
			return only(o(q).ExecuteEach(ctx, model.Command{Type: model.CommandDisable}, []string{uid}, func([]Outcome) error { return nil }))
		},
		"waiting":   func(q *store.Queue) error { return only(o(q).Waiting(ctx, []string{fixture.Homed(2)})) },
		"stats":     func(q *store.Queue) error { return only(o(q).Stats(ctx)) },
		"a model":   func(q *store.Queue) error { return only(ReadModel(ctx, q, uid)) },
		"explain":   func(q *store.Queue) error { return only(Explain(ctx, q, uid, true)) },
		"no match":  func(q *store.Queue) error { return only(NoMatch(ctx, o(q), "status=failing")) },
		"uids like": func(q *store.Queue) error { return only(UIDsLike(ctx, o(q), "m")) },
		"running":   func(q *store.Queue) error { return only(ReadRunning(ctx, q, "")) },
		"slots":     func(q *store.Queue) error { return only(PlanSlots(ctx, q, "1h")) },
		"processes": func(q *store.Queue) error { return only(ReadProcesses(ctx, q)) },
		"suspects":  func(q *store.Queue) error { return only(Suspects(ctx, o(q), "")) },
		"plan an edited model": func(q *store.Queue) error {
			_, _, err := PutEditedModel(ctx, o(q), Edit{Text: daily}, true)
			return err
		},
		"plan an edited policy": func(q *store.Queue) error {
			return only(PutEdited(ctx, o(q), Edit{Text: `{"name":"p2","timeout":"5m"}`}, true))
		},
	})
}

func ignore([]ListedModel) error { return nil }

// TestWhatIsToldOfAQueueIsOfAllItsParts compares what two parts hold with what is told of both.
func TestWhatIsToldOfAQueueIsOfAllItsParts(t *testing.T) {
	ctx, b := t.Context(), fixture.NewBench(t, testkit.Miniredis(t))
	queue := fixture.Parted(t, b.Clients)
	used(t, queue)
	o := Operator{Queue: queue}
	told := map[string]int{}
	told["selected"] = check.Got(o.Select(ctx, "", false))(t).Models
	told["running"] = check.Got(o.Select(ctx, "status=running", false))(t).Models
	told["rejected"] = len(check.Got(o.Rejected(ctx, ""))(t))
	told["undelivered"] = len(check.Got(o.Undelivered(ctx))(t))
	told["processes"] = len(check.Got(ReadProcesses(ctx, queue))(t).Pollers)
	told["replans"] = len(check.Got(o.Stats(ctx))(t).Replanning)
	told["failing"] = int(check.Got(o.Failures(ctx, FailuresRequest{By: "error"}))(t)[0].Models)
	told["in hand"] = check.Got(PlanSlots(ctx, queue, "1h"))(t).Running
	request := ForecastRequest{InputRequest: InputRequest{For: "1h"}}
	forecast := check.Got(o.Forecast(ctx, request))(t)
	told["forecast"] = forecast.Models
	check.Equal(t, map[string]int{
		"selected": 4, "running": 2, "rejected": 2, "undelivered": 2, "processes": 2, "replans": 1, "failing": 2, "in hand": 2, "forecast": 4,
	}, told)

	gone := fixture.Homed(2)
	part := queue.Of(gone)
	must(t, b.Redis.Del(ctx, part.Keys.Model(gone), part.Keys.Payload(gone)).Err())
	check.Equal(t, 3, check.Got(o.Forecast(ctx, request))(t).Models)
	check.Equal(t, 1, check.Got(PlanSlots(ctx, queue, "1h"))(t).Running)
}

func TestWhoIsSilentForTooLongDoesNotLive(t *testing.T) {
	ctx, b := t.Context(), fixture.NewBench(t, testkit.Miniredis(t))
	queue := fixture.Parted(t, b.Clients)
	for i, part := range queue.Parts {
		now := check.Got(part.Now(ctx))(t)
		for owner, ago := range map[string]time.Duration{"lives": time.Second, "silent": model.LongestSilence + time.Second} {
			at := now.Add(-ago - time.Duration(i)*time.Millisecond).UnixMilli()
			must(t, b.Redis.ZAdd(ctx, part.Keys.Dispatchers, fixture.At(float64(at), owner)).Err())
		}
	}
	var lines []string
	for _, p := range check.Got(ReadProcesses(ctx, queue))(t).Dispatchers {
		lines = append(lines, fmt.Sprint(p.Name, " ", p.Part, " ", p.Lives))
	}
	check.Equal(t, "lives {q:0} true, lives {q:1} true, silent {q:0} false, silent {q:1} false", strings.Join(lines, ", "))
}
