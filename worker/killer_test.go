package worker

import (
	"fmt"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

// offerKiller queues an attempt over which workers have died.
func (r *queueFixture) offerKiller(uid string, deaths int) {
	r.t.Helper()
	r.set(uid, "attempt_uid", uid+"-1")
	r.queue(fmt.Sprintf(`{"big_table_uid":%q,"refresh_attempt_uid":%q,"input_url":"http://x/","deaths":%d}`, uid, uid+"-1", deaths))
}

// expectNoBegin gives the pool the time of some heartbeats to begin something.
func (b *bench) expectNoBegin(t *testing.T, beats <-chan struct{}) {
	t.Helper()
	for range 3 {
		check.Await(t, beats, "a heartbeat")
	}
	failIf(t, len(b.began) > 0, "another attempt has begun")
}

func TestAnAttemptThatHasKilledWorkersIsWorkedOnAlone(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		r.offerKiller("k", 2)
		r.offer("a", "b")
		r.offerKiller("l", 3)
		r.offer("next")
		queue, config := observe(r), brief()
		config.Concurrency = 4
		p := run(t, queue, config, b.handle)
		begun := map[string]bool{}
		for range 2 {
			begun[check.Await(t, b.began, "an attempt that killed nobody").UID] = true
		}
		failIf(t, !begun["a"] || !begun["b"], "began %v, want a and b first", begun)
		for _, killer := range []struct {
			uid    string
			before int // it that have to end before it begins
			deaths int
		}{{"k", 2, 2}, {"l", 1, 3}} {
			for range killer.before {
				b.expectNoBegin(t, queue.beats)
				b.result <- nil
				r.toldOf(model.MessageSuccess)
			}
			a := check.Await(t, b.began, "the attempt that kills")
			failIf(t, a.UID != killer.uid || a.Deaths != killer.deaths || string(a.Payload) != `{"input_url":"http://x/"}`,
				"began %s with %d deaths and %s, want %s with %d", a.UID, a.Deaths, a.Payload, killer.uid, killer.deaths)
		}
		b.expectNoBegin(t, queue.beats)
		b.result <- nil
		a := check.Await(t, b.began, "an attempt after those that kill")
		failIf(t, a.UID != "next", "began %s", a.UID)
		b.result <- nil
		r.must(p.stop())
		failIf(t, len(r.standing()) > 0, "left behind: entries %q", r.standing())
	})
}

func TestOneDeathIsChance(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	r.offer("a")
	r.offerKiller("m", 1)
	config := quick()
	config.Grace = -1
	run(t, r, config, b.handle)
	check.Await(t, b.began, "an attempt")
	check.Await(t, b.began, "the other one beside it")
}

func TestAnAttemptThatWaitsToBeAloneIsHandedBackAtAStop(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		r.offerKiller("k", 2)
		r.offer("a")
		config := quick()
		config.Grace = -1
		p := run(t, r, config, b.handle)
		check.Await(t, b.began, "the other attempt")
		r.must(p.stop())
		failIf(t, len(b.began) > 0, "want the attempt that kills not begun")
		for _, m := range r.left() {
			failIf(t, m.UID == "k" && m.Type != model.MessageInterrupted, "told %s of the attempt that kills", m.Type)
		}
		failIf(t, len(ends(r.left())) != 2 || len(r.standing()) > 0, "told %+v, left %q", r.left(), r.standing())
	})
}

func TestAnAttemptThatIsSupersededWhileItWaitsToBeAloneDoesNotBegin(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	r.offerKiller("k", 2)
	r.offer("a")
	p := run(t, r, quick(), b.handle)
	check.Await(t, b.began, "the other attempt")
	r.set("k", "attempt_uid", "newer")
	b.result <- nil
	check.Eventually(t, "its entry is removed", func() bool { return len(r.standing()) == 0 })
	r.must(p.stop())
	failIf(t, len(b.began) > 0 || p.Stats().Stale != 1, "began %d, counters %+v", len(b.began), p.Stats())
}
