package scenarios

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

// desk is a queue with both loops and a policy that is changed while models use it.
type desk struct {
	*fixture.Queue
	t          *testing.T
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
}

func newDesk(t *testing.T, server *testkit.Server) *desk {
	t.Helper()
	d := &desk{Queue: fixture.New(t, server), t: t}
	var err error
	if d.dispatcher, err = dispatcher.New(d.Store, dispatcher.Config{}); err != nil {
		t.Fatal(err)
	}
	if d.poller, err = poller.New(d.Store, poller.Config{Owner: "p1"}); err != nil {
		t.Fatal(err)
	}
	return d
}

// put stores the policy `shared`, as `refreshd policy put` does.
func (d *desk) put(text string) {
	d.t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		d.t.Fatal(err)
	}
	policy, err := policy.Parse(value)
	if err != nil {
		d.t.Fatal(err)
	}
	policy.Name = "shared"
	if err := d.Store.PutPolicy(d.t.Context(), policy); err != nil {
		d.t.Fatal(err)
	}
}

// work lets both loops look until nothing is left to do now.
func (d *desk) work() {
	d.t.Helper()
	for range 3 {
		if _, err := d.poller.RunOnce(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
		if _, err := d.dispatcher.RunOnce(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
	}
}

// take is a worker that takes the attempt of a model.
func (d *desk) take(uid string) fixture.Entry {
	d.t.Helper()
	entry, found := d.Take()
	if !found || entry.UID != uid {
		d.t.Fatalf("expected an attempt of %s, found %+v", uid, entry)
	}
	return entry
}

// is compares some fields of a model.
func (d *desk) is(uid string, want map[string]string) {
	d.t.Helper()
	hash := d.Model(uid)
	for name, value := range want {
		if hash[name] != value {
			d.t.Errorf("%s %s: expected %q, found %q", uid, name, value, hash[name])
		}
	}
}

func TestAChangedPolicyTakesEffectAtTheNextDecisionOfEachModel(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		d := newDesk(t, server)
		d.put(`{"rrule":"FREQ=DAILY;BYHOUR=6,16","timeout":"10m","retries":["1m","1m","1m"]}`)
		d.Command(`{"type":"put","uid":"runs","policy":"shared","refresh":"now"}`, `{"type":"put","uid":"waits","policy":"shared"}`)
		d.work()
		attempt := d.take("runs")
		running := map[string]string{"deadline_at": "2026-11-21T07:10:00.000Z", "refresh_at": "2026-11-21T07:11:00.000Z", "attempt_no": "1"}
		waiting := map[string]string{"refresh_at": "2026-11-21T16:00:00.000Z", "refresh_why": "planned"}
		d.is("runs", running)
		d.is("waits", waiting)

		// The running attempt keeps its deadline, and the waiting model its time.
		d.put(`{"rrule":"FREQ=DAILY;BYHOUR=6,18","timeout":"1h","retries":["7m"]}`)
		d.Clock.Turn(9 * time.Minute)
		d.work()
		d.is("runs", running)
		d.is("waits", waiting)

		// After its result the new retries apply, and then the new timeout.
		d.Say(fixture.Result("failure", "runs", attempt.AttemptUID))
		d.work()
		d.is("runs", map[string]string{"refresh_at": "2026-11-21T07:16:00.000Z", "attempt_no": "1", "attempt_uid": ""})
		d.Clock.Turn(7 * time.Minute)
		d.work()
		attempt = d.take("runs")
		d.is("runs", map[string]string{"deadline_at": "2026-11-21T08:16:00.000Z", "attempt_no": "2"})
		d.Say(fixture.Result("failure", "runs", attempt.AttemptUID))
		d.work()
		d.is("runs", map[string]string{"refresh_disabled_until_update": "1", "refresh_at": ""})

		// The waiting model starts when the old schedule said, and goes on by the new one.
		d.Clock.Set(fixture.Start.Add(9 * time.Hour))
		d.work()
		attempt = d.take("waits")
		d.is("waits", map[string]string{"deadline_at": "2026-11-21T17:00:00.000Z"})
		d.Say(fixture.Result("success", "waits", attempt.AttemptUID))
		d.work()
		d.is("waits", map[string]string{"refresh_at": "2026-11-21T18:00:00.000Z", "refresh_why": "planned"})
	})
}

func TestATimeoutIsJudgedByThePolicyThatIsInForceThen(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		d := newDesk(t, server)
		d.put(`{"timeout":"10m","retries":["1m"]}`)
		d.Command(`{"type":"put","uid":"lost","policy":"shared"}`)
		d.work()
		d.take("lost")
		d.put(`{"timeout":"10m","retries":["20m","30m"]}`)
		d.Clock.Turn(10 * time.Minute)
		d.work()
		d.is("lost", map[string]string{"refresh_at": "2026-11-21T07:30:00.000Z", "attempt_no": "1"})

		// A removed policy leaves the default one in force, and nobody is lost.
		if removed, err := d.Store.RemovePolicy(t.Context(), "shared"); !removed || err != nil {
			t.Fatalf("expected it removed, found %v, %v", removed, err)
		}
		d.Clock.Turn(20 * time.Minute)
		d.work()
		attempt := d.take("lost")
		d.is("lost", map[string]string{"deadline_at": "2026-11-21T07:40:00.000Z", "attempt_no": "2"})
		d.Say(fixture.Result("failure", "lost", attempt.AttemptUID))
		d.work()
		d.is("lost", map[string]string{"refresh_at": "2026-11-21T07:31:00.000Z", "attempt_no": "2"})
	})
}
