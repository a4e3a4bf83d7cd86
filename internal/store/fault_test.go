package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// inUse has a policy, two models and an owner of claimed messages in each part.
func inUse(t testing.TB, queue *store.Queue) {
	t.Helper()
	ctx := t.Context()
	check.Must(t, queue.Fleet().PutPolicy(ctx, fixture.Policy(t, `{"name":"p1","timeout":"5m"}`)))
	for i, part := range queue.Parts {
		b, k := fixture.OnPart(t, part), part.Keys
		b.Fail(fixture.Homed(i), b.Clock())
		b.MustApply(b.Put(fixture.Homed(i+2), "{}"))
		check.Must(t, b.Redis.SAdd(ctx, k.Label("tenant=t1"), fixture.Homed(i)).Err())
		check.Must(t, b.Redis.RPush(ctx, k.Claimed("p1"), "o{}").Err())
		check.Must(t, b.Redis.RPush(ctx, k.Taken("w1"), "{}").Err())
		check.Must(t, b.Redis.ZAdd(ctx, k.Workers, fixture.At(float64(b.Clock().UnixMilli()), "w2")).Err())
		check.Must(t, b.Redis.ZAdd(ctx, k.Workers, fixture.At(float64(b.Clock().UnixMilli()), "w1")).Err())
	}
}

// TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis lets no error of Redis pass for an answer.
func TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis(t *testing.T) {
	ctx, now, uids := t.Context(), fixture.SixOClock, []string{fixture.Homed(0), fixture.Homed(2)}
	s := func(q *store.Queue) *store.Store { return q.Parts[0] }
	r := func(q *store.Queue) store.Report { return q.Parts[0].Report() }
	tenant := check.Got(model.ParseSelector("tenant=t1"))(t)
	each := func([]string) error { return nil }
	record := func(*store.Record) error { return nil }
	fixture.EachFault(t, inUse, map[string]func(q *store.Queue) error{
		"blockers": func(q *store.Queue) error { return check.Only(s(q).Fleet().Blockers(ctx)) },
		"read due": func(q *store.Queue) error {
			return check.Only(s(q).ReadDue(ctx, store.DueRequest{Limit: 9, Owner: "d1"}))
		},
		"retire":          func(q *store.Queue) error { return s(q).Retire(ctx, "d1") },
		"forget":          func(q *store.Queue) error { return s(q).Forget(ctx, "gone", "") },
		"sample the head": func(q *store.Queue) error { return s(q).SampleHead(ctx, 1, now, time.Second) },
		"head samples":    func(q *store.Queue) error { return check.Only(s(q).HeadSamples(ctx)) },
		"queued":          func(q *store.Queue) error { return check.Only(s(q).Queued(ctx)) },
		"input":           func(q *store.Queue) error { return check.Only(s(q).InputPart(ctx, 0, 9)) },
		"liveness":        func(q *store.Queue) error { return check.Only(r(q).Liveness(ctx)) },
		"heartbeats":      func(q *store.Queue) error { _, _, err := r(q).Heartbeats(ctx); return err },
		"histories":       func(q *store.Queue) error { return check.Only(r(q).Histories(ctx, uids, 9)) },
		"export":          func(q *store.Queue) error { return check.Only(r(q).Export(ctx, uids)) },
		"policies of":     func(q *store.Queue) error { return check.Only(r(q).PoliciesOf(ctx, uids)) },
		"each indexed": func(q *store.Queue) error {
			return r(q).EachIndexed(ctx, now, func(store.Indexed) error { return nil })
		},
		"read planned":    func(q *store.Queue) error { return check.Only(r(q).ReadPlanned(ctx, uids)) },
		"claim":           func(q *store.Queue) error { return check.Only(s(q).Claim(ctx, "p1", store.Holding{}, 9, time.Minute)) },
		"expired pollers": func(q *store.Queue) error { return check.Only(s(q).ExpiredPollers(ctx, now, time.Minute)) },
		"adopt":           func(q *store.Queue) error { return check.Only(s(q).Adopt(ctx, "p1", "p2", time.Minute, 9)) },
		"resign":          func(q *store.Queue) error { return s(q).Resign(ctx, "p1") },
		"policies":        func(q *store.Queue) error { return check.Only(s(q).Policies(ctx, []string{"p1"})) },
		"put a policy":    func(q *store.Queue) error { p := policy.Default(); p.Name = "p2"; return q.Fleet().PutPolicy(ctx, p) },
		"remove a policy": func(q *store.Queue) error { return check.Only(q.Fleet().RemovePolicy(ctx, "p1")) },
		"each policy":     func(q *store.Queue) error { return r(q).EachPolicy(ctx, func(string, policy.Policy, string) {}) },
		"policy names":    func(q *store.Queue) error { return check.Only(r(q).PolicyNames(ctx)) },
		"policy text":     func(q *store.Queue) error { _, _, err := r(q).PolicyText(ctx, "p1"); return err },
		"count policies":  func(q *store.Queue) error { _, _, _, err := q.Report().CountPolicies(ctx, 9); return err },
		"policy uses":     func(q *store.Queue) error { return check.Only(s(q).Fleet().PolicyUses(ctx)) },
		"take": func(q *store.Queue) error {
			return check.Only(s(q).Pool().Take(ctx, store.TakeRequest{Owner: "w1", Most: 9}))
		},
		"answer": func(q *store.Queue) error {
			return check.Only(s(q).Pool().Answer(ctx, "w1", []store.Answer{{Entry: "{}", Ends: true}}))
		},
		"beat":  func(q *store.Queue) error { return check.Only(s(q).Pool().Heartbeat(ctx, "w1")) },
		"leave": func(q *store.Queue) error { return check.Only(s(q).Pool().Leave(ctx, "w2")) },
		"order pools": func(q *store.Queue) error {
			return q.Fleet().OrderPools(ctx, []string{"w1"}, store.PoolOrder{Verb: "quiet", By: "ann"})
		},
		"pool states":   func(q *store.Queue) error { return check.Only(r(q).PoolStates(ctx, []string{"w1"}, 9)) },
		"load scripts":  func(q *store.Queue) error { return q.LoadScripts(ctx) },
		"load":          func(q *store.Queue) error { return check.Only(s(q).Load(ctx, uids)) },
		"read":          func(q *store.Queue) error { return check.Only(s(q).Read(ctx, uids, nil)) },
		"redis time":    func(q *store.Queue) error { return check.Only(r(q).RedisTime(ctx)) },
		"size":          func(q *store.Queue) error { return check.Only(r(q).Size(ctx)) },
		"types":         func(q *store.Queue) error { return check.Only(r(q).Types(ctx, []string{"a"})) },
		"used":          func(q *store.Queue) error { return check.Only(q.Report().Used(ctx)) },
		"others":        func(q *store.Queue) error { return check.Only(q.Report().Others(ctx)) },
		"set above":     func(q *store.Queue) error { return q.SetNewErrorAbove(ctx, 7) },
		"set the wire":  func(q *store.Queue) error { return q.SetWire(ctx, model.Wire{ModelName: "banner"}, true) },
		"daemons":       func(q *store.Queue) error { return check.Only(r(q).Daemons(ctx)) },
		"walk":          func(q *store.Queue) error { return r(q).Walk(ctx, model.Selector{}, each) },
		"walk a label":  func(q *store.Queue) error { return r(q).Walk(ctx, tenant, each) },
		"each selected": func(q *store.Queue) error { return r(q).EachSelected(ctx, tenant, each) },
		"behind":        func(q *store.Queue) error { return check.Only(r(q).Behind(ctx, s(q).Keys.Due, store.Scored{}, 9)) },
		"each picked":   func(q *store.Queue) error { return r(q).EachPicked(ctx, tenant, record) },
		"few picked":    func(q *store.Queue) error { return check.Only(r(q).FewPicked(ctx, tenant, 9, record)) },
		"may pick":      func(q *store.Queue) error { return check.Only(r(q).MayPick(ctx, tenant)) },
		"label counts":  func(q *store.Queue) error { return check.Only(q.Report().LabelCounts(ctx, "tenant")) },
		"note zones":    func(q *store.Queue) error { return check.Only(s(q).NoteZones(ctx, "d1")) },
	})
}

// TestEachWalkEndsWithTheErrorOfItsVisitor hands a fault of who visits back to who walks.
func TestEachWalkEndsWithTheErrorOfItsVisitor(t *testing.T) {
	ctx, b := t.Context(), fixture.NewBench(t, testkit.Miniredis(t))
	queue := fixture.Parted(t, b.Clients)
	inUse(t, queue)
	part, enough := queue.Parts[0], errors.New("enough")
	each := func([]string) error { return enough }
	record := func(*store.Record) error { return enough }
	for name, err := range map[string]error{
		"each indexed":  part.Report().EachIndexed(ctx, fixture.SixOClock, func(store.Indexed) error { return enough }),
		"walk":          part.Report().Walk(ctx, model.Selector{}, each),
		"each selected": part.Report().EachSelected(ctx, fixture.Picks(t, "tenant=t1"), each),
		"each picked":   part.Report().EachPicked(ctx, model.Selector{}, record),
		"few picked":    check.Only(part.Report().FewPicked(ctx, model.Selector{}, 9, record)),
		"scan keys":     part.Report().ScanKeys(ctx, "scan", part.Keys.Queue+"*", each),
		"all parts":     queue.Each(func(*store.Store) error { return enough }),
	} {
		check.FailIf(t, !errors.Is(err, enough), "%s: error %v, want that of its visitor", name, err)
	}
}
