package flow_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// verb is what an operator does, and what undoes it.
type verb struct {
	name     string
	do, undo func(b *bench) error
}

func verbs(t *testing.T) []verb {
	hold := func(b *bench) error {
		return flow.Of(b.Store).PutHold(t.Context(), &model.Hold{ID: "h1", Since: b.Clock(), Reason: "first"})
	}
	release := func(b *bench) error { return only(flow.Of(b.Store).ReleaseHold(t.Context(), "h1", 0, b.Clock())) }
	limit := func(b *bench) error {
		return flow.Of(b.Store).PutLimit(t.Context(), &model.Limit{Name: "host=h", Running: 1}, b.Clock())
	}
	noLimit := func(b *bench) error { return only(flow.Of(b.Store).RemoveLimit(t.Context(), "host=h", b.Clock())) }
	closed, err := schedule.ParseCalendar(map[string]any{"name": "c1", "rrule": "FREQ=DAILY", "dtstart": "2026-01-01", "for": "1h"})
	must(t, err)
	calendar := func(b *bench) error { return flow.Of(b.Store).PutCalendar(t.Context(), closed, b.Clock()) }
	noCalendar := func(b *bench) error { return only(flow.Of(b.Store).RemoveCalendar(t.Context(), "c1", b.Clock())) }
	nightly := fixture.Policy(t, `{"retries":"2 300s","timeout":"60 minutes","name":"nightly","rrule":"FREQ=DAILY"}`)
	put := func(b *bench) error { return b.Fleet().PutPolicy(t.Context(), nightly) }
	remove := func(b *bench) error { return only(b.Fleet().RemovePolicy(t.Context(), "nightly")) }
	openKey := func(b *bench) error {
		return only(flow.Of(b.Store).OpenCircuit(t.Context(), "host=h", "ann", "", b.Clock().Add(time.Hour), b.Clock()))
	}
	closeKey := func(b *bench) error {
		return only(flow.Of(b.Store).CloseCircuit(t.Context(), "host=h", "ann", b.Clock()))
	}
	on := func(b *bench) error {
		return flow.Of(b.Store).SetQueueCircuit(t.Context(), model.QueueCircuit{On: true, Share: 0.5, Window: time.Minute, Min: 10}, "ann")
	}
	off := func(b *bench) error {
		return flow.Of(b.Store).SetQueueCircuit(t.Context(), model.QueueCircuit{Share: 0.5, Window: time.Minute, Min: 10}, "ann")
	}
	begin := func(b *bench) error {
		_, err := flow.Of(b.Store).BeginBulk(t.Context(), "cancel-h1", model.Bulk{Action: model.BulkCancel})
		return err
	}
	end := func(b *bench) error { return only(flow.Of(b.Store).CancelBulk(t.Context(), "cancel-h1")) }
	onQueue := func(do func(q *store.Queue) error) func(b *bench) error {
		return func(b *bench) error {
			q, err := store.Open(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue})
			must(t, err)
			return do(q)
		}
	}
	above := func(models int) func(b *bench) error {
		return onQueue(func(q *store.Queue) error { return q.SetNewErrorAbove(t.Context(), models) })
	}
	wire := func(name string) func(b *bench) error {
		return onQueue(func(q *store.Queue) error { return q.SetWire(t.Context(), model.Wire{ModelName: name}, true) })
	}
	return []verb{
		{"hold", hold, release}, {"release", release, hold}, {"limit set", limit, noLimit}, {"limit rm", noLimit, limit},
		{"calendar put", calendar, noCalendar}, {"calendar rm", noCalendar, calendar}, {"policy put", put, remove}, {"policy rm", remove, put},
		{"circuit open", openKey, closeKey}, {"circuit close", closeKey, openKey}, {"circuit on", on, off}, {"circuit off", off, on},
		{"bulk", begin, end}, {"bulk cancel", end, begin},
		{"queue set --new-error-above", above(9), above(5)}, {"queue set --model-name", wire("banner"), wire("feed")},
	}
}

// TestALateRequestOfAVerbUndoesNothingThatWasAnsweredSince lets the request of each verb arrive after its sender has given up and done it again, and
// after others have undone that.
func TestALateRequestOfAVerbUndoesNothingThatWasAnsweredSince(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, v := range verbs(t) {
			t.Run(v.name, func(t *testing.T) {
				b := b.Fresh(t)
				l := fixture.WithLateness(b)
				act := func(does func(b *bench) error) {
					t.Helper()
					b.Step(time.Second)
					must(t, does(b))
				}
				act(v.do)
				act(v.undo)
				for _, then := range [][]func(b *bench) error{{v.do}, {v.do, v.undo}, {v.do, v.undo, v.do}, {v.do, v.undo, v.do, v.undo}} {
					b.Step(time.Second)
					l.Keep(t, func() error { return v.do(b) })
					for _, does := range then {
						act(does)
					}
					b.Unchanged(func() { l.Deliver(t) })
					if len(then)%2 == 1 {
						act(v.undo)
					}
				}
			})
		}
	})
}

// TestACommandAboutTheQueueIsCarriedOutOnceAndInItsOrderWhoeverCarriesItOut lets commands be carried out by a former leader, and again
// by one that finds them in it, after later ones and after others have changed the same hold.
func TestACommandAboutTheQueueIsCarriedOutOnceAndInItsOrderWhoeverCarriesItOut(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		texts := list{`{"type":"hold","id":"h1","reason":"first"}`, `{"type":"release","id":"h1"}`, `{"type":"hold","id":"h1","reason":"second"}`, `{"type":"release","id":"h2"}`}
		b.Seed(keys{"-control": texts})
		claimed := b.Claims("p1", 10)
		steer := func(i int, want model.Outcome) {
			t.Helper()
			b.Step(time.Second)
			outcome, err := flow.Of(b.Store).ApplyQueueCommand(t.Context(), fixture.Command(t, texts[i]), store.Claimed{Entry: claimed[i]}, b.Clock())
			failIf(t, err != nil || outcome != want, "%s: want %s, got %s, %v", texts[i], want, outcome, err)
		}
		for i, want := range []model.Outcome{model.Applied, model.Applied, model.Applied, model.Unchanged} {
			l := fixture.WithLateness(b)
			l.Keep(t, func() error {
				return only(flow.Of(b.Store).ApplyQueueCommand(t.Context(), fixture.Command(t, texts[i]), store.Claimed{Entry: claimed[i]}, b.Clock()))
			})
			steer(i, want)
			b.Unchanged(func() {
				l.Deliver(t)
				steer(i, want) // as after a kill
				for before := range i {
					steer(before, model.Unchanged) // by a former leader
				}
			})
		}
		must(t, only(flow.Of(b.Store).ReleaseHold(t.Context(), "h1", 0, b.Clock())))
		b.Unchanged(func() { steer(2, model.Unchanged) })
	})
}

// TestALateRepairOfABulkLeavesTheOneThatHasBegunSinceWhereItIs lets the doctor take an id off the list whose bulk is gone or over.
func TestALateRepairOfABulkLeavesTheOneThatHasBegunSinceWhereItIs(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for name, body := range map[string]hash{"gone": nil, "over": {"since": "2026-01-01T00:00:00.000Z", "ended": "done", "ended_at": "2026-01-01T00:00:00.000Z"}} {
			t.Run(name, func(t *testing.T) {
				b := b.Fresh(t)
				orphan := func() (bulk flow.Bulk) {
					b.Seed(keys{":bulks": scores{"cancel-h1": six}})
					if body != nil {
						b.Seed(keys{":bulk:cancel-h1": body})
					}
					bulk, _, _, err := flow.Inspect(b.Store).FindBulk(t.Context(), "cancel-h1")
					must(t, err)
					bulk.ID, bulk.Cancelled = "cancel-h1", true
					return bulk
				}
				bulk := orphan()
				moved, err := flow.Of(b.Store).MoveBulk(t.Context(), &bulk, b.Clock())
				stopIf(t, moved || err != nil, "want nothing moved, got %t, %v", moved, err)
				bulks := b.State()[":bulks"]
				stopIf(t, bulks != nil, "want the id off the list, found %v", bulks)
				bulk = orphan()
				l := fixture.WithLateness(b)
				l.Keep(t, func() error { return only(flow.Of(b.Store).MoveBulk(t.Context(), &bulk, b.Clock())) })
				must(t, only(flow.Of(b.Store).BeginBulk(t.Context(), "cancel-h1", model.Bulk{Action: model.BulkCancel})))
				b.Unchanged(func() { l.Deliver(t) })
			})
		}
	})
}

func TestABulkThatBeginsAnewWithinAMillisecondIsAnotherOne(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) { // where time stops
		for _, reason := range []string{"first", "second"} {
			must(t, only(flow.Of(b.Store).CancelBulk(t.Context(), "late")))
			must(t, only(flow.Of(b.Store).BeginBulk(t.Context(), "late", model.Bulk{Action: model.BulkCancel, Reason: reason})))
		}
		found, _, err := flow.Of(b.Store).ReadBulk(t.Context(), "late")
		stopIf(t, err != nil || found.Reason != "second" || found.Cancelled, "found %+v, %v", found, err)
	})
}
