package dispatcher_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
)

const sixAMinute = `{"timeout":"1h","retries":[],"limits":[{"key":"{host(input_url)}","rate":"6/m"}]}`

// begun are when the attempts of models were started, in seconds since the world began, in that order.
func (b *bundle) begun(uids ...string) (at []string) {
	b.t.Helper()
	for _, uid := range uids {
		if since := b.Model(uid)["started_at"]; since != "" {
			began, err := time.Parse(time.RFC3339, since)
			must(b.t, err)
			at = append(at, fmt.Sprintf("%05.1f %s", began.Sub(fixture.Start).Seconds(), uid))
		}
	}
	slices.Sort(at)
	return at
}

func TestAnOutageEndsInNoBurstAndWhoHoldsASlotStartsInItsTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
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
		equal(t, want, b.begun(append(held, newcomers...)...))
		left := b.Scores(b.Store.Keys.Gates)
		failIf(t, len(left) > 0, "still looked at: %v", left)
	})
}

func TestAModelOverItsRateWaitsForASlotThatNobodyElseGets(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(`{"timeout":"10m","retries":[],"limits":[{"key":"{host(input_url)}","rate":"6/m"}]}`, uidsOf("t1", 5)...)
		b.settle(d)
		want := map[string]int64{}
		for i, uid := range uidsOf("t1", 5)[1:] {
			want[uid] = fixture.Start.Add(time.Duration(i+1) * 10 * time.Second).UnixMilli()
		}
		equal(t, want, b.Scores(b.Store.Keys.Due))
		for started := 1; started <= 5; started++ {
			b.running(started, "t1")
			b.Clock.Turn(10 * time.Second)
			b.settle(d)
		}
	})
}

func TestALittleDelayOfARoundDelaysNothingBehindIt(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		b.fleet(sixAMinute, uidsOf("t1", 3)...)
		b.settle(d)
		b.Clock.Turn(10*time.Second + 60*time.Millisecond)
		b.settle(d)
		b.Clock.Turn(10*time.Second - 60*time.Millisecond)
		total := b.settle(d)
		failIf(t, total.Started != 1 || total.Parked != 0, "want it started at its slot, got %+v", total)
	})
}

func TestARetryAfterOfAStatus429LetsNobodyStartAtASlotBeforeThat(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		uids := uidsOf("t1", 4)
		b.fleet(sixAMinute, uids...)
		b.settle(d)
		b.failWith(policy.Failure{ErrorType: "http_429", RetryAfter: 15 * time.Second}, uids[0])
		b.fleet(sixAMinute, "t1/a0")
		for range 50 {
			b.settle(d)
			b.Clock.Turn(time.Second)
		}
		equal(t, []string{"015.0 t1/m01", "025.0 t1/m02", "035.0 t1/m03", "045.0 t1/a0"}, b.begun(append(uids, "t1/a0")...))
	})
}

func TestTwoDispatchersStartNoTwoOfAKeyWithinAnInterval(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
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
				round := b.round(other)
				failIf(t, round.Started != 1, "want the other to start one meanwhile, got %+v", round)
			}
		}}
		round := b.round(b.dispatcher(first, dispatcher.Config{Owner: "first"}))
		failIf(t, round.Started != 0 || round.Refused != 2, "want all of the first refused, got %+v", round)
		b.running(2, "t1")
	})
}

// A retry of 07:01 is held up until its window, which ends at 08:00, has closed.
func TestARetryStartsInsideItsWindowWhoeverHeldItUp(t *testing.T) {
	const usual = `{"timeout":"5h","retries":["1m","1m"],"give_up_after":"3h","retry_window":"FREQ=DAILY;BYHOUR=7"`
	for name, test := range map[string]struct {
		policy string
		uids   []string
		holdUp func(b *bundle) // before the retry is due
		letGo  func(b *bundle) // after the window has closed
	}{
		"a dispatcher that was away": {policy: usual + `}`},
		"a hold":                     {policy: usual + `}`, holdUp: func(b *bundle) { b.hold("h1", "", b.now().Add(70*time.Minute)) }},
		"a limit": {
			policy: usual + `,"limits":[{"key":"{host(input_url)}","running":1}]}`,
			uids:   []string{"t1/m01"}, // which runs meanwhile
			letGo:  func(b *bundle) { b.finish("t1/m01") },
		},
		"a circuit whose probe it is": {
			policy: usual + `,"circuit":{"key":"{host(input_url)}","open_after":"9 of 10","probe":"1h"}}`,
			holdUp: func(b *bundle) {
				must(b.t, check.Only(flow.Of(b.Store).OpenCircuit(b.t.Context(), "host=t1", "ann", "", b.now().Add(time.Hour), b.now())))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
				b.fleet(test.policy, append([]string{"t1/m00"}, test.uids...)...)
				b.settle(d)
				b.failWith(policy.Failure{Reason: "503"}, "t1/m00")
				if test.holdUp != nil || test.uids != nil {
					b.settle(d)
					if test.holdUp != nil {
						test.holdUp(b)
					}
					b.Clock.Turn(time.Minute)
					b.settle(d)
				}
				b.Clock.Turn(71 * time.Minute)
				if test.letGo != nil {
					test.letGo(b)
				}
				b.settle(d)
				opens := fixture.Start.AddDate(0, 0, 1)
				if hash := b.Model("t1/m00"); hash["attempt_uid"] != "" || hash["refresh_at"] != opens.Format("2006-01-02T15:04:05.000Z") || hash["refresh_for"] != "retry" {
					t.Errorf("want the retry waiting for %s, got %v", opens, hash)
				}
				b.Clock.Turn(opens.Sub(b.now()))
				b.settle(d)
				b.Clock.Turn(time.Second)
				b.settle(d)
				hash := b.Model("t1/m00")
				failIf(t, hash["attempt_no"] != "2", "want the second attempt when the window opens, got %v", hash)
			})
		})
	}
}
