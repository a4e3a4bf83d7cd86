package dispatcher_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

const fourAHost = `{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":4}]}`

func TestAFreedKeyTakesItsNextParkedModelAtOnceUntilNoneIsLeft(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		uids := uidsOf("t1", 20)
		b.fleet(fourAHost, uids...)
		b.settle(d)
		done := 0
		for done < len(uids) {
			running := b.runs()["t1"]
			stopIf(t, len(running) == 0 || len(running) > 4 || done+4 <= len(uids) && len(running) != 4, "%d run when %d are done", len(running), done)
			b.finish(running[0]) // one at a time: each frees one place
			done++
			b.settle(d)
		}
		for _, key := range []string{b.Store.Keys.Parked, b.Store.Keys.Blockers, b.Store.Keys.Limit("host=t1"), b.Store.Keys.ParkedBy("limit:host=t1")} {
			left := b.Scores(key)
			failIf(t, len(left) > 0, "%s still holds %v", key, left)
		}
	})
}

func TestModelsThatAHandWantsAtOnceWaitForTheirKeysByThePage(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, _ *dispatcher.Dispatcher) {
		const hosts, each, page = 10, 30, 100
		var uids []string
		for host := range hosts {
			uids = append(uids, uidsOf(fmt.Sprintf("t%d", host), each)...)
		}
		b.fleet(fourAHost, uids...)
		b.decide(func(r *store.Record, now time.Time) model.Decision { decision, _ := r.Run(false, now); return decision }, uids...)
		failIf(t, len(b.Scores(b.Store.Keys.Urgent)) != len(uids), "want all urgent, got %d", len(b.Scores(b.Store.Keys.Urgent)))
		d, rounds := b.dispatcher(b.Store, dispatcher.Config{Batch: page, MaxQueued: 50}), 0
		for len(b.Scores(b.Store.Keys.Urgent)) > 0 {
			b.round(d)
			rounds++
			stopIf(t, rounds > len(uids)/page+2, "want %d models decided by the page of %d, got %d left after %d rounds", len(uids), page, len(b.Scores(b.Store.Keys.Urgent)), rounds)
		}
		for host, running := range b.runs() {
			failIf(t, len(running) != 4, "%s: want four running, got %v", host, running)
		}
	})
}

func TestAnAttemptTakesAllOfItsKeysOrNone(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(`{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":2},{"key":"{label.tenant}","running":1}]}`, uidsOf("t1", 3)...)
		b.settle(d)
		host, tenant := b.Scores(b.Store.Keys.Limit("host=t1")), b.Scores(b.Store.Keys.Limit("tenant=t1"))
		failIf(t, len(host) != 1 || len(tenant) != 1, "want one of each key taken, got %v and %v", host, tenant)
	})
}

func TestTwoDispatchersTogetherStartNoMoreThanTheLimit(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		other := b.dispatcher(b.Store, dispatcher.Config{Owner: "a", Batch: 4, NewUID: func() string { return fmt.Sprint("other-", time.Now().UnixNano()) }})
		b.put("t0/plain")
		b.round(other) // as no key counts this model, it reads the oldest from now on
		b.finish("t0/plain")
		b.Clock.Turn(time.Minute) // nobody knows it any more
		b.fleet(fourAHost, uidsOf("t1", 10)...)
		once := true
		first := &interrupted{Store: b.Store, before: func() {
			if once {
				once = false
				for i, uid := range []string{"t1/x0", "t1/x1", "t1/x2", "t1/x3"} { // due before those that the first has read
					b.fleet(fourAHost, uid)
					b.refreshAt(uid, fixture.Start.Add(time.Duration(i-9)*time.Second))
				}
				round := b.round(other)
				failIf(t, round.Started != 4, "want the other to start four meanwhile, got %+v", round)
			}
		}}
		b.round(b.dispatcher(first, dispatcher.Config{Owner: "first"}))
		b.settle(other)
		equal(t, []string{"t1/x0", "t1/x1", "t1/x2", "t1/x3"}, b.runs()["t1"])
	})
}

func TestWhatDiesFreesItsKeyAtItsDeadline(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(fourAHost, uidsOf("t1", 6)...)
		b.settle(d)
		b.Redis.Del(context.Background(), b.Store.Keys.Input) // workers have them, and die
		b.Clock.Turn(time.Minute)
		b.settle(d)
		equal(t, []string{"t1/m04", "t1/m05"}, b.runs()["t1"])
	})
}

// TestAnAttemptHoldsItsSlotUntilItEndsThoughItsDeadlineHasPassed lets a worker that never says `started` take an attempt after it has waited in line:
// the round that finds its deadline passed gives it a new one, and another model of its key becomes due in the same round.
func TestAnAttemptHoldsItsSlotUntilItEndsThoughItsDeadlineHasPassed(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		const oneAHost = `{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":1}]}`
		b.fleet(oneAHost, "t1/late")
		b.settle(d)
		b.Clock.Turn(30 * time.Second)
		b.round(d) // it still waits in line
		b.Take()
		b.Clock.Turn(31 * time.Second)
		b.fleet(oneAHost, "t1/next")
		round := b.round(d)
		failIf(t, round.Taken != 1 || round.Started != 0, "want the late one told as taken and nothing started, got %+v", round)
		b.settle(d)
		uses, err := flow.Of(b.Store).LimitUses(t.Context(), "host=t1")
		failIf(t, err != nil || len(uses) != 1 || uses[0].Running != 1, "want one counted, got %+v, %v", uses, err)
		equal(t, []string{"t1/late"}, b.runs()["t1"])
		b.finish("t1/late")
		b.settle(d)
		equal(t, []string{"t1/next"}, b.runs()["t1"])
	})
}

// TestASlotThatNoAttemptHoldsIsFreedAtItsDeadline lets somebody write into the key of a model that runs, or delete it.
func TestASlotThatNoAttemptHoldsIsFreedAtItsDeadline(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(fourAHost, uidsOf("t1", 6)...)
		b.settle(d)
		b.Redis.Del(t.Context(), b.Store.Keys.Input) // workers have them
		b.Redis.Del(t.Context(), b.Store.Keys.Model("t1/m00"), b.Store.Keys.Model("t1/m01"), b.Store.Keys.Model("t1/m02"), b.Store.Keys.Model("t1/m03"))
		b.Redis.Set(t.Context(), b.Store.Keys.Model("t1/m01"), "text", 0)
		b.Clock.Turn(59 * time.Second)
		b.settle(d)
		waiting := b.Scores(b.Store.Keys.ParkedBy("limit:host=t1"))
		failIf(t, len(waiting) != 2, "want two waiting before the deadline, got %v", waiting)
		b.Clock.Turn(31 * time.Second) // dispatchers look at a full key from time to time
		b.settle(d)
		equal(t, []string{"t1/m04", "t1/m05"}, slices.Sorted(maps.Keys(b.Scores(b.Store.Keys.Limit("host=t1")))))
	})
}

func TestALimitThatHasEndedIsForgottenButNotOneThatWasSetAnewMeanwhile(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		set := func(name string, length time.Duration) {
			limit := &model.Limit{Name: name, Running: 1, Since: b.now()}
			if length > 0 {
				limit.Until = b.now().Add(length)
			}
			must(t, flow.Of(b.Store).PutLimit(b.t.Context(), limit, b.now()))
		}
		names := []string{"host=t1", "host=t2", "{label.tenant}", "host=t3"}
		for i, name := range names {
			set(name, time.Duration(3-i)*30*time.Second) // the last one has no end
		}
		b.fleet(fourAHost, uidsOf("t2", 9)...)
		expect := func(want ...string) {
			t.Helper()
			b.settle(d)
			diff := cmp.Diff(want, slices.Sorted(slices.Values(b.Redis.HKeys(b.t.Context(), b.Store.Keys.Limits).Val())))
			failIf(t, diff != "", "after %s (-want +got):\n%s", b.now().Sub(fixture.Start), diff)
		}
		expect("host=t1", "host=t2", "host=t3", "{label.tenant}")
		b.Clock.Turn(30 * time.Second)
		expect("host=t1", "host=t2", "host=t3")
		b.Clock.Turn(30 * time.Second) // and four may run at once
		expect("host=t1", "host=t3")
		b.running(4, "t2")
		b.Clock.Turn(30 * time.Second)
		due, err := b.Store.ReadDue(b.t.Context(), store.DueRequest{Limit: 1})
		stopIf(t, err != nil || len(due.Ended) != 1, "want one that has ended, got %v, %v", due.Ended, err)
		set("host=t1", time.Minute)
		must(t, flow.Of(b.Store).ForgetLimits(b.t.Context(), due.Ended))
		expect("host=t1", "host=t3")
	})
}

func TestAPageOfParkedModelsHidesNoOthers(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Batch: 10, MaxQueued: 5})
		b.fleet(`{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":1}]}`, append(uidsOf("t1", 40), uidsOf("t2", 1)...)...)
		b.settle(d)
		equal(t, map[string]int{"t1": 1, "t2": 1}, counts(b.runs()))
	})
}

// TestAHostThatNeverAnswersDelaysNoOtherByATick lets rounds follow until a dispatcher would sleep, which it does for a tick at most.
func TestAHostThatNeverAnswersDelaysNoOtherByATick(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		d := b.dispatcher(b.Store, dispatcher.Config{Batch: 10, MaxQueued: 20})
		b.fleet(fourAHost, slices.Concat(uidsOf("t0", 40), uidsOf("t1", 20), uidsOf("t2", 20), uidsOf("t3", 20))...)
		b.settle(d)
		slow := b.runs()["t0"]
		for left := 20; left > 0; left -= 4 {
			running := b.runs()
			diff := cmp.Diff(map[string]int{"t0": 4, "t1": 4, "t2": 4, "t3": 4}, counts(running))
			stopIf(t, diff != "", "with %d of each host left: %s", left, diff)
			b.finish(slices.Concat(running["t1"], running["t2"], running["t3"])...)
			b.settle(d)
		}
		equal(t, map[string][]string{"t0": slow}, b.runs())
		parked := b.Scores(b.Store.Keys.ParkedBy("limit:host=t0"))
		failIf(t, len(parked) != 36, "want 36 of the host parked, got %d", len(parked))
	})
}

func TestARetryAfterOfAStatus429ClosesTheKeyForAll(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(`{"timeout":"10m","retries":["0s"],"limits":[{"key":"{host(input_url)}","running":1}]}`, append(uidsOf("t1", 3), uidsOf("t2", 1)...)...)
		b.settle(d)
		b.failWith(policy.Failure{ErrorType: "http_429", RetryAfter: 5 * time.Minute}, "t1/m00")
		b.settle(d)
		equal(t, map[string]int{"t2": 1}, counts(b.runs()))
		b.Clock.Turn(5 * time.Minute)
		b.settle(d)
		b.running(1, "t1")
	})
}

// closedFor is one model that runs on each of two hosts. The first answers 429 and asks to be left alone.
func closedFor(b *bundle, d *dispatcher.Dispatcher, wait time.Duration, limit string) {
	b.fleet(`{"timeout":"10m","retries":["0s"],"limits":[{"key":"{host(input_url)}",`+limit+`}]}`, append(uidsOf("t1", 3), uidsOf("t2", 1)...)...)
	b.settle(d)
	b.failWith(policy.Failure{ErrorType: "http_429", RetryAfter: wait, ByServer: true}, "t1/m00")
	b.settle(d)
}

func TestAnAbsurdRetryAfterClosesItsKeyForAnHour(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		closedFor(b, d, 365*24*time.Hour, `"running":1`)
		uses, err := flow.Of(b.Store).LimitUses(t.Context(), "host=t1")
		stopIf(t, err != nil || len(uses) != 1, "got %+v, %v", uses, err)
		if until := b.now().Add(time.Hour); !uses[0].ClosedUntil.Equal(until) || uses[0].ClosedBy != "t1/m00 (http_429)" || uses[0].Parked != 2 {
			t.Errorf("got %+v, want it closed until %s by t1/m00 (http_429), and the two others parked", uses[0], until)
		}
		b.Clock.Turn(time.Hour)
		b.settle(d)
		b.running(1, "t1")
		uses, err = flow.Of(b.Store).LimitUses(t.Context(), "host=t1")
		failIf(t, err != nil || !uses[0].ClosedUntil.IsZero() || uses[0].ClosedBy != "", "got %+v, %v, want it open", uses, err)
	})
}

func TestAKeyThatIsOpenedByHandLetsItsModelsStartAsItsLimitAllows(t *testing.T) {
	for name, limit := range map[string]string{"running": `"running":1`, "rate": `"rate":"6/m"`} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				open := func(want bool) {
					t.Helper()
					got, err := flow.Of(b.Store).OpenLimit(t.Context(), "host=t1", b.now())
					failIf(t, got != want || err != nil, "opened: got %t, %v, want %t", got, err, want)
				}
				b.fleet(fourAHost, "t1/m00")
				open(false)
				closedFor(b, d, time.Hour, limit)
				b.Clock.Turn(time.Minute)
				b.settle(d)
				equal(t, map[string]int{"t2": 1}, counts(b.runs()))
				open(true)
				open(false)
				b.settle(d)
				b.running(1, "t1")
				if name == "rate" {
					b.Clock.Turn(10 * time.Second)
					b.settle(d)
					b.running(2, "t1")
				}
			})
		})
	}
}

// opens opens host=t1, and fails the test if that was open.
func opens(b *bundle) {
	opened, err := flow.Of(b.Store).OpenLimit(b.t.Context(), "host=t1", b.now())
	stopIf(b.t, !opened || err != nil, "opened: got %t, %v, want true", opened, err)
}

func TestOpeningAKeyKeepsThePaceOfItsRate(t *testing.T) {
	for rate, pace := range map[string]time.Duration{"1/m": time.Minute, "1/2h": 2 * time.Hour} {
		t.Run(rate, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				limited := `{"timeout":"9h","retries":["0s"],"limits":[{"key":"{host(input_url)}","rate":"` + rate + `"}]}`
				closedBy := func(want string) {
					t.Helper()
					uses, err := flow.Of(b.Store).LimitUses(t.Context(), "host=t1")
					stopIf(t, err != nil || len(uses) != 1, "got %+v, %v", uses, err)
					failIf(t, uses[0].ClosedBy != want, "got it closed by the answer to %q, want %q", uses[0].ClosedBy, want)
				}
				b.fleet(limited, "t1/m00")
				b.settle(d)
				closedBy("")
				b.Clock.Turn(pace * 3 / 4)
				b.failWith(policy.Failure{ErrorType: "http_429", RetryAfter: time.Hour, ByServer: true}, "t1/m00")
				b.settle(d)
				closedBy("t1/m00 (http_429)")
				opens(b)
				b.fleet(limited, "t1/m01", "t1/m02")
				for want := range 2 {
					b.Clock.Turn(pace/4 - time.Millisecond)
					b.settle(d)
					failIf(t, len(b.runs()["t1"]) != want, "a moment before: got %v that run, want %d", b.runs()["t1"], want)
					b.Clock.Turn(time.Millisecond)
					b.settle(d)
					failIf(t, len(b.runs()["t1"]) != want+1, "at the pace: got %v that run, want %d", b.runs()["t1"], want+1)
					b.Clock.Turn(pace * 3 / 4)
				}
			})
		})
	}
}

func TestALimitThatIsSetAtRunTimeGoesBeforeThatOfThePolicyUntilItEnds(t *testing.T) {
	for name, test := range map[string]struct {
		policy        string
		during, after map[string]int
	}{
		"host=t1":        {fourAHost, map[string]int{"t1": 1, "t2": 4}, map[string]int{"t1": 4, "t2": 4}},
		"{label.tenant}": {`{"timeout":"1m","retries":[]}`, map[string]int{"t1": 1, "t2": 1}, map[string]int{"t1": 9, "t2": 9}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				limit := &model.Limit{Name: name, Running: 1, Since: b.now(), Until: b.now().Add(30 * time.Second)}
				must(t, flow.Of(b.Store).PutLimit(b.t.Context(), limit, b.now()))
				b.fleet(test.policy, append(uidsOf("t1", 9), uidsOf("t2", 9)...)...)
				b.settle(d)
				equal(t, test.during, counts(b.runs()))
				b.Clock.Turn(30 * time.Second)
				b.settle(d)
				equal(t, test.after, counts(b.runs()))
			})
		})
	}
}
