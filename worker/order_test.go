package worker

import (
	"context"
	"errors"
	"testing"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// order asks all pools of the queue for something, as an operator does.
func (r *queueFixture) order(verb string) {
	r.t.Helper()
	r.must((&store.Queue{Parts: []*store.Store{r.Store}}).Fleet().OrderPools(context.Background(), r.workers(), store.PoolOrder{Verb: verb, By: "ann"}))
}

// heard waits until the pool has given two heartbeats: the second began after the call.
func (o *observed) heard(t testing.TB) {
	t.Helper()
	for range 2 {
		check.Await(t, o.beats, "a heartbeat")
	}
}

func TestAQuietPoolFinishesWhatItHasTakesNothingNewAndKeepsItsLeaseUntilItMayGoOn(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		queue, other := observe(r), observe(r)
		p := run(t, queue, brief(), b.handle)
		r.hand(b)
		r.order(store.PoolQuiet)
		queue.heard(t)
		r.offer("n")
		second := newBench()
		q := run(t, other, brief(), second.handle)
		a := check.Await(t, second.began, "the attempt that the quiet pool leaves alone")
		failIf(t, a.UID != "n", "took %s", a.UID)
		queue.heard(t)
		failIf(t, len(r.workers()) != 2, "want both pools to keep their leases, found %q", r.workers())
		b.result <- nil
		second.result <- nil
		r.must(q.stop())
		r.offer("o")
		queue.heard(t)
		s := p.Stats()
		failIf(t, s.Taken != 1 || s.Succeeded != 1, "counters of the quiet pool: %+v", s)
		r.order("")
		a = check.Await(t, b.began, "an attempt after it may go on")
		failIf(t, a.UID != "o", "took %s", a.UID)
		b.result <- nil
		r.must(p.stop())
		failIf(t, len(r.standing()) > 0, "left behind: entries %q", r.standing())
	})
}

func TestAPoolThatIsStoppedEndsAsOnASignalAndLeavesNothingBehind(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		config := quick() // its heartbeat leaves a busy Redis the time to hear that the pool has left
		config.Grace = -1
		p := run(t, r, config, b.handle)
		r.hand(b)
		r.order(store.PoolStop)
		cause := check.Await(t, b.causes, "the end of the context")
		failIf(t, !errors.Is(cause, ErrShutdown), "cause: %v, want ErrShutdown", cause)
		r.must(p.wait())
		equal(t, []model.MessageType{model.MessageStarted, model.MessageInterrupted}, kinds(r.left()))
		failIf(t, len(r.workers())+len(r.standing()) > 0, "left behind: workers %q, entries %q", r.workers(), r.standing())
	})
}

// A part in which the pool has taken nothing yet, as another one fills all slots, does not know it.
func TestAnOrderReachesAllPartsWhetherTheyKnowThePoolOrHaveForgottenIt(t *testing.T) {
	server := testkit.Miniredis(t)
	first, b := newFixture(t, server), newBench()
	whole, err := store.New(&redis.Clients{Read: first.redis, Write: first.redis, Block: first.redis}, store.Config{Queue: "second"})
	must(t, err)
	second := &queueFixture{Part: fixture.Whole(whole), t: t, redis: first.redis}
	config, queue := brief(), observe(first)
	config.Concurrency = 1
	// The second part does not answer until the first has heard of the order.
	later := &faulty{Queue: second, take: func(store.TakeRequest) (store.Taken, error) { return store.Taken{}, errBroken }}
	pool, err := NewForParts([]Queue{queue, later}, b.handle, config)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := async(func() { err = pool.Run(ctx) })
	check.Await(t, queue.beats, "a heartbeat of the first part")
	name := first.workers()
	both := &store.Queue{Parts: []*store.Store{first.Store, second.Store}}
	must(t, both.Fleet().OrderPools(t.Context(), name, store.PoolOrder{Verb: store.PoolQuiet, By: "ann"}))
	queue.heard(t)
	second.offer("m")
	later.change(func() { later.take = nil })
	check.Eventually(t, "the second part knows it", func() bool { return len(second.workers()) > 0 })
	equal(t, name, second.workers())
	must(t, first.redis.ZRem(t.Context(), first.Keys.Workers, name[0]).Err())
	first.offer("n")
	check.Eventually(t, "the first part has named it anew", func() bool { return len(first.workers()) > 0 })
	again := first.workers()[0]
	failIf(t, again == name[0] || store.PoolName(again) != name[0], "the pool %s goes on as %s", name[0], again)
	for _, part := range both.Parts {
		failIf(t, first.redis.LLen(t.Context(), part.Keys.Input).Val() != 1, "a part of a quiet pool took an attempt")
	}
	cancel()
	<-ended
	must(t, err)
}
