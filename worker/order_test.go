package worker

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// order asks all pools of the queue for something, as an operator does.
func (r *queueFixture) order(verb string) {
	r.t.Helper()
	for _, owner := range r.workers() {
		_, err := r.Fleet().OrderPool(context.Background(), owner, store.PoolOrder{Verb: verb, By: "ann"}, r.now())
		r.must(err)
	}
}

func (r *queueFixture) orders() map[string]string {
	r.t.Helper()
	all, err := r.redis.HGetAll(context.Background(), r.Keys.Orders).Result()
	r.must(err)
	return all
}

// heard waits until the pool has given two heartbeats: the second began after the call.
func (o *observed) heard(t testing.TB) {
	t.Helper()
	for range 2 {
		testkit.Await(t, o.beats, "a heartbeat")
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
		a := testkit.Await(t, second.began, "the attempt that the quiet pool leaves alone")
		failIf(t, a.UID != "n", "took %s", a.UID)
		for range 2 { // whole leases were looked at
			expired := testkit.Await(t, other.looks, "a look for dead pools")
			failIf(t, len(expired) > 0, "found expired: %v", expired)
		}
		b.result <- nil
		second.result <- nil
		r.must(q.stop())
		r.offer("o")
		queue.heard(t)
		s := p.Stats()
		failIf(t, s.Taken != 1 || s.Succeeded != 1, "counters of the quiet pool: %+v", s)
		r.order("")
		a = testkit.Await(t, b.began, "an attempt after it may go on")
		failIf(t, a.UID != "o", "took %s", a.UID)
		b.result <- nil
		r.must(p.stop())
		failIf(t, len(r.orders())+len(r.standing()) > 0, "left behind: orders %v, entries %q", r.orders(), r.standing())
	})
}

func TestAPoolThatIsStoppedEndsAsOnASignalAndLeavesNothingBehind(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, b *bench) {
		config := brief()
		config.Grace = -1
		p := run(t, r, config, b.handle)
		r.hand(b)
		r.order(store.PoolStop)
		cause := testkit.Await(t, b.causes, "the end of the context")
		failIf(t, !errors.Is(cause, ErrShutdown), "cause: %v, want ErrShutdown", cause)
		r.must(p.wait())
		equal(t, []model.MessageType{model.MessageStarted, model.MessageInterrupted}, kinds(r.left()))
		failIf(t, len(r.workers())+len(r.orders())+len(r.standing()) > 0, "left behind: workers %q, orders %v, entries %q", r.workers(), r.orders(), r.standing())
	})
}

// A part that has taken nothing yet, as another one fills all slots, is asked by nobody: it hears of the order from the other.
func TestAnOrderToOnePartReachesThePartsThatHaveNoNameYet(t *testing.T) {
	server := testkit.Miniredis(t)
	first, b := newFixture(t, server), newBench()
	whole, err := store.New(&store.Clients{Read: first.redis, Write: first.redis, Block: first.redis}, store.Config{Queue: "second"})
	must(t, err)
	second := &queueFixture{Pool: whole.Pool(), t: t, redis: first.redis}
	config, queue := brief(), observe(first)
	config.Concurrency = 1
	// The second part does not answer until the first has heard of the order.
	later := &faulty{Queue: second, take: func(store.TakeRequest) (store.Taken, error) { return store.Taken{}, errBroken }}
	pool, err := NewForParts([]Queue{queue, later}, b.handle, config)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := async(func() { err = pool.Run(ctx) })
	testkit.Await(t, queue.beats, "a heartbeat of the first part")
	first.order(store.PoolQuiet)
	queue.heard(t)
	second.offer("m")
	later.change(func() { later.take = nil })
	for beats := 0; len(second.orders()) == 0; beats++ {
		stopIf(t, beats > 1000, "the second part has not heard of the order")
		testkit.Await(t, queue.beats, "a heartbeat")
	}
	names := [2][]string{first.workers(), second.workers()}
	failIf(t, !slices.Equal(names[0], names[1]), "the parts of one pool have the names %q", names)
	failIf(t, second.redis.LLen(t.Context(), second.Keys.Input).Val() != 1, "a part of a quiet pool took an attempt")
	cancel()
	<-ended
	must(t, err)
}
