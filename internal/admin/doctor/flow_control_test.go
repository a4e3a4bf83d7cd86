package doctor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

const flowPolicy = `{"timeout":"2d","retries":["1h","1h"],"on_exhausted":"give_up","closed":["nightly"],
	"limits":[{"key":"{label.tenant}","running":1},{"key":"{host(input_url)}","rate":"60/m"}],
	"circuit":{"key":"{host(input_url)}","open_after":"1 of 1","on":["http_5xx"],"probe":"5m"}}`

func (q *queue) parsed(name, text string) policy.Policy {
	q.t.Helper()
	var value any
	q.ok(json.Unmarshal([]byte(text), &value))
	p, err := policy.Parse(value)
	q.ok(err)
	p.Name = name
	return p
}

// dispatch runs rounds until nothing is done in one.
func (q *queue) dispatch() {
	q.t.Helper()
	d, err := dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{Owner: "d"})
	q.ok(err)
	for range 10 {
		_, err = d.RunOnce(q.t.Context())
		q.ok(err)
	}
}

func (q *queue) save(uid, tenant, host string) {
	q.t.Helper()
	q.put(`{"type":"put","uid":"` + uid + `","policy":"p","labels":{"tenant":"` + tenant + `","kind":"feed"},"payload":{"input_url":"http://` + host + `/x"}}`)
}

// answer lets a worker answer, and a poller apply it.
func (q *queue) answer(result, uid, more string) {
	q.t.Helper()
	p, err := poller.New(poller.RoomsOf(q.Store), poller.Config{Owner: "answerer"})
	q.ok(err)
	q.Take()
	q.Say(strings.TrimSuffix(fixture.Result(result, uid, q.Attempt(uid)), "}") + more + "}")
	_, err = p.RunOnce(q.t.Context())
	q.ok(err)
	q.ok(q.Store.Resign(q.t.Context(), "answerer"))
}

// prepareFlow brings in the models "fails", "off" and "running", and "held", "limited", "cut" and "closed", which wait for a gate of each kind.
func (q *queue) prepareFlow() {
	q.t.Helper()
	now := q.Clock.Now()
	nightly, err := schedule.ParseCalendar(map[string]any{"name": "nightly", "rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=0;BYSECOND=0", "dtstart": "2026-01-01T00:00:00", "timezone": "UTC", "for": "1h"})
	q.ok(err)
	shut, err := schedule.ParseCalendar(map[string]any{"name": "shut", "rrule": "FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0", "dtstart": "2026-01-01T00:00:00", "timezone": "UTC", "for": "3h"})
	q.ok(err)
	q.ok(flow.Of(q.Store).PutCalendar(q.t.Context(), nightly, now))
	q.ok(flow.Of(q.Store).PutCalendar(q.t.Context(), shut, now))
	q.ok(q.Store.Fleet().PutPolicy(q.t.Context(), q.parsed("p", flowPolicy)))
	q.ok(q.Store.Fleet().PutPolicy(q.t.Context(), q.parsed("shut", `{"closed":["shut"]}`)))
	picks, err := model.ParseSelector("uid=held")
	q.ok(err)
	q.ok(flow.Of(q.Store).PutHold(q.t.Context(), &model.Hold{ID: "h1", Selector: picks, Since: now, Until: now.Add(time.Hour), Reason: "maintenance", By: "ann"}))
	q.ok(flow.Of(q.Store).PutLimit(q.t.Context(), &model.Limit{Name: "tenant=t1", Running: 1, Since: now, By: "ann"}, now))

	q.save("fails", "t3", "bad")
	q.save("off", "t3", "off")
	q.put(`{"type":"disable","uid":"off"}`)
	q.dispatch()
	q.answer("failure", "fails", `,"reason":"HTTP 503","error_type":"http_503"`)
	q.save("running", "t1", "good")
	q.dispatch()
	for uid, of := range map[string][2]string{"held": {"t4", "good"}, "limited": {"t1", "fine"}, "cut": {"t5", "bad"}} {
		q.save(uid, of[0], of[1])
	}
	q.put(`{"type":"put","uid":"closed","policy":"shut"}`)
	q.dispatch()
	k := q.Store.Keys
	q.ok(q.Redis.Del(q.t.Context(), k.Wake, k.Outbox, k.Rate("host=bad"), k.Rate("host=good"), k.Rate("host=off")).Err()) // rates lapse by the clock of Redis
	for uid, gate := range map[string]string{"held": "hold:h1", "limited": "limit:tenant=t1", "cut": "circuit:host=bad", "closed": "calendar:shut"} {
		found := q.Model(uid)["parked_by"]
		stopIf(q.t, found != gate, "expected %s parked by %s, found %v", uid, gate, q.Model(uid))
	}
	stopIf(q.t, q.Model("running")["counted_by"] == "" || q.Model("fails")["failing_since"] == "",
		"expected one that runs and one that fails, found %v and %v", q.Model("running"), q.Model("fails"))
	q.ok(flow.Of(q.Store).PutHold(q.t.Context(), &model.Hold{ID: "over", Since: now.Add(-time.Hour), Until: now})) // of the whole queue
	healthy(q.t, q.check(Options{}))
}

var flowDamages = map[string]damage{
	"a failing model is missing in the failing set":           {"failing-wrong", Error, "fails", true, sends("ZREM", keys.Failing, "fails")},
	"a failing model stands at another time":                  {"failing-wrong", Error, "fails", true, sends("ZINCRBY", keys.Failing, 1, "fails")},
	"a model that does not fail stands in the failing set":    {"failing-wrong", Error, "held", true, sends("ZADD", keys.Failing, 1e12, "held")},
	"a disabled model is missing in the disabled set":         {"disabled-wrong", Error, "off", true, sends("ZREM", keys.Disabled, "off")},
	"an enabled model stands in the disabled set":             {"disabled-wrong", Error, "held", true, sends("ZADD", keys.Disabled, 1e12, "held")},
	"a parked model is missing in the parked set":             {"parked-wrong", Error, "held", true, sends("ZREM", keys.Parked, "held")},
	"a running model stands in the parked set":                {"parked-wrong", Error, "running", true, sends("ZADD", keys.Parked, 1e12, "running")},
	"a parked model does not wait for its gate":               {"gate-wrong", Error, "held", true, sends("ZREM", keys.ParkedBy("hold:h1"), "held")},
	"a model waits for a second gate":                         {"gate-wrong", Error, "held", true, sends("ZADD", keys.ParkedBy("limit:tenant=t1"), 1e12, "held")},
	"a running model is not counted by its limit":             {"limit-wrong", Error, "running", true, sends("ZREM", keys.Limit("tenant=t1"), "running")},
	"a running model is counted until another deadline":       {"limit-wrong", Error, "running", true, sends("ZINCRBY", keys.Limit("tenant=t1"), 1, "running")},
	"a limit counts an idle model":                            {"limit-wrong", Error, "held", true, sends("ZADD", keys.Limit("tenant=t1"), 1e13, "held")},
	"a limit counts a running model of another key":           {"limit-wrong", Error, "running", true, sends("ZADD", keys.Limit("tenant=t7"), 1e13, "running")},
	"a model is missing in the set of its label":              {"label-wrong", Error, "held", true, sends("SREM", keys.Label("tenant=t4"), "held")},
	"a model is missing in the set of its host":               {"label-wrong", Error, "held", true, sends("SREM", keys.Label("host=good"), "held")},
	"a model stands in the set of another host":               {"label-wrong", Error, "held", true, sends("SADD", keys.Label("host=bad"), "held")},
	"a model stands in the set of a label that it has not":    {"label-wrong", Error, "held", true, sends("SADD", keys.Label("tenant=t1"), "held")},
	"a uid in the failing set without a model":                {"index-orphan", Error, "ghost", true, sends("ZADD", keys.Failing, 1e12, "ghost")},
	"a uid in the disabled set without a model":               {"index-orphan", Error, "ghost", true, sends("ZADD", keys.Disabled, 1e12, "ghost")},
	"a uid in the parked set without a model":                 {"index-orphan", Error, "ghost", true, sends("ZADD", keys.Parked, 1e12, "ghost")},
	"a uid at a gate without a model":                         {"index-orphan", Error, "ghost", true, sends("ZADD", keys.ParkedBy("hold:h1"), 1e12, "ghost")},
	"a limit that counts what is no model":                    {"index-orphan", Error, "ghost", true, sends("ZADD", keys.Limit("tenant=t9"), 1e13, "ghost")},
	"a limit that counts what is no model, past its deadline": {"index-orphan", Error, "ghost", true, sends("ZADD", keys.Limit("tenant=t9"), 1e12, "ghost")},
	"a limit counts an idle model, past its deadline":         {"limit-wrong", Error, "held", true, sends("ZADD", keys.Limit("tenant=t1"), 1e12, "held")},
	"a label of what is no model":                             {"index-orphan", Error, "ghost", true, sends("SADD", keys.Label("tenant=t1"), "ghost")},
	"a running model that is parked":                          {"parked-torn", Error, "running", false, sends("HSET", keys.Model("running"), "parked_by", "hold:h1")},
	"a gate that nobody looks at":                             {"gate-lost", Error, "hold:h1", true, sends("ZREM", keys.Blockers, "hold:h1")},
	"a gate that is looked at when its hold is long over":     {"gate-forgotten", Error, "hold:h1", true, sends("ZINCRBY", keys.Blockers, 6*60_000, "hold:h1")},
	"a gate of a hold that is gone":                           {"gate-forgotten", Error, "hold:h1", true, sends("HDEL", keys.Holds, "h1")},
	"a gate of a calendar that is gone": {"gate-forgotten", Error, "calendar:shut", true, sends("HDEL", keys.Calendars, "shut").
		then("HDEL", keys.Policies, "shut").
		then("HDEL", keys.Model("closed"), "policy")},
	"a gate of a limit that is looked at too late":   {"gate-forgotten", Error, "limit:tenant=t1", true, sends("ZADD", keys.Blockers, 1e13, "limit:tenant=t1")},
	"a gate of a circuit that is looked at too late": {"gate-forgotten", Error, "circuit:host=bad", true, sends("ZADD", keys.Blockers, 1e13, "circuit:host=bad")},
	"gates that no dispatcher looks at":              {"gate-late", Warning, "bigtables:gates", false, sends("ZADD", keys.Blockers, float64(fixture.Start.Add(-6*minute).UnixMilli()), "limit:tenant=t1")},
	"a probe that nobody makes":                      {"probe-lost", Error, "bigtables:circuit:host=bad", true, sends("HSET", keys.Circuit("host=bad"), "probe", "ghost")},
	"a probe of a model that waits":                  {"probe-lost", Error, "bigtables:circuit:host=bad", true, sends("HSET", keys.Circuit("host=bad"), "probe", "cut")},
	"a probe of a model that runs for another key":   {"probe-lost", Error, "bigtables:circuit:host=bad", true, sends("HSET", keys.Circuit("host=bad"), "probe", "running")},
	"a hold that is no JSON":                         {"hold-unreadable", Error, "odd", false, sends("HSET", keys.Holds, "odd", "{")},
	"a hold of an unknown selector":                  {"hold-unreadable", Error, "odd", false, sends("HSET", keys.Holds, "odd", `{"selector":"status=blue","since":"2026-11-21T07:00:00.000Z"}`)},
	"a hold of the whole queue": {"all-held", Warning, "all", false, func(ctx ctx, q *queue, _ rds) {
		q.ok(flow.Of(q.Store).PutHold(ctx, &model.Hold{ID: "all", Since: fixture.Start, Reason: "deploy", By: "ann"}))
	}},
	"a limit that cannot be read":                        {"limit-unreadable", Error, "host=x", false, sends("HSET", keys.Limits, "host=x", `{"rate":"often"}`)},
	"a calendar that cannot be read":                     {"calendar-unreadable", Error, "odd", false, sends("HSET", keys.Calendars, "odd", `{"name":"odd","rrule":"FREQ=NEVER"}`)},
	"a policy that names a calendar which is not stored": {"calendar-missing", Warning, "p", false, sends("HDEL", keys.Calendars, "nightly")},
	"a label set of another type": {"key-type", Error, "bigtables:label:tenant=t4", false, sends("DEL", keys.Label("tenant=t4")).
		then("SET", keys.Label("tenant=t4"), "text")},
	"a limit of another type":   {"key-type", Error, "bigtables:limit:host=x", false, sends("SET", keys.Limit("host=x"), "text")},
	"a rate of another type":    {"key-type", Error, "bigtables:rate:host=x", false, sends("RPUSH", keys.Rate("host=x"), "text")},
	"a circuit of another type": {"key-type", Error, "bigtables:circuit:host=x", false, sends("SET", keys.Circuit("host=x"), "text")},
	"a gate of another type":    {"key-type", Error, "bigtables:parked:hold:x", false, sends("SET", keys.ParkedBy("hold:x"), "text")},
}

func TestEachKindOfDamageOfFlowControlIsFoundAndRepairedIfThatIsPromised(t *testing.T) {
	tryAll(t, flowDamages, (*queue).prepareFlow)
}

func TestEveryQueueKeyOfTheWrongTypeIsReported(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		k := q.Store.Keys
		all := []string{
			k.Input, k.Output, k.Control, k.Due, k.Running, k.Policies, k.Dispatchers, k.Pollers, k.Workers, k.Journal, k.Outbox, k.Rejected, k.Stats,
			k.QueueCircuit, k.Wake, k.Failing, k.Disabled, k.Parked, k.Blockers, k.Holds, k.Limits, k.Calendars,
		}
		q.prepareFlow()
		for _, key := range all {
			q.ok(q.Redis.Del(t.Context(), key).Err())
			q.ok(q.Redis.Set(t.Context(), key, "text", 0).Err())
		}
		report := q.check(Options{Repair: true})
		failIf(t, report.Counts["key-type"].Found != len(all), "expected %d keys, found\n%s", len(all), report)
	})
}

func TestAModelIsMendedInAllItsIndexesAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		q.prepareFlow()
		k, before := q.Store.Keys, q.Server.Dump(t)
		q.ok(q.Redis.Del(t.Context(), k.Parked, k.Failing, k.Disabled, k.ParkedBy("hold:h1"), k.Label("tenant=t4"), k.Label("tenant=t1"), k.Limit("tenant=t1")).Err())
		report := q.check(Options{Repair: true})
		failIf(t, report.Total(Error) > 0 || report.Repaired() == 0, "expected all mended, found\n%s", report)
		healthy(t, q.check(Options{}))
		after := q.Server.Dump(t)
		for _, key := range []string{k.Parked, k.Failing, k.Disabled, k.ParkedBy("hold:h1"), k.Label("tenant=t4"), k.Label("tenant=t1"), k.Limit("tenant=t1"), k.Circuit("host=bad")} {
			equal(t, before[key], after[key])
		}
	})
}

func TestAProbeThatRunsIsNoFinding(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		q.prepareFlow()
		for _, taken := q.Take(); taken; _, taken = q.Take() { // by workers, which answer later
		}
		q.Clock.Turn(5 * time.Minute)
		q.dispatch()
		probe := q.Redis.HGet(t.Context(), q.Store.Keys.Circuit("host=bad"), "probe").Val()
		stopIf(t, probe != "cut", "expected a probe, found %q", probe)
		healthy(t, q.check(Options{Repair: true}))
	})
}

func TestAQueueInAClusterIsCheckedAndRepaired(t *testing.T) {
	long.Only(t)
	t.Parallel()
	q := &queue{fixture.New(t, testkit.Cluster(t)), t}
	q.prepareFlow()
	k := q.Store.Keys
	q.ok(q.Redis.ZRem(t.Context(), k.Failing, "fails").Err())
	q.ok(q.Redis.ZRem(t.Context(), k.Blockers, "hold:h1").Err())
	q.ok(q.Redis.SAdd(t.Context(), k.Label("tenant=t1"), "ghost").Err())
	q.ok(q.Redis.HSet(t.Context(), k.Circuit("host=bad"), "probe", "ghost").Err())
	q.ok(q.Redis.Set(t.Context(), k.Payload("lost"), "{}", 0).Err())
	q.ok(q.Redis.RPush(t.Context(), k.Input, `{"big_table_uid":"running","refresh_attempt_uid":"old"}`).Err())
	report := q.check(Options{Repair: true})
	failIf(t, report.Repaired() != 6 || len(report.Counts) != 6, "expected six repaired, found\n%s", report)
	healthy(t, q.check(Options{}))
}

func TestAHoldOfTheWholeQueueIsAWarningUntilItEnds(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		now := q.Clock.Now()
		q.ok(flow.Of(q.Store).PutHold(t.Context(), &model.Hold{ID: "h1", Since: now, Until: now.Add(time.Hour), Reason: "deploy", By: "ann"}))
		picks, err := model.ParseSelector("tenant=t1")
		q.ok(err)
		q.ok(flow.Of(q.Store).PutHold(t.Context(), &model.Hold{ID: "h2", Selector: picks, Since: now}))
		want := "warning all-held h1: expected models that may start, found all of them held by ann since "
		report := q.check(Options{})
		failIf(t, !strings.Contains(report.String(), want) || report.Counts["all-held"].Found != 1 || report.Total(Error) != 0,
			"want %s in\n%s", want, report)
		q.Clock.Turn(2 * time.Hour)
		report = q.check(Options{})
		failIf(t, report.Counts["all-held"].Found != 0, "expected no word of a hold that has ended, found\n%s", report)
	})
}
