package inspect_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// damaged has models that have failed, and members of sets without a model.
func damaged(t testing.TB, queue *store.Queue) {
	t.Helper()
	ctx := t.Context()
	check.Must(t, queue.Fleet().PutPolicy(ctx, fixture.Policy(t, `{"name":"p1","closed":["c1"]}`)))
	for i, part := range queue.Parts {
		b, k := fixture.OnPart(t, part), part.Keys
		b.Fail(fixture.Homed(i), b.Clock())
		check.Must(t, b.Redis.HSet(ctx, k.Circuit("host=h"), "probe", "gone").Err())
		check.Must(t, b.Redis.ZAdd(ctx, k.Blockers, fixture.At(1, "limit:host=h")).Err())
		check.Must(t, b.Redis.ZAdd(ctx, k.Due, fixture.At(1, "gone")).Err())
	}
}

// TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis lets no error of Redis pass for an answer.
func TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis(t *testing.T) {
	ctx, now, uids := t.Context(), fixture.SixOClock, []string{fixture.Homed(0), "gone"}
	in := func(q *store.Queue) inspect.Part { return inspect.Of(q.Parts[0]) }
	k := func(q *store.Queue) *store.Keys { return &q.Parts[0].Keys }
	gate := model.NewBlocker(model.BlockerLimit, "host=h")
	circuit := model.NewBlocker(model.BlockerCircuit, "host=h")
	none := func([]string) error { return nil }
	fixture.EachFault(t, damaged, map[string]func(q *store.Queue) error{
		"state of a limit":   func(q *store.Queue) error { return check.Only(in(q).BlockerState(ctx, gate, now)) },
		"state of a circuit": func(q *store.Queue) error { return check.Only(in(q).BlockerState(ctx, circuit, now)) },
		"recheck":            func(q *store.Queue) error { return in(q).RecheckBlocker(ctx, gate, now) },
		"oldest recheck":     func(q *store.Queue) error { _, _, _, err := in(q).OldestRecheck(ctx); return err },
		"lacks a calendar":   func(q *store.Queue) error { return check.Only(in(q).LacksCalendar(ctx, "p1", "c1")) },
		"count errors":       func(q *store.Queue) error { return check.Only(in(q).CountErrors(ctx)) },
		"error counts":       func(q *store.Queue) error { return check.Only(in(q).ErrorCounts(ctx, []string{"id"})) },
		"recount": func(q *store.Queue) error {
			return check.Only(in(q).RecountError(ctx, inspect.ErrorCount{ID: "id"}, 1, now))
		},
		"set back": func(q *store.Queue) error {
			return in(q).SetBack(ctx, store.Heartbeat{Key: k(q).Pollers, Owner: "p1"}, now)
		},
		"trim wake":          func(q *store.Queue) error { return in(q).TrimWake(ctx) },
		"add a poller":       func(q *store.Queue) error { return in(q).AddExpiredPoller(ctx, "p1") },
		"drop input":         func(q *store.Queue) error { return check.Only(in(q).DropInput(ctx, "{}")) },
		"inspect":            func(q *store.Queue) error { return check.Only(in(q).Inspect(ctx, uids)) },
		"inspect atomically": func(q *store.Queue) error { return check.Only(in(q).InspectAtomically(ctx, uids)) },
		"lacks a policy":     func(q *store.Queue) error { return check.Only(in(q).LacksPolicy(ctx, uids[0], "p1")) },
		"without a model":    func(q *store.Queue) error { return check.Only(in(q).WithoutModel(ctx, uids)) },
		"owned list": func(q *store.Queue) error {
			_, _, _, err := in(q).OwnedList(ctx, k(q).Claimed("p1"), k(q).Pollers, "p1")
			return err
		},
		"members of a set":   func(q *store.Queue) error { return in(q).EachMember(ctx, k(q).Due, true, none) },
		"members of a label": func(q *store.Queue) error { return in(q).EachMember(ctx, k(q).Label("t=1"), false, none) },
		"lengths":            func(q *store.Queue) error { return check.Only(in(q).Lengths(ctx, k(q).Due)) },
		"lost probes":        func(q *store.Queue) error { return check.Only(in(q).LostProbes(ctx, []string{"host=h"})) },
		"drop a probe":       func(q *store.Queue) error { return check.Only(in(q).DropProbe(ctx, "host=h", "gone", now)) },
		"orphans of an index": func(q *store.Queue) error {
			return check.Only(in(q).Orphans(ctx, store.Index{Kind: store.KeyLabel, Name: "t=1"}, uids))
		},
	})
}
