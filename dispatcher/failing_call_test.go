package dispatcher_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
)

// A round of which a call fails says so; what it has left undone the next rounds do, and nothing twice.
func TestARoundOfWhichACallFailsIsToldAndTheNextRoundsDoTheRest(t *testing.T) {
	const policy = `{"timeout":"1m","retries":[],"limits":[{"key":"{host(input_url)}","running":1}]}`
	for n := 1; ; n++ {
		b := setup(t, testkit.Miniredis(t))
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.fleet(policy, append(uidsOf("t1", 3), uidsOf("t2", 2)...)...)
		b.hold("h1", "tenant=t2", time.Time{})
		b.settle(d) // one of t1 runs, the others of it wait for its place; those of t2 are held
		b.finish(b.runs()["t1"]...)
		b.release("h1", 0)
		b.fleet(policy, uidsOf("t3", 2)...)
		fault := new(testkit.Fault)
		b.Intercept(fault)
		fault.Arm(n)
		_, err := d.RunOnce(t.Context())
		struck := fault.Struck()
		fault.Arm(0)
		if struck != (err != nil) {
			t.Fatalf("call %d: failed: %v, told: %v", n, struck, err)
		}
		ran := 1
		for range 10 { // gates that a dispatcher has not looked at to the end are looked at some seconds later
			for b.settle(d); len(b.runs()) > 0; b.settle(d) {
				for host, uids := range b.runs() {
					if len(uids) > 1 {
						t.Fatalf("call %d: expected one attempt of %s at a time, found %v", n, host, uids)
					}
					ran++
					b.finish(uids...)
				}
			}
			b.Clock.Turn(time.Second)
		}
		failIf(t, ran != 7, "call %d: expected each of 7 models to run once, found %d runs", n, ran)
		if !struck {
			failIf(t, n < 6, "expected more calls than %d", n)
			return
		}
	}
}
