package dispatcher_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/scripts"
)

// fleet saves one-shots that are due now under a policy, each with the labels of its name: "t1/m1" has tenant t1 and the host t1.
func (b *bundle) fleet(text string, uids ...string) {
	b.t.Helper()
	p := b.parse(text)
	if err := b.Store.PutPolicy(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
	now := b.now()
	records, err := b.Store.Load(b.t.Context(), uids)
	if err != nil {
		b.t.Fatal(err)
	}
	var transitions []*scripts.Transition
	for _, uid := range uids {
		tenant := uid[:2]
		definition := model.Definition{UID: uid, Payload: `{"input_url":"http://` + tenant + `/x"}`, PolicyName: "p", Labels: map[string]string{"tenant": tenant}}
		decision, _, err := records[uid].Put(definition, p, false, now)
		if err != nil {
			b.t.Fatal(err)
		}
		transitions = append(transitions, records[uid].Decide(decision, now))
	}
	b.Commit(now, transitions...)
}

// uidsOf are uids of models of one tenant.
func uidsOf(tenant string, n int) (uids []string) {
	for i := range n {
		uids = append(uids, fmt.Sprintf("%s/m%02d", tenant, i))
	}
	return uids
}

// finish answers the attempts of models, as a poller does.
func (b *bundle) finish(uids ...string) {
	b.t.Helper()
	now := b.now()
	records, err := b.Store.Load(b.t.Context(), uids)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, uid := range uids {
		r := records[uid]
		b.Commit(now, r.Decide(r.Succeed(now, nil), now))
	}
	b.Redis.Del(b.t.Context(), b.Store.Keys.Input())
}

func (b *bundle) failWith(failure policy.Failure, uids ...string) {
	b.t.Helper()
	now := b.now()
	records, err := b.Store.Load(b.t.Context(), uids)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, uid := range uids {
		r := records[uid]
		b.Commit(now, r.Decide(r.Fail(failure, now), now))
	}
}

// runs are the models that run, by tenant.
func (b *bundle) runs() map[string][]string {
	b.t.Helper()
	all := map[string][]string{}
	for _, uid := range slices.Sorted(maps.Keys(b.Scores(b.Store.Keys.Running()))) {
		all[uid[:2]] = append(all[uid[:2]], uid)
	}
	return all
}

func counts(runs map[string][]string) map[string]int {
	n := map[string]int{}
	for tenant, uids := range runs {
		n[tenant] = len(uids)
	}
	return n
}

// settle lets rounds follow until there is nothing left to do.
func (b *bundle) settle(d *dispatcher.Dispatcher) (total dispatcher.Round) {
	b.t.Helper()
	for range 100 {
		round := b.round(d)
		total.Started, total.Parked, total.Released, total.TimedOut = total.Started+round.Started, total.Parked+round.Parked, total.Released+round.Released, total.TimedOut+round.TimedOut
		if round.Started+round.Parked+round.Limited+round.Released+round.TimedOut+round.Refused == 0 && round.Sleep > 0 {
			return total
		}
	}
	b.t.Fatal("the rounds do not end")
	return total
}

const fourAHost = `{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":4}]}`

func TestNeverMoreAttemptsRunThanTheLimitOfTheirKey(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.fleet(fourAHost, append(uidsOf("t1", 20), uidsOf("t2", 3)...)...)
		if total := b.settle(d); total.Started != 7 || total.Parked != 16 {
			t.Errorf("want 4 and 3 started and the others parked, got %+v", total)
		}
		if diff := cmp.Diff(map[string]int{"t1": 4, "t2": 3}, counts(b.runs())); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(4, len(b.Scores(b.Store.Keys.Limit("host=t1")))); diff != "" {
			t.Error(diff)
		}
		if hash := b.Model("t1/m00"); hash["counted_by"] != "limit:host=t1" {
			t.Errorf("the attempt is counted by %q", hash["counted_by"])
		}
	})
}

func TestAFreedKeyTakesItsNextParkedModelAtOnceUntilNoneIsLeft(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		uids := uidsOf("t1", 20)
		b.fleet(fourAHost, uids...)
		b.settle(d)
		done := 0
		for done < len(uids) {
			running := b.runs()["t1"]
			if len(running) == 0 || len(running) > 4 || done+4 <= len(uids) && len(running) != 4 {
				t.Fatalf("%d run when %d are done", len(running), done)
			}
			b.finish(running[0]) // one at a time: each frees one place
			done++
			b.settle(d)
		}
		for _, key := range []string{b.Store.Keys.Parked(), b.Store.Keys.Gates(), b.Store.Keys.Limit("host=t1"), b.Store.Keys.ParkedBy("limit:host=t1")} {
			if left := b.Scores(key); len(left) > 0 {
				t.Errorf("%s still holds %v", key, left)
			}
		}
	})
}

func TestAnAttemptTakesAllOfItsKeysOrNone(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.fleet(`{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":2},{"key":"{label.tenant}","running":1}]}`, uidsOf("t1", 3)...)
		b.settle(d)
		if host, tenant := b.Scores(b.Store.Keys.Limit("host=t1")), b.Scores(b.Store.Keys.Limit("tenant=t1")); len(host) != 1 || len(tenant) != 1 {
			t.Errorf("want one of each key taken, got %v and %v", host, tenant)
		}
	})
}

func TestTwoDispatchersTogetherStartNoMoreThanTheLimit(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		b.fleet(fourAHost, uidsOf("t1", 10)...)
		other := b.dispatcher(b.Store, dispatcher.Config{Owner: "a", Batch: 4, NewUID: func() string { return fmt.Sprint("other-", time.Now().UnixNano()) }})
		once := true
		first := &interrupted{Store: b.Store, before: func() {
			if once {
				once = false
				for i, uid := range []string{"t1/x0", "t1/x1", "t1/x2", "t1/x3"} { // due before those that the first has read
					b.fleet(fourAHost, uid)
					b.refreshAt(uid, fixture.Start.Add(time.Duration(i-9)*time.Second))
				}
				if round := b.round(other); round.Started != 4 {
					t.Errorf("want the other to start four meanwhile, got %+v", round)
				}
			}
		}}
		b.round(b.dispatcher(first, dispatcher.Config{Owner: "first"}))
		b.settle(other)
		if diff := cmp.Diff([]string{"t1/x0", "t1/x1", "t1/x2", "t1/x3"}, b.runs()["t1"]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatDiesFreesItsKeyAtItsDeadline(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.fleet(fourAHost, uidsOf("t1", 6)...)
		b.settle(d)
		b.Redis.Del(context.Background(), b.Store.Keys.Input()) // workers have them, and die
		b.Clock.Turn(time.Minute)
		b.settle(d)
		if diff := cmp.Diff([]string{"t1/m04", "t1/m05"}, b.runs()["t1"]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAModelOverItsRateWaitsForASlotThatNobodyElseGets(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.fleet(`{"timeout":"10m","retries":[],"limits":[{"key":"{host(input_url)}","rate":"6/m"}]}`, uidsOf("t1", 5)...)
		b.settle(d)
		want := map[string]int64{}
		for i, uid := range uidsOf("t1", 5)[1:] {
			want[uid] = fixture.Start.Add(time.Duration(i+1) * 10 * time.Second).UnixMilli()
		}
		if diff := cmp.Diff(want, b.Scores(b.Store.Keys.Due())); diff != "" {
			t.Errorf("slots (-want +got):\n%s", diff)
		}
		for started := 1; started <= 5; started++ {
			if n := len(b.runs()["t1"]); n != started {
				t.Errorf("want %d started after %s, got %d", started, b.now().Sub(fixture.Start), n)
			}
			b.Clock.Turn(10 * time.Second)
			b.settle(d)
		}
	})
}

func TestARetryAfterOfAStatus429ClosesTheKeyForAll(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.fleet(`{"timeout":"10m","retries":["0s"],"limits":[{"key":"{host(input_url)}","running":1}]}`, append(uidsOf("t1", 3), uidsOf("t2", 1)...)...)
		b.settle(d)
		b.failWith(policy.Failure{ErrorType: "http_429", RetryAfter: 5 * time.Minute}, "t1/m00")
		b.settle(d)
		if diff := cmp.Diff(map[string]int{"t2": 1}, counts(b.runs())); diff != "" {
			t.Errorf("the key is not closed: %s", diff)
		}
		b.Clock.Turn(5 * time.Minute)
		b.settle(d)
		if n := len(b.runs()["t1"]); n != 1 {
			t.Errorf("want one running behind the retry_after, got %d", n)
		}
	})
}

func TestALimitThatIsSetAtRunTimeGoesBeforeThatOfThePolicyUntilItEnds(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		limit := &model.Limit{Name: "host=t1", Running: 1, Since: b.now(), Until: b.now().Add(30 * time.Second)}
		if err := b.Store.PutLimit(b.t.Context(), limit, b.now()); err != nil {
			t.Fatal(err)
		}
		b.fleet(fourAHost, append(uidsOf("t1", 9), uidsOf("t2", 9)...)...)
		b.settle(d)
		if diff := cmp.Diff(map[string]int{"t1": 1, "t2": 4}, counts(b.runs())); diff != "" {
			t.Error(diff)
		}
		b.Clock.Turn(30 * time.Second)
		b.settle(d)
		if diff := cmp.Diff(map[string]int{"t1": 4, "t2": 4}, counts(b.runs())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestALimitThatHasEndedIsForgottenButNotOneThatWasSetAnewMeanwhile(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		set := func(name string, length time.Duration) {
			limit := &model.Limit{Name: name, Running: 1, Since: b.now()}
			if length > 0 {
				limit.Until = b.now().Add(length)
			}
			if err := b.Store.PutLimit(b.t.Context(), limit, b.now()); err != nil {
				t.Fatal(err)
			}
		}
		names := []string{"host=t1", "host=t2", "{label.tenant}", "host=t3"}
		for i, name := range names {
			set(name, time.Duration(3-i)*30*time.Second) // the last one has no end
		}
		b.fleet(fourAHost, uidsOf("t2", 9)...)
		expect := func(want ...string) {
			t.Helper()
			b.settle(d)
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(b.Redis.HKeys(b.t.Context(), b.Store.Keys.Limits()).Val()))); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", b.now().Sub(fixture.Start), diff)
			}
		}
		expect("host=t1", "host=t2", "host=t3", "{label.tenant}")
		b.Clock.Turn(30 * time.Second)
		expect("host=t1", "host=t2", "host=t3")
		b.Clock.Turn(30 * time.Second) // and four may run at once
		expect("host=t1", "host=t3")
		if n := len(b.runs()["t2"]); n != 4 {
			t.Errorf("want four running, %d do", n)
		}
		b.Clock.Turn(30 * time.Second)
		due, err := b.Store.ReadDue(b.t.Context(), scripts.DueRequest{Limit: 1})
		if err != nil || len(due.Ended) != 1 {
			t.Fatalf("want one that has ended, got %v, %v", due.Ended, err)
		}
		set("host=t1", time.Minute)
		if err := b.Store.ForgetLimits(b.t.Context(), due.Ended); err != nil {
			t.Fatal(err)
		}
		expect("host=t1", "host=t3")
	})
}

func TestAPageOfParkedModelsHidesNoOthers(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{Batch: 10, MaxQueued: 5})
		b.fleet(`{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":1}]}`, append(uidsOf("t1", 40), uidsOf("t2", 1)...)...)
		b.settle(d)
		if diff := cmp.Diff(map[string]int{"t1": 1, "t2": 1}, counts(b.runs())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAHostThatNeverAnswersDelaysNoOtherByATick lets rounds follow until a dispatcher would sleep, which it does for a tick at most.
func TestAHostThatNeverAnswersDelaysNoOtherByATick(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{Batch: 10, MaxQueued: 20})
		b.fleet(fourAHost, slices.Concat(uidsOf("t0", 40), uidsOf("t1", 20), uidsOf("t2", 20), uidsOf("t3", 20))...)
		b.settle(d)
		slow := b.runs()["t0"]
		for left := 20; left > 0; left -= 4 {
			running := b.runs()
			if diff := cmp.Diff(map[string]int{"t0": 4, "t1": 4, "t2": 4, "t3": 4}, counts(running)); diff != "" {
				t.Fatalf("with %d of each host left: %s", left, diff)
			}
			b.finish(slices.Concat(running["t1"], running["t2"], running["t3"])...)
			b.settle(d)
		}
		if diff := cmp.Diff(map[string][]string{"t0": slow}, b.runs()); diff != "" {
			t.Error(diff)
		}
		if parked := b.Scores(b.Store.Keys.ParkedBy("limit:host=t0")); len(parked) != 36 {
			t.Errorf("want 36 of the host parked, got %d", len(parked))
		}
	})
}

func TestALimitOfTheQueueBoundsAllModelsUntilItEnds(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		limit := &model.Limit{Name: "{label.tenant}", Running: 2, Since: b.now(), Until: b.now().Add(30 * time.Second)}
		if err := b.Store.PutLimit(b.t.Context(), limit, b.now()); err != nil {
			t.Fatal(err)
		}
		b.fleet(`{"timeout":"1m","retries":[]}`, append(uidsOf("t1", 5), uidsOf("t2", 5)...)...)
		b.settle(d)
		if diff := cmp.Diff(map[string]int{"t1": 2, "t2": 2}, counts(b.runs())); diff != "" {
			t.Error(diff)
		}
		b.Clock.Turn(30 * time.Second)
		b.settle(d)
		if diff := cmp.Diff(map[string]int{"t1": 5, "t2": 5}, counts(b.runs())); diff != "" {
			t.Error(diff)
		}
	})
}

const sixAMinute = `{"timeout":"1h","retries":[],"limits":[{"key":"{host(input_url)}","rate":"6/m"}]}`

// begun are when the attempts of models were started, in seconds since the world began, in that order.
func (b *bundle) begun(uids ...string) (at []string) {
	b.t.Helper()
	for _, uid := range uids {
		if since := b.Model(uid)["started_at"]; since != "" {
			began, err := time.Parse(time.RFC3339, since)
			if err != nil {
				b.t.Fatal(err)
			}
			at = append(at, fmt.Sprintf("%05.1f %s", began.Sub(fixture.Start).Seconds(), uid))
		}
	}
	slices.Sort(at)
	return at
}

func TestAnOutageEndsInNoBurstAndWhoHoldsASlotStartsInItsTurn(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		held, newcomers := uidsOf("t1", 5), []string{"t1/a0", "t1/a1"}
		b.fleet(sixAMinute, held...)
		b.settle(d)
		b.Clock.Turn(25 * time.Second) // no dispatcher runs: two slots pass, and two are to come
		b.settle(d)
		if hash := b.Model("t1/m02"); hash["parked_by"] != "limit:host=t1" || hash["reserved"] != "host=t1" {
			t.Errorf("what is late and not first waits at %q, and holds %q", hash["parked_by"], hash["reserved"])
		}
		b.fleet(sixAMinute, newcomers...)
		for range 100 {
			b.settle(d)
			b.Clock.Turn(time.Second)
		}
		want := []string{"000.0 t1/m00", "025.0 t1/m01", "035.0 t1/m02", "045.0 t1/m03", "055.0 t1/m04", "065.0 t1/a0", "075.0 t1/a1"}
		if diff := cmp.Diff(want, b.begun(append(held, newcomers...)...)); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
		if left := b.Scores(b.Store.Keys.Gates()); len(left) > 0 {
			t.Errorf("still looked at: %v", left)
		}
	})
}

func TestALittleDelayOfARoundDelaysNothingBehindIt(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.fleet(sixAMinute, uidsOf("t1", 3)...)
		b.settle(d)
		b.Clock.Turn(10*time.Second + 60*time.Millisecond)
		b.settle(d)
		b.Clock.Turn(10*time.Second - 60*time.Millisecond)
		if total := b.settle(d); total.Started != 1 || total.Parked != 0 {
			t.Errorf("want it started at its slot, got %+v", total)
		}
	})
}

func TestARetryAfterOfAStatus429LetsNobodyStartAtASlotBeforeThat(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		d := b.dispatcher(b.Store, dispatcher.Config{})
		uids := uidsOf("t1", 4)
		b.fleet(sixAMinute, uids...)
		b.settle(d)
		b.failWith(policy.Failure{ErrorType: "http_429", RetryAfter: 15 * time.Second}, uids[0])
		b.fleet(sixAMinute, "t1/a0")
		for range 50 {
			b.settle(d)
			b.Clock.Turn(time.Second)
		}
		if diff := cmp.Diff([]string{"015.0 t1/m01", "025.0 t1/m02", "035.0 t1/m03", "045.0 t1/a0"}, b.begun(append(uids, "t1/a0")...)); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
}

func TestTwoDispatchersStartNoTwoOfAKeyWithinAnInterval(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		held := uidsOf("t1", 3)
		other := b.dispatcher(b.Store, dispatcher.Config{Owner: "a", Batch: 1})
		b.fleet(sixAMinute, held...)
		b.settle(other)
		b.Clock.Turn(time.Minute)
		b.refreshAt(held[2], fixture.Start.Add(5*time.Second)) // the first finds it before the other one
		once := true
		first := &interrupted{Store: b.Store, before: func() {
			if once {
				once = false
				b.refreshAt(held[1], fixture.Start.Add(time.Second))
				if round := b.round(other); round.Started != 1 {
					t.Errorf("want the other to start one meanwhile, got %+v", round)
				}
			}
		}}
		if round := b.round(b.dispatcher(first, dispatcher.Config{Owner: "first"})); round.Started != 0 || round.Refused != 2 {
			t.Errorf("want all of the first refused, got %+v", round)
		}
		if n := len(b.runs()["t1"]); n != 2 {
			t.Errorf("want one more started, %d run", n)
		}
	})
}
