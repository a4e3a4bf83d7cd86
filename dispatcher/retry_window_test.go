package dispatcher_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
)

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
				if _, err := b.Store.Fleet().OpenCircuit(b.t.Context(), "host=t1", "ann", "", b.now().Add(time.Hour), b.now()); err != nil {
					b.t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				d := b.dispatcher(b.Store, dispatcher.Config{})
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
				if hash := b.Model("t1/m00"); hash["attempt_no"] != "2" {
					t.Errorf("want the second attempt when the window opens, got %v", hash)
				}
			})
		})
	}
}
