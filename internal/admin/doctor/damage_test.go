package doctor

import (
	"context"
	"encoding/json"
	"github.com/redis/go-redis/v9"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// damage is one thing that is wrong, planted by hand into a queue with the model "idle", which waits for an hour, "busy", whose attempt
// is in the input list, and "off", which is disabled.
type damage struct {
	code       string
	severity   Severity
	where      string
	repairable bool // --repair promises it
	plant      plant
}

type plant func(ctx context.Context, q *queue, r redis.UniversalClient)

type (
	ctx = context.Context
	rds = redis.UniversalClient
)

var keys, _ = store.NewKeys(store.DefaultQueue)

func sends(args ...any) plant {
	return func(ctx ctx, q *queue, r rds) { q.ok(r.Do(ctx, args...).Err()) }
}

func (p plant) then(args ...any) plant {
	return func(ctx ctx, q *queue, r rds) {
		p(ctx, q, r)
		sends(args...)(ctx, q, r)
	}
}

var damages = map[string]damage{
	"a waiting model is missing in the due set":     {"due-wrong", Error, "idle", true, sends("ZREM", keys.Due, "idle")},
	"a waiting model stands at another time":        {"due-wrong", Error, "idle", true, sends("ZINCRBY", keys.Due, 1, "idle")},
	"a running model is missing in the running set": {"running-wrong", Error, "busy", true, sends("ZREM", keys.Running, "busy")},
	"a running model stands in the due set":         {"due-wrong", Error, "busy", true, sends("ZADD", keys.Due, 1e15, "busy")},
	"an idle model stands in the running set":       {"running-wrong", Error, "idle", true, sends("ZADD", keys.Running, 1e13, "idle")},
	"a model that nobody watches grows old":         {"stale-at-wrong", Error, "idle", true, sends("ZADD", keys.StaleAt, 1e13, "idle")},
	"a fresh model stands among the late ones":      {"late-wrong", Error, "off", true, sends("ZADD", keys.Late, 1e13, "off")},
	"a stale model is missing among the stale ones": {"stale-wrong", Error, "busy", true, sends("HSET", keys.Model("busy"), "freshness", "stale", "stale_at", "2026-11-20T00:00:00.000Z")},
	"a disabled model stands in the due set":        {"due-wrong", Error, "off", true, sends("ZADD", keys.Due, 1e13, "off")},
	"a disabled model has a refresh_at":             {"disabled-busy", Error, "off", false, sends("HSET", keys.Model("off"), "refresh_at", "2026-11-22T00:00:00.000Z")},
	"an attempt without a deadline":                 {"attempt-torn", Error, "busy", false, sends("HDEL", keys.Model("busy"), "deadline_at")},
	"a deadline without an attempt":                 {"attempt-torn", Error, "idle", false, sends("HSET", keys.Model("idle"), "deadline_at", "2026-11-22T00:00:00.000Z")},
	"a start without an attempt":                    {"attempt-torn", Error, "idle", false, sends("HSET", keys.Model("idle"), "started_at", "2026-11-22T00:00:00.000Z")},
	"a uid in the due set without a model":          {"due-orphan", Error, "ghost", true, sends("ZADD", keys.Due, 1e13, "ghost")},
	"a uid in the running set without a model":      {"running-orphan", Error, "ghost", true, sends("ZADD", keys.Running, 1e13, "ghost")},
	"a uid in the stale_at set without a model":     {"stale-at-orphan", Error, "ghost", true, sends("ZADD", keys.StaleAt, 1e13, "ghost")},
	"a uid in the late set without a model":         {"late-orphan", Error, "ghost", true, sends("ZADD", keys.Late, 1e13, "ghost")},
	"a uid in the stale set without a model":        {"stale-orphan", Error, "ghost", true, sends("ZADD", keys.Stale, 1e13, "ghost")},
	"a payload without a model":                     {"payload-orphan", Error, "ghost", true, sends("SET", keys.Payload("ghost"), "{}")},
	"a bulk that is gone":                           {"bulk-orphan", Warning, "bigtables:bulks ghost", true, sends("ZADD", keys.Bulks, 1e12, "ghost")},
	"a bulk that is over and goes on": {"bulk-orphan", Warning, "bigtables:bulks x", true, func(ctx ctx, q *queue, r rds) {
		q.begin("x")
		_, err := flow.Of(q.Store).CancelBulk(ctx, "x")
		q.ok(err)
		q.ok(r.ZAdd(ctx, keys.Bulks, redis.Z{Score: 1e12, Member: "x"}).Err())
	}},
	"a bulk that nobody carries out": {"bulk-lost", Error, "bigtables:bulk:x", true, func(ctx ctx, q *queue, r rds) {
		q.begin("x")
		q.ok(r.ZRem(ctx, keys.Bulks, "x").Err())
	}},
	"a bulk of another type": {"key-type", Error, "bigtables:bulk:x", false, sends("SET", keys.Bulk("x"), "text")},
	"a bulk of another release": {"bulk-unreadable", Warning, "x", false, func(ctx ctx, q *queue, r rds) {
		q.begin("x")
		q.ok(r.HSet(ctx, keys.Bulk("x"), "action", "polish").Err())
	}},
	"a signature that is counted too often": {"error-count", Warning, "bigtables:error:0123456789ab", true, sends("ZADD", keys.Errors, 2, "0123456789ab").
		then("HSET", keys.Error("0123456789ab"), "began", "2")},
	"a signature that is not counted": {"error-count", Warning, "bigtables:error:0123456789ab", true, sends("HSET", keys.Model("idle"), "failing_since", "2026-11-21T06:00:00.000Z", "error", "0123456789ab").
		then("ZADD", keys.Failing, 1795240800000, "idle")},
	"a signature that nobody fails by and that stays for ever": {"error-count", Warning, "bigtables:error:0123456789ab", true, sends("HSET", keys.Error("0123456789ab"), "began", "2", "ended", "2")},
	"a signature of another type":                              {"key-type", Error, "bigtables:error:0123456789ab", false, sends("SET", keys.Error("0123456789ab"), "text")},
	"a history without a model":                                {"history-orphan", Error, "ghost", true, sends("RPUSH", keys.History("ghost"), "{}")},
	"a model of another type":                                  {"key-type", Error, "bigtables:model:ghost", false, sends("SET", keys.Model("ghost"), "text")},
	"a field that is no time":                                  {"model-field", Error, "idle", false, sends("HSET", keys.Model("idle"), "refresh_at", "soon")},
	"a field that is no number":                                {"model-field", Error, "idle", false, sends("HSET", keys.Model("idle"), "attempt_no", "-1")},
	"a rule that cannot be read":                               {"model-schedule", Error, "idle", false, sends("HSET", keys.Model("idle"), "rrule", "FREQ=NEVER")},
	"a policy that is not stored":                              {"policy-missing", Error, "vanished", false, sends("HSET", keys.Model("idle"), "policy", "vanished")},
	"a policy that cannot be read":                             {"policy-unreadable", Error, "odd", false, sends("HSET", keys.Policies, "odd", `{"retries":"for ever"}`)},
	"an inline policy that no model uses": {"policy-unused", Info, policy.Default().ContentName(), true, func(ctx ctx, q *queue, r rds) {
		unused, err := json.Marshal(policy.Default())
		q.ok(err)
		q.ok(r.HSet(ctx, keys.Policies, policy.Default().ContentName(), unused).Err())
	}},
	"a use of an inline policy that is gone": {"policy-unused", Info, "inline-gone", true, sends("HSET", keys.PolicyUses, "inline-gone", "2 7")},
	"a model without payload":                {"payload-missing", Error, "idle", false, sends("DEL", keys.Payload("idle"))},
	"a payload that is no object":            {"payload-unreadable", Error, "idle", false, sends("SET", keys.Payload("idle"), "[]")},
	"a payload of another type": {"key-type", Error, "bigtables:payload:idle", false, sends("DEL", keys.Payload("idle")).
		then("RPUSH", keys.Payload("idle"), "{}")},
	"a model without revision":     {"model-rev", Warning, "idle", true, sends("HDEL", keys.Model("idle"), "rev")},
	"a revision that is no number": {"model-rev", Warning, "idle", true, sends("HSET", keys.Model("idle"), "rev", "x")},
	"a model that nothing will ever start": {"model-idle", Warning, "idle", false, sends("HDEL", keys.Model("idle"), "refresh_at").
		then("ZREM", keys.Due, "idle")},
	"a queue key of another type":                {"key-type", Error, "bigtables-control", false, sends("SET", keys.Control, "text")},
	"a reply list of another type":               {"key-type", Error, "bigtables:reply:mine", false, sends("SET", keys.Reply("mine"), "text")},
	"a history of another type":                  {"key-type", Error, "bigtables:history:idle", false, sends("SET", keys.History("idle"), "text")},
	"a list for another program of another type": {"key-type", Error, "bigtables:told:mine", false, sends("SET", keys.Told("mine"), "text")},
	"an entry of an attempt that is over":        {"input-stale", Warning, "busy", true, sends("LPUSH", keys.Input, `{"big_table_uid":"busy","refresh_attempt_uid":"old"}`)},
	"an entry of a model that is gone":           {"input-stale", Warning, "gone", true, sends("RPUSH", keys.Input, `{"big_table_uid":"gone","refresh_attempt_uid":"old"}`)},
	"an entry that is no JSON":                   {"input-unreadable", Warning, "bigtables-input", false, sends("RPUSH", keys.Input, "garbage")},
	"claimed messages of an unknown poller":      {"claimed-orphan", Error, "bigtables:claimed:lost", true, sends("RPUSH", keys.Claimed("lost"), "o{}")},
	"claimed messages of a lapsed poller": {"claimed-silent", Warning, "bigtables:claimed:lost", false, sends("RPUSH", keys.Claimed("lost"), "o{}").
		then("ZADD", keys.Pollers, float64(fixture.Start.Add(-2*minute).UnixMilli()), "lost")},
	"taken attempts of an unknown pool": {"taken-orphan", Error, "bigtables:taken:lost", true, sends("LMOVE", keys.Input, keys.Taken("lost"), "LEFT", "RIGHT")},
	"taken attempts of a lapsed pool": {"taken-silent", Warning, "bigtables:taken:lost", false, sends("LMOVE", keys.Input, keys.Taken("lost"), "LEFT", "RIGHT").
		then("ZADD", keys.Workers, 1, "lost")},
	"a poller with a heartbeat from the future":      {"heartbeat-ahead", Warning, "bigtables:pollers", true, sends("ZADD", keys.Pollers, float64(fixture.Start.Add(time.Hour).UnixMilli()), "lost")},
	"a worker pool with a heartbeat from the future": {"heartbeat-ahead", Warning, "bigtables:workers", true, sends("ZADD", keys.Workers, float64(fixture.Start.Add(time.Hour).UnixMilli()), "lost")},
	"more wake calls than one":                       {"wake-long", Warning, "bigtables:wake", true, sends("RPUSH", keys.Wake, "1", "1", "1")},
	"rejected messages":                              {"rejected", Warning, "bigtables:rejected", false, sends("RPUSH", keys.Rejected, `{"reason":"because"}`)},
	"an open circuit of the queue":                   {"circuit-open", Warning, "bigtables:circuit:queue", false, sends("HSET", keys.QueueCircuit, "on", "1", "opened_at", "2026-11-21T00:00:00.000Z")},
	"a few notifications that wait": {"outbox", Info, "bigtables:outbox", false, func(ctx ctx, q *queue, r rds) {
		q.ok(r.XAdd(ctx, &redis.XAddArgs{Stream: keys.Outbox, Values: []string{"event", "disabled", "at", model.FormatTime(q.Clock.Now().Add(-noticeWaits))}}).Err())
	}},
	"a notification that waits for hours": {"outbox", Warning, "bigtables:outbox", false, func(ctx ctx, q *queue, r rds) {
		q.ok(r.XAdd(ctx, &redis.XAddArgs{Stream: keys.Outbox, Values: []string{"event", "disabled", "at", model.FormatTime(q.Clock.Now().Add(-noticeWaits - time.Second))}}).Err())
	}},
	"notices for which there was no room":   {"notices-counted", Warning, "bigtables:summary:ops", false, sends("HSET", keys.Summary("ops"), `{"of":"stale"`, 7)},
	"a message that could not be delivered": {"undelivered", Warning, "bigtables:undelivered", false, sends("RPUSH", keys.Undelivered, "{}")},
	"many notifications that wait": {"outbox", Warning, "bigtables:outbox", false, func(ctx ctx, q *queue, r rds) {
		pipe := r.Pipeline()
		for range manyNotices + 1 {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: keys.Outbox, Values: []string{"event", "disabled"}})
		}
		_, err := pipe.Exec(ctx)
		q.ok(err)
	}},
	"no dispatcher that starts what is due": {"dispatcher-missing", Error, "bigtables:dispatchers", false, func(ctx ctx, q *queue, r rds) {
		q.Take() // the attempt of the other model lasts until tomorrow
		q.ok(r.Del(ctx, keys.Dispatchers).Err())
		q.Clock.Turn(time.Hour + 6*time.Second)
	}},
	"no dispatcher that ends what is past its deadline": {"dispatcher-missing", Error, "bigtables:dispatchers", false, func(ctx ctx, q *queue, r rds) {
		q.Take()
		q.ok(r.HDel(ctx, keys.Model("idle"), "refresh_at", "rrule").Err())
		q.ok(r.ZRem(ctx, keys.Due, "idle").Err())
		q.Clock.Turn(25 * time.Hour)
	}},
	"a dispatcher that starts nothing": {"due-late", Warning, "bigtables:due", false, func(_ ctx, q *queue, _ rds) {
		q.Take()
		q.Clock.Turn(2 * time.Hour)
		q.beat(keys.Dispatchers, q.Clock.Now())
	}},
	"a dispatcher that ends nothing": {"dispatcher-late", Warning, "bigtables:running", false, func(_ ctx, q *queue, _ rds) {
		q.Take()
		q.Clock.Turn(25 * time.Hour)
		q.beat(keys.Dispatchers, q.Clock.Now().Add(-time.Minute)) // the longest tick
	}},
	"no worker that takes anything": {"worker-missing", Error, "bigtables-input", false, func(_ ctx, q *queue, _ rds) {
		q.beat(keys.Workers, q.Clock.Now())
		q.Clock.Turn(model.LongestSilence + time.Second)
	}},
	"no poller that applies messages": {"poller-missing", Error, "bigtables:pollers", false, func(_ ctx, q *queue, _ rds) {
		q.Say("garbage")
	}},
	"no poller for long": {"poller-missing", Error, "bigtables:pollers", false, func(_ ctx, q *queue, _ rds) {
		q.Take()
		q.Command("garbage")
		q.beat(keys.Pollers, q.Clock.Now())
		q.Clock.Turn(model.LongestSilence + time.Second)
	}},
	"no poller but one from the future": {"poller-missing", Error, "bigtables:pollers", false, func(_ ctx, q *queue, _ rds) {
		q.Say("garbage")
		q.beat(keys.Pollers, q.Clock.Now().Add(time.Hour))
	}},
	"a dispatcher from the future": {"heartbeat-ahead", Warning, "bigtables:dispatchers", true, func(_ ctx, q *queue, _ rds) {
		q.beat(keys.Dispatchers, q.Clock.Now().Add(time.Hour))
	}},
}

func (q *queue) begin(id string) {
	q.t.Helper()
	_, err := flow.Of(q.Store).BeginBulk(q.t.Context(), id, model.Bulk{Action: model.BulkEnable})
	q.ok(err)
}

func (q *queue) beat(set string, at time.Time) {
	q.t.Helper()
	q.ok(q.Redis.ZAdd(q.t.Context(), set, redis.Z{Score: float64(at.UnixMilli()), Member: "lost"}).Err())
}

func (q *queue) prepare() {
	q.t.Helper()
	q.put(`{"type":"put","uid":"idle","rrule":"FREQ=HOURLY","payload":{"input_url":"http://x"}}`,
		`{"type":"put","uid":"busy","policy":{"timeout":"1d","retries":[]}}`, `{"type":"put","uid":"off","rrule":"FREQ=HOURLY"}`, `{"type":"disable","uid":"off"}`)
	d, err := dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{})
	q.ok(err)
	_, err = d.RunOnce(q.t.Context())
	q.ok(err)
	q.ok(q.Redis.Del(q.t.Context(), q.Store.Keys.Wake).Err())
	stopIf(q.t, q.Attempt("busy") == "" || len(q.List(q.Store.Keys.Input)) != 1, "expected one model started, found %v", q.Model("busy"))
	healthy(q.t, q.check(Options{}))
}

func TestEachKindOfDamageIsFoundAndRepairedIfThatIsPromised(t *testing.T) {
	tryAll(t, damages, (*queue).prepare)
}

// tryAll plants each damage into a queue that was prepared. A real server is prepared once, and brought back to that.
func tryAll(t *testing.T, damages map[string]damage, prepare func(*queue)) {
	t.Helper()
	everywhere(t, func(t *testing.T, q *queue) {
		prepare(q)
		ctx, saved := t.Context(), map[string]string{}
		for _, key := range q.Redis.Keys(ctx, "*").Val() {
			saved[key] = q.Redis.Dump(ctx, key).Val()
		}
		for name, damage := range damages {
			t.Run(name, func(t *testing.T) {
				q := &queue{q.Queue, t}
				q.Server.Flush(t)
				q.Clock.Set(fixture.Start)
				if q.Server.Mini != nil { // it knows no DUMP
					prepare(q)
				} else {
					_, err := q.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
						for key, value := range saved {
							pipe.Restore(ctx, key, 0, value)
						}
						return nil
					})
					q.ok(err)
				}
				damage.try(t, q)
			})
		}
	})
}

// try plants the damage, and looks for it without --repair, which changes nothing, with it, and after it.
func (d damage) try(t *testing.T, q *queue) {
	t.Helper()
	d.plant(t.Context(), q, q.Redis)
	before := q.Server.Dump(t)
	d.found(t, q.check(Options{}), false)
	equal(t, before, q.Server.Dump(t))
	d.found(t, q.check(Options{Repair: true}), d.repairable)
	if d.repairable {
		healthy(t, q.check(Options{}).without("claimed-silent"))
	}
}

// found checks that the report has this damage, and nothing worse.
func (d damage) found(t *testing.T, report *Report, repaired bool) {
	t.Helper()
	at := slices.IndexFunc(report.Findings, func(f Finding) bool { return f.Code == d.code && f.Where == d.where })
	stopIf(t, at < 0, "expected %s of %s, found\n%s", d.code, d.where, report)
	f := report.Findings[at]
	failIf(t, f.Severity != d.severity || f.Repaired != repaired || f.Want == "" || f.Found == "",
		"expected %s, repaired %v, found %+v", d.severity, repaired, f)
	byHand := strings.HasPrefix(f.Repair, "by hand: ")
	failIf(t, byHand == d.repairable && f.Severity != Info, "expected to read what to do, found %q", f.Repair)
	for _, other := range report.Findings {
		failIf(t, other.Code != d.code && other.Severity == Error && other.Code != "scripts", "expected nothing else to be wrong, found %+v", other)
	}
}
