package doctor

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

type divided struct {
	*queue  // its first part
	all     *store.Queue
	servers int // that hold its parts
}

// inParts runs a test on both servers and on a cluster with a queue of three parts.
func inParts(t *testing.T, test func(t *testing.T, q *divided)) {
	t.Helper()
	with := func(t *testing.T, server *testkit.Server) {
		q := &divided{queue: &queue{fixture.New(t, server), t}, servers: len(server.Addrs)}
		if server.Mini != nil { // it has nothing to report
			q.servers = 0
		}
		clients := &redis.Clients{Read: q.Redis, Write: q.Redis, Block: q.Redis, Clustered: server.IsCluster()}
		config := store.Config{Queue: "q", Clock: q.Clock.Now}
		q.ok(store.Create(t.Context(), clients, config, 3))
		var err error
		q.all, err = store.Open(t.Context(), clients, config)
		q.ok(err)
		q.Store = q.all.Parts[0]
		test(t, q)
	}
	testkit.BothIfLong(t, with)
	if long.Enabled() {
		t.Run("cluster", func(t *testing.T) { with(t, testkit.Cluster(t)) })
	}
}

func (q *divided) check(options Options) *Report {
	q.t.Helper()
	report, err := Check(q.t.Context(), q.all, options)
	q.ok(err)
	return report.without("persistence", "server-silent")
}

// save stores a model in a part, be it its own or not.
func (q *divided) save(part *store.Store, uid string) {
	q.t.Helper()
	records, err := part.Load(q.t.Context(), []string{uid})
	q.ok(err)
	command := &model.Command{Type: model.CommandPut, UID: uid, Definition: model.Definition{UID: uid, Rule: "FREQ=HOURLY", Payload: "{}"}}
	snapshot, err := part.Read(q.t.Context(), []string{uid}, []*model.Command{command})
	q.ok(err)
	decision, _, err := snapshot.Records[uid].Execute(command, snapshot.Policies, records[uid].Exists, q.Clock.Now())
	q.ok(err)
	transition := snapshot.Apply(command, decision, q.Clock.Now())
	codes, err := part.Commit(q.t.Context(), store.Batch{Now: q.Clock.Now(), Items: []store.Item{{Transition: transition}}})
	stopIf(q.t, err != nil || codes[0] != store.CodeApplied, "save %s: %v, %v", uid, codes, err)
}

func aPolicy(t *testing.T, name, timeout string) policy.Policy {
	t.Helper()
	p := check.Got(policy.Parse(map[string]any{"timeout": timeout}))(t)
	p.Name = name
	return p
}

func TestPartsThatAreAlikeAreHealthyAndEachIsCheckedAndRepairedOnce(t *testing.T) {
	inParts(t, func(t *testing.T, q *divided) {
		for _, uid := range []string{"a", "b", "c", "d", "e", "f"} {
			q.save(q.all.Of(uid), uid)
		}
		q.ok(q.all.Fleet().PutPolicy(t.Context(), aPolicy(t, "same", "5m")))
		q.ok(flow.OfQueue(q.all).SetQueueCircuit(t.Context(), model.DefaultQueueCircuit(), "ann"))
		report := q.check(Options{})
		failIf(t, len(report.Counts) > 0 || report.Models != 6, "expected six models and a healthy queue, found %d\n%s", report.Models, report)
		for _, part := range q.all.Parts {
			q.ok(q.Redis.Set(t.Context(), part.Keys.Payload("ghost"), "{}", 0).Err())
		}
		report, err := Check(t.Context(), q.all, Options{Repair: true})
		server := report.Counts["persistence"].Found + report.Counts["server-silent"].Found
		failIf(t, err != nil || server != q.servers || report.Counts["payload-orphan"].Repaired != 3,
			"expected one word about each server and one repaired in each part, found %v\n%s", err, report)
		healthy(t, q.check(Options{}))
	})
}

func TestAModelInAPartThatIsNotItsOwnIsToldWithWhereItBelongs(t *testing.T) {
	inParts(t, func(t *testing.T, q *divided) {
		home := q.all.Of("a")
		wrong := q.all.Parts[(store.PartOf("a", 3)+1)%3]
		q.save(home, "a")
		q.save(wrong, "a")
		report := q.check(Options{Repair: true})
		name := wrong.Keys.Queue
		want := "error wrong-part a: expected in its part, " + home.Keys.Queue + ", found in " + name + "; by hand: save it again, which is done there, " +
			"and then: refreshd model rm a --queue '" + name + "'; repaired false\n"
		got := report.String()
		failIf(t, got != want, "want %s got %s", want, got)
	})
}

func TestAPolicyThatDiffersBecomesThatOfTheFirstPart(t *testing.T) {
	inParts(t, func(t *testing.T, q *divided) {
		first, second, third := q.all.Parts[0], q.all.Parts[1], q.all.Parts[2]
		q.ok(q.all.Fleet().PutPolicy(t.Context(), aPolicy(t, "same", "5m")))
		q.ok(first.Fleet().PutPolicy(t.Context(), aPolicy(t, "new", "5m")))
		q.ok(second.Fleet().PutPolicy(t.Context(), aPolicy(t, "new", "6m")))
		q.ok(third.Fleet().PutPolicy(t.Context(), aPolicy(t, "removed", "5m")))
		q.ok(third.Fleet().PutPolicy(t.Context(), aPolicy(t, store.DefaultPolicyName, "5m")))
		report := q.check(Options{})
		tells(t, report,
			"error policy-differs {q:1}:policies new: expected the same as in the first part, {q:0}:policies, found another one; --repair writes what",
			"{q:2}:policies new: expected the same as in the first part, {q:0}:policies, found none",
			"{q:2}:policies removed: expected the same as in the first part, {q:0}, found one, which is not stored there",
			"{q:2}:policies default: ",
		)
		failIf(t, report.Counts["policy-differs"].Found != 4 || len(report.Counts) != 1, "expected four that differ, found\n%s", report)
		// The first part may have lost it.
		report = q.check(Options{Repair: true})
		failIf(t, report.Repaired() != 3, "expected three mended, found\n%s", report)
		tells(t, report, "left: the first part has none; by hand")
		stored, err := third.Policies(t.Context(), []string{"new", "removed", "same"})
		_, kept := stored["removed"]
		failIf(t, err != nil || !kept || stored["new"].Timeout != 5*minute || stored["same"].Timeout != 5*minute,
			"expected what the first part has, and nothing removed, found %v, %v", stored, err)
		q.ok(first.Fleet().PutPolicy(t.Context(), aPolicy(t, "removed", "5m")))
		q.ok(second.Fleet().PutPolicy(t.Context(), aPolicy(t, "removed", "5m")))
		healthy(t, q.check(Options{}))
	})
}

func TestACircuitOfTheQueueThatDiffersGetsTheSettingsOfTheFirstPart(t *testing.T) {
	inParts(t, func(t *testing.T, q *divided) {
		set := model.QueueCircuit{On: true, Share: 0.8, Window: 10 * time.Minute, Min: 5}
		q.ok(flow.OfQueue(q.all).SetQueueCircuit(t.Context(), set, "ann"))
		third := q.all.Parts[2]
		q.ok(flow.Of(third).SetQueueCircuit(t.Context(), model.DefaultQueueCircuit(), "ann"))
		// An open circuit of one part is no difference.
		q.ok(q.Redis.HSet(t.Context(), q.all.Parts[1].Keys.QueueCircuit, "opened_at", "2026-11-21T07:00:00.000Z").Err())
		report := q.check(Options{Repair: true}).without("circuit-open")
		want := "error circuit-differs {q:2}:circuit:queue: expected the settings of the first part, {q:0}:circuit:queue: on, 80% of at least 5 attempts within 10m, " +
			"found off, 50% of at least 20 attempts within 5m; mended: it is that of the first part; repaired true\n"
		got := report.String()
		failIf(t, got != want, "want %s got %s", want, got)
		status, err := flow.Of(third).QueueCircuit(t.Context())
		failIf(t, err != nil || status.QueueCircuit != set, "expected %v, found %v, %v", set, status.QueueCircuit, err)
	})
}

func TestAPartWhoseKeysCannotBeReadIsNotCompared(t *testing.T) {
	inParts(t, func(t *testing.T, q *divided) {
		q.ok(q.all.Fleet().PutPolicy(t.Context(), aPolicy(t, "p", "5m")))
		for _, part := range []*store.Store{q.all.Parts[0], q.all.Parts[2]} {
			q.ok(q.Redis.Del(t.Context(), part.Keys.Policies).Err())
			q.ok(q.Redis.Set(t.Context(), part.Keys.Policies, "text", 0).Err())
			q.ok(q.Redis.Set(t.Context(), part.Keys.QueueCircuit, "text", 0).Err())
		}
		report := q.check(Options{Repair: true}).without("scripts")
		failIf(t, report.Counts["key-type"].Found != 4 || len(report.Counts) != 1, "expected four keys told, found\n%s", report)
	})
}

func (q *divided) steering(part *store.Store, reason string, most int, length string) {
	q.t.Helper()
	now := q.Clock.Now()
	calendar, err := schedule.ParseCalendar(map[string]any{"name": "nightly", "rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=0;BYSECOND=0", "dtstart": "2026-01-01T00:00:00", "timezone": "UTC", "for": length})
	q.ok(err)
	picks, err := model.ParseSelector("tenant=t1")
	q.ok(err)
	q.ok(flow.Of(part).PutHold(q.t.Context(), &model.Hold{ID: "h1", Selector: picks, Since: now, Reason: reason}))
	q.ok(flow.Of(part).PutLimit(q.t.Context(), &model.Limit{Name: "host=h", Running: most, Since: now}, now))
	q.ok(flow.Of(part).PutCalendar(q.t.Context(), calendar, now))
}

func TestHoldsLimitsAndCalendarsThatDifferBecomeThoseOfTheFirstPart(t *testing.T) {
	inParts(t, func(t *testing.T, q *divided) {
		first, second, third := q.all.Parts[0], q.all.Parts[1], q.all.Parts[2]
		q.steering(first, "moving", 4, "2h")
		q.steering(second, "another", 5, "1h")
		// Each part forgets in its own time what is over.
		now := q.Clock.Now()
		q.ok(flow.Of(third).PutHold(t.Context(), &model.Hold{ID: "past", Since: now.Add(-2 * minute), Until: now.Add(-minute)}))
		q.ok(flow.Of(second).PutLimit(t.Context(), &model.Limit{Name: "host=past", Running: 1, Since: now.Add(-2 * minute), Until: now.Add(-minute)}, now))
		report := q.check(Options{})
		tells(t, report,
			"error hold-differs {q:1}:holds h1: expected the same as in the first part, {q:0}:holds, found another one; --repair writes what the first part has",
			"error limit-differs {q:1}:limits host=h: expected the same as in the first part, {q:0}:limits, found another one; ",
			"error calendar-differs {q:1}:calendars nightly: expected the same as in the first part, {q:0}:calendars, found another one; ",
			"error hold-differs {q:2}:holds h1: expected the same as in the first part, {q:0}:holds, found none; ",
		)
		failIf(t, len(report.Findings) != 6 || len(report.Counts) != 3, "expected six that differ, found\n%s", report)
		report = q.check(Options{Repair: true})
		failIf(t, report.Repaired() != 6, "expected six mended, found\n%s", report)
		healthy(t, q.check(Options{}))
		holds, _, err := flow.Of(third).Holds(t.Context())
		failIf(t, err != nil || len(holds) != 2 || holds[1].Reason != "moving", "expected the hold of the first part, found %v, %v", holds, err)
	})
}

func TestASettingThatTheFirstPartHasNotOrThatCannotBeReadThereIsLeft(t *testing.T) {
	inParts(t, func(t *testing.T, q *divided) {
		second := q.all.Parts[1]
		q.ok(flow.Of(second).PutHold(t.Context(), &model.Hold{ID: "h1", Since: q.Clock.Now()}))
		for _, part := range q.all.Parts {
			q.ok(q.Redis.HSet(t.Context(), part.Keys.Limits, "host=h", `{"running":"`+part.Keys.Queue+`"}`).Err())
		}
		q.ok(q.all.Fleet().PutPolicy(t.Context(), aPolicy(t, "p", "5m")))
		q.ok(q.Redis.HSet(t.Context(), q.Store.Keys.Policies, "p", "{").Err())
		report := q.check(Options{Repair: true})
		tells(t, report,
			"error policy-unreadable {q:0}:policies p: ",
			"policy-differs {q:1}:policies p: expected the same as in the first part, {q:0}:policies, found another one; left: that of the first part cannot be read",
			"hold-differs {q:1}:holds h1: expected the same as in the first part, {q:0}, found one, which is not stored there; left: the first part has none; by hand",
			"limit-differs {q:1}:limits host=h: expected the same as in the first part, {q:0}:limits, found another one; left: that of the first part cannot be read",
		)
		failIf(t, report.Repaired() > 0 || report.Counts["limit-unreadable"].Found != 3, "expected nothing mended, found\n%s", report)
	})
}
