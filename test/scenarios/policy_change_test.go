package scenarios

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
)

// policyQueue is a queue with both loops and a policy that is changed while models use it.
type policyQueue struct {
	*fixture.Queue
	t          *testing.T
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
}

func onQueue(t *testing.T, tell func(t *testing.T, q *policyQueue)) {
	t.Helper()
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		q := &policyQueue{Queue: fixture.New(t, server), t: t}
		q.redispatch(dispatcher.Config{})
		q.poller = check.Got(poller.New(poller.RoomsOf(q.Store), poller.Config{Owner: "p1"}))(t)
		tell(t, q)
	})
}

func (q *policyQueue) redispatch(config dispatcher.Config) {
	q.t.Helper()
	q.dispatcher = check.Got(dispatcher.New(dispatcher.RoomsOf(q.Store), config))(q.t)
}

// put stores the policy `shared`, as `refreshd policy put` does.
func (q *policyQueue) put(text string) {
	q.t.Helper()
	var value any
	must(q.t, json.Unmarshal([]byte(text), &value))
	policy := check.Got(policy.Parse(value))(q.t)
	policy.Name = "shared"
	must(q.t, q.Store.Fleet().PutPolicy(q.t.Context(), policy))
}

// dispatch and poll let a loop look once.
func (q *policyQueue) dispatch() {
	q.t.Helper()
	must(q.t, check.Only(q.dispatcher.RunOnce(q.t.Context())))
}

func (q *policyQueue) poll() {
	q.t.Helper()
	must(q.t, check.Only(q.poller.RunOnce(q.t.Context())))
}

// work lets both loops look until nothing is left to do now.
func (q *policyQueue) work() {
	q.t.Helper()
	for range 3 {
		q.poll()
		q.dispatch()
	}
}

// say lets a worker say how the attempt of a model went, and the loops work.
func (q *policyQueue) say(kind, uid string, fields ...string) {
	q.t.Helper()
	q.Say(fixture.Result(kind, uid, q.Attempt(uid), fields...))
	q.work()
}

// told lists the entries of a stream, as "event uid".
func (q *policyQueue) told(key string) (events []string) {
	q.t.Helper()
	entries := check.Got(q.Redis.XRange(q.t.Context(), key, "-", "+").Result())(q.t)
	for _, entry := range entries {
		events = append(events, fmt.Sprint(entry.Values["event"], " ", entry.Values["uid"]))
	}
	return events
}

// take is a worker that takes the attempt of a model.
func (q *policyQueue) take(uid string) {
	q.t.Helper()
	entry, found := q.Take()
	stopIf(q.t, !found || entry.UID != uid, "expected an attempt of %s, found %+v", uid, entry)
}

func (q *policyQueue) is(uid string, want map[string]string) {
	q.t.Helper()
	hash := q.Model(uid)
	for name, value := range want {
		failIf(q.t, hash[name] != value, "%s %s: expected %q, found %q", uid, name, value, hash[name])
	}
}

func TestAChangedPolicyTakesEffectAtTheNextDecisionAndPlansAnewWhatWaits(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		q.put(`{"rrule":"FREQ=DAILY;BYHOUR=6,16","timeout":"10m","retries":["1m","1m","1m"],"on_exhausted":"give_up"}`)
		q.Command(`{"type":"put","uid":"runs","policy":"shared","refresh":"now"}`, `{"type":"put","uid":"waits","policy":"shared"}`)
		q.work()
		q.take("runs")
		running := map[string]string{"deadline_at": "2026-11-21T07:10:00.000Z", "refresh_at": "2026-11-21T07:11:00.000Z", "attempt_no": "1"}
		waiting := map[string]string{"refresh_at": "2026-11-21T16:00:00.000Z", "refresh_why": "planned"}
		q.is("runs", running)
		q.is("waits", waiting)

		// The running attempt keeps its deadline; the waiting model gets a time of the new schedule.
		q.put(`{"rrule":"FREQ=DAILY;BYHOUR=6,18","timeout":"1h","retries":["7m"],"on_exhausted":"give_up"}`)
		q.Clock.Turn(9 * time.Minute)
		q.work()
		q.is("runs", running)
		q.is("waits", map[string]string{"refresh_at": "2026-11-21T18:00:00.000Z", "refresh_why": "planned"})

		// After its result the new retries apply, and then the new timeout.
		q.say("failure", "runs")
		q.is("runs", map[string]string{"refresh_at": "2026-11-21T07:16:00.000Z", "attempt_no": "1", "attempt_uid": ""})
		q.Clock.Turn(7 * time.Minute)
		q.work()
		q.take("runs")
		q.is("runs", map[string]string{"deadline_at": "2026-11-21T08:16:00.000Z", "attempt_no": "2"})
		q.say("failure", "runs")
		q.is("runs", map[string]string{"refresh_disabled_until_update": "1", "refresh_at": ""})

		// The waiting model starts when the new schedule says.
		q.Clock.Set(fixture.Start.Add(11 * time.Hour))
		q.work()
		q.take("waits")
		q.is("waits", map[string]string{"deadline_at": "2026-11-21T19:00:00.000Z"})
		q.say("success", "waits")
		q.is("waits", map[string]string{"refresh_at": "2026-11-22T06:00:00.000Z", "refresh_why": "planned"})
	})
}

func TestATimeoutIsJudgedByThePolicyThatIsInForceThen(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		q.put(`{"timeout":"10m","retries":["1m"],"on_exhausted":"give_up"}`)
		q.Command(`{"type":"put","uid":"lost","policy":"shared"}`)
		q.work()
		q.take("lost")
		q.put(`{"timeout":"10m","retries":["20m","30m"],"on_exhausted":"give_up"}`)
		q.Clock.Turn(10 * time.Minute)
		q.work()
		q.is("lost", map[string]string{"refresh_at": "2026-11-21T07:30:00.000Z", "attempt_no": "1"})

		// A removed policy leaves the default one in force, and nobody is lost.
		removed, err := q.Store.Fleet().RemovePolicy(t.Context(), "shared")
		stopIf(t, !removed || err != nil, "expected it removed, found %v, %v", removed, err)
		q.Clock.Turn(20 * time.Minute)
		q.work()
		q.take("lost")
		q.is("lost", map[string]string{"deadline_at": "2026-11-21T07:40:00.000Z", "attempt_no": "2"})
		q.say("failure", "lost")
		q.is("lost", map[string]string{"refresh_at": "2026-11-21T07:31:00.000Z", "attempt_no": "2"})
	})
}
