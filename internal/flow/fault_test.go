package flow_test

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

func aCalendar(t testing.TB) schedule.Calendar {
	t.Helper()
	return check.Got(schedule.ParseCalendar(map[string]any{"name": "c1", "rrule": "FREQ=DAILY", "dtstart": "2026-01-01", "for": "1h"}))(t)
}

func aHold(id string) *model.Hold {
	return &model.Hold{ID: id, Since: fixture.SixOClock, Reason: "they move", By: "ann"}
}

// steered sets one of each blocker in every part, and begins two bulks.
func steered(t testing.TB, queue *store.Queue) {
	t.Helper()
	ctx, q := t.Context(), flow.OfQueue(queue)
	must(t, q.PutHold(ctx, aHold("h1")))
	must(t, q.PutLimit(ctx, &model.Limit{Name: "host=h", Running: 4}))
	must(t, q.PutCalendar(ctx, aCalendar(t)))
	must(t, only(q.OpenCircuit(ctx, "host=h", "ann", "", time.Hour)))
	must(t, q.SetQueueCircuit(ctx, aQueueCircuit(), "ann"))
	must(t, only(q.OpenCircuit(ctx, model.QueueCircuitKey, "ann", "", time.Hour)))
	must(t, q.BeginBulk(ctx, "b1", model.Bulk{Action: model.BulkRun}))
	must(t, q.BeginBulk(ctx, store.ZonesID+"2020a", model.Bulk{Action: model.BulkZones}))
	must(t, queue.Fleet().PutPolicy(ctx, fixture.Policy(t, `{"name":"p1","rrule":"FREQ=DAILY"}`))) // and a bulk of its models
	for _, part := range queue.Parts {
		closed := model.Slots{Free: fixture.SixOClock, Closed: fixture.SixOClock.Add(time.Hour), By: "m1 (http_429)"}
		must(t, part.Clients.Write.Set(ctx, part.Keys.Rate("host=h"), closed.String(), 0).Err())
		for _, gate := range []string{"hold:h1", "limit:host=h", "circuit:host=h"} {
			must(t, part.Clients.Write.ZAdd(ctx, part.Keys.Blockers, goredis.Z{Score: six, Member: gate}).Err())
			must(t, part.Clients.Write.ZAdd(ctx, part.Keys.ParkedBy(gate), goredis.Z{Score: six, Member: "m1"}).Err())
		}
		must(t, part.Clients.Write.ZAdd(ctx, part.Keys.Limit("host=h"), goredis.Z{Score: 1, Member: "lost"}).Err())
		must(t, part.Clients.Write.HSet(ctx, part.Keys.Circuit("host=h"), "probe", "m1").Err())
	}
}

// TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis lets no error of Redis pass for an answer.
func TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis(t *testing.T) {
	ctx, now := t.Context(), fixture.SixOClock
	gate, hosts := model.NewBlocker(model.BlockerLimit, "host=h"), []string{"host=h"}
	m := &model.Model{UID: "m1", State: model.State{ParkedBy: gate}}
	f, every := func(queue *store.Queue) flow.Flow { return flow.Of(queue.Parts[0]) }, flow.OfQueue
	in := func(queue *store.Queue) flow.Inspection { return flow.Inspect(queue.Parts[0]) }
	fixture.EachFault(t, steered, map[string]func(q *store.Queue) error{
		"admission": func(q *store.Queue) error { return only(in(q).Admission(ctx, m, now)) },
		"parked by": func(q *store.Queue) error {
			return only(f(q).ParkedBy(ctx, []model.Blocker{gate}, func(model.Blocker) int { return 9 }))
		},
		"note blocker checks": func(q *store.Queue) error {
			return f(q).NoteBlockerChecks(ctx, []flow.BlockerCheck{{Blocker: gate, Again: now}}, now)
		},
		"limiters":             func(q *store.Queue) error { return only(f(q).Limiters(ctx, hosts, hosts, now)) },
		"bulks":                func(q *store.Queue) error { return only(every(q).Bulks(ctx)) },
		"open bulks":           func(q *store.Queue) error { return only(f(q).Bulks(ctx)) },
		"find a bulk":          func(q *store.Queue) error { _, _, err := every(q).FindBulk(ctx, "b1"); return err },
		"begin a bulk":         func(q *store.Queue) error { return only(every(q).BeginNewBulk(ctx, model.Bulk{Action: model.BulkRun})) },
		"cancel a bulk":        func(q *store.Queue) error { return only(every(q).CancelBulk(ctx, "b1")) },
		"inspect a bulk":       func(q *store.Queue) error { _, _, _, err := in(q).FindBulk(ctx, "b1"); return err },
		"list a bulk":          func(q *store.Queue) error { return in(q).ListBulk(ctx, flow.Bulk{}) },
		"end a bulk of zones":  func(q *store.Queue) error { return endZones(t, f(q)) },
		"put a calendar":       func(q *store.Queue) error { c := aCalendar(t); c.Name = "c2"; return every(q).PutCalendar(ctx, c) },
		"remove a calendar":    func(q *store.Queue) error { return only(every(q).RemoveCalendar(ctx, "c1")) },
		"calendars":            func(q *store.Queue) error { return only(f(q).StoredCalendars(ctx)) },
		"circuits":             func(q *store.Queue) error { return only(every(q).Circuits(ctx)) },
		"open circuits":        func(q *store.Queue) error { return only(every(q).OpenCircuits(ctx)) },
		"open a circuit":       func(q *store.Queue) error { return only(every(q).OpenCircuit(ctx, "host=i", "ann", "", time.Hour)) },
		"close a circuit":      func(q *store.Queue) error { return only(every(q).CloseCircuit(ctx, "host=h", "ann")) },
		"measure the circuit":  func(q *store.Queue) error { return only(f(q).MeasureCircuit(ctx, now)) },
		"circuit of the queue": func(q *store.Queue) error { return only(every(q).QueueCircuit(ctx)) },
		"switch the circuit off": func(q *store.Queue) error {
			off := aQueueCircuit()
			off.On = false
			return every(q).SetQueueCircuit(ctx, off, "ann")
		},
		"holds":          func(q *store.Queue) error { return only(every(q).Holds(ctx)) },
		"put a hold":     func(q *store.Queue) error { return every(q).PutHold(ctx, aHold("h2")) },
		"release a hold": func(q *store.Queue) error { return only(every(q).ReleaseHold(ctx, "h1", 0)) },
		"cancel held":    func(q *store.Queue) error { return only(every(q).CancelHeld(ctx, aHold("h1"))) },
		"apply a hold": func(q *store.Queue) error {
			command := fixture.Command(t, `{"type":"hold","id":"h3","reason":"x"}`)
			return only(f(q).ApplyQueueCommand(ctx, command, store.Claimed{Entry: `n1 {"type":"hold","id":"h3","reason":"x"}`}, now))
		},
		"forget limits": func(q *store.Queue) error {
			text, err := q.Parts[0].Clients.Read.HGet(ctx, q.Parts[0].Keys.Limits, "host=h").Result()
			if err != nil {
				return err
			}
			return f(q).ForgetLimits(ctx, []store.EndedLimit{{Name: "host=h", Text: text}})
		},
		"limits":         func(q *store.Queue) error { return only(f(q).Limits(ctx)) },
		"put a limit":    func(q *store.Queue) error { return every(q).PutLimit(ctx, &model.Limit{Name: "host=i", Running: 1}) },
		"remove a limit": func(q *store.Queue) error { return only(every(q).RemoveLimit(ctx, "host=h")) },
		"open a limit":   func(q *store.Queue) error { return only(every(q).OpenLimit(ctx, "host=h")) },
		"limit uses":     func(q *store.Queue) error { return only(every(q).LimitUses(ctx)) },
		"waited for":     func(q *store.Queue) error { return only(in(q).WaitedFor(ctx, 9)) },
		"texts":          func(q *store.Queue) error { return only(in(q).Texts(ctx, now)) },
		"copy a text": func(q *store.Queue) error {
			text := flow.Text{Key: q.Parts[1].Keys.Limits, Name: "host=i", Text: `{"most":2}`}
			return in(q).CopyText(ctx, text, q.Parts[1], now)
		},
	})
}

// endZones moves the bulk of new zone data to its end, which the journal records.
func endZones(t testing.TB, f flow.Flow) error {
	t.Helper()
	b, _, err := f.ReadBulk(t.Context(), store.ZonesID+"2020a")
	if err != nil {
		return err
	}
	b.Place, b.Done = store.WalkEnds, 1
	return only(f.MoveBulk(t.Context(), &b, fixture.SixOClock))
}
