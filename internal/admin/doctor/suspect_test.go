package doctor

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
)

// prepareDoubt brings in the models "next", which waits for an hour, and "doubted", whose last success is doubted and holds it.
func (q *queue) prepareDoubt() {
	q.t.Helper()
	q.put(`{"type":"put","uid":"doubted","rrule":"FREQ=HOURLY","refresh":"now","payload":{"n":1},"policy":{"guard":[{"rows":{"min":1}}],"on_suspect":"hold"}}`)
	q.dispatch()
	q.answer("success", "doubted", `,"metrics":{"rows":0}`)
	q.put(`{"type":"put","uid":"next","rrule":"FREQ=HOURLY","payload":{"n":1}}`)
	q.dispatch()
	found := q.Model("doubted")
	stopIf(q.t, found["parked_by"] != string(model.BySuspect) || found["attempt_uid"] != "" || found["last_success_at"] != "", "expected it held, found %v", found)
	q.ok(q.Redis.Del(q.t.Context(), q.Store.Keys.Wake, q.Store.Keys.Outbox).Err())
	healthy(q.t, q.check(Options{}))
}

var doubtDamages = map[string]damage{
	"a held model is missing in the parked set":     {"parked-wrong", Error, "doubted", true, sends("ZREM", keys.Parked, "doubted")},
	"a held model stands at another time":           {"parked-wrong", Error, "doubted", true, sends("ZINCRBY", keys.Parked, 1, "doubted")},
	"a held model does not stand at its gate":       {"gate-wrong", Error, "doubted", true, sends("ZREM", keys.ParkedBy(string(model.BySuspect)), "doubted")},
	"a held model is about to start":                {"due-wrong", Error, "doubted", true, sends("ZADD", keys.Due, 1e12, "doubted")},
	"a model that nobody doubts stands at the gate": {"gate-wrong", Error, "next", true, sends("ZADD", keys.ParkedBy(string(model.BySuspect)), 1e12, "next")},
	"the gate of held models is lost":               {"gate-lost", Error, string(model.BySuspect), true, sends("ZREM", keys.Blockers, string(model.BySuspect))},
	"a hold of a model that runs":                   {"parked-torn", Error, "next", false, sends("HSET", keys.Model("next"), "parked_by", string(model.BySuspect)).then("HDEL", keys.Model("next"), "refresh_at").then("ZREM", keys.Due, "next")},
}

func TestEachKindOfDamageOfAHeldModelIsFoundAndRepaired(t *testing.T) {
	tryAll(t, doubtDamages, (*queue).prepareDoubt)
}

// Whatever of its indexes was lost, neither a repair nor a day lets a held model start; who rejects it does.
func TestAHeldModelIsHeldBehindARepairUntilSomebodyDecides(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		q.prepareDoubt()
		k := q.Store.Keys
		q.ok(q.Redis.Del(t.Context(), k.Parked, k.Blockers, k.ParkedBy(string(model.BySuspect))).Err())
		report := q.check(Options{Repair: true})
		failIf(t, report.Total(Error) > 0 || report.Repaired() == 0, "expected all mended, found\n%s", report)
		before := q.Model("doubted")
		q.Clock.Turn(24 * time.Hour)
		q.dispatch()
		equal(t, before, q.Model("doubted"))
		healthy(t, q.check(Options{}).without("due-late", "worker-missing", "input-stale"))
		q.put(`{"type":"reject","uid":"doubted"}`)
		failIf(t, q.Model("doubted")["parked_by"] != "" || q.Model("doubted")["refresh_at"] == "", "expected it to go on, found %v", q.Model("doubted"))
		healthy(t, q.check(Options{}).without("due-late", "worker-missing", "input-stale"))
	})
}
