package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// brief is quick with a lease that a test can wait for.
func brief() Config {
	config := quick()
	config.Lease, config.Heartbeat = 400*time.Millisecond, 50*time.Millisecond
	return config
}

// takeAs takes all entries under a name and does nothing more, as a pool does that dies.
func (r *queueFixture) takeAs(owner string, most int) {
	r.t.Helper()
	taken, err := r.Take(context.Background(), store.TakeRequest{Owner: owner, New: true, Most: most})
	r.must(err)
	stopIf(r.t, len(taken.Entries) != most, "%s took %q, want %d", owner, taken.Entries, most)
}

func (r *queueFixture) workers() []string {
	r.t.Helper()
	owners, err := r.redis.ZRange(context.Background(), r.Keys.Workers, 0, -1).Result()
	r.must(err)
	return owners
}

func (r *queueFixture) standing() []string {
	r.t.Helper()
	var all []string
	lists, err := r.redis.Keys(context.Background(), r.Keys.Taken("*")).Result()
	r.must(err)
	for _, key := range lists {
		all = append(all, r.redis.LRange(context.Background(), key, 0, -1).Val()...)
	}
	return all
}

// standstill is a queueFixture whose clock moves only when the test moves it: no lease runs out because the machine is busy.
func standstill(t testing.TB, server *testkit.Server) (*queueFixture, *fixture.Clock) {
	t.Helper()
	r, clock := newFixture(t, server), &fixture.Clock{}
	clock.Set(fixture.Start)
	store, err := store.New(&redis.Clients{Read: r.redis, Write: r.redis, Block: r.redis}, store.Config{Clock: clock.Now})
	r.must(err)
	r.Part = fixture.Whole(store)
	return r, clock
}

// observed reports a pool's heartbeats to a waiting test. The pool waits for the replies, however busy the machine is.
type observed struct {
	Queue
	beats chan struct{}
}

func observe(queue Queue) *observed { return &observed{queue, make(chan struct{})} }

func (o *observed) Heartbeat(ctx context.Context, owner string) (store.Taken, error) {
	taken, err := o.Queue.Heartbeat(context.WithoutCancel(ctx), owner)
	select {
	case o.beats <- struct{}{}:
	default:
	}
	return taken, err
}

// requeue does what a dispatcher does when the clock has run evenly.
func (r *queueFixture) requeue(lease time.Duration) (attempts int) {
	r.t.Helper()
	now, err := r.Now(r.t.Context())
	r.must(err)
	expired, err := r.RequeueExpired(r.t.Context(), now, now, lease)
	r.must(err)
	for _, worker := range expired {
		attempts += worker.Attempts
	}
	return attempts
}

func TestAWorkerThatIsBusyInAllItsSlotsKeepsItsAttempts(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		r, clock := standstill(t, server)
		b, queue := newBench(), observe(r)
		config := brief()
		config.Concurrency = 1
		busy := run(t, queue, config, b.handle)
		r.hand(b)
		for range 20 { // more than two leases
			clock.Turn(config.Lease / 8)
			for range 2 { // the first may have read the clock before it was turned
				check.Await(t, queue.beats, "a sign of life")
			}
			stopIf(t, r.requeue(config.Lease) > 0, "requeued what a busy pool has")
		}
		b.result <- nil
		r.toldOf(model.MessageSuccess)
		r.must(busy.stop())
	})
}

func TestAWorkerThatWasCutOffStopsWhenItLearnsThatOthersHaveItsAttempts(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		r, clock := standstill(t, server)
		b := newBench()
		cut := &faulty{Queue: r, beat: func(string) (store.Taken, error) { return store.Taken{}, errBroken }}
		config := brief()
		config.Concurrency = 1
		lost := run(t, cut, config, b.handle)
		r.hand(b)
		clock.Turn(config.Lease)
		count := r.requeue(config.Lease)
		stopIf(t, count != 1, "requeued %d attempts, want 1", count)
		successor := newBench()
		other := run(t, r, config, successor.handle)
		a := check.Await(t, successor.began, "the attempt, by another")
		failIf(t, a.AttemptUID != "m-1", "requeued %s", a.AttemptUID)
		cut.change(func() { cut.beat = nil })
		cause := check.Await(t, b.causes, "the end of the context")
		failIf(t, !errors.Is(cause, ErrRequeued) || !errors.Is(cause, ErrFenceLost), "cause: %v, want ErrRequeued", cause)
		successor.result <- nil
		r.toldOf(model.MessageSuccess)
		r.offer("n", "o")
		check.Await(t, b.began, "an attempt under its new name")
		check.Await(t, successor.began, "an attempt of the other")
		b.result <- nil
		successor.result <- nil
		r.must(errors.Join(lost.stop(), other.stop()))
		got := ends(r.left())
		failIf(t, len(got) != 2 || len(r.standing()) > 0, "told %v, entries left %q", got, r.standing())
		s := lost.Stats()
		failIf(t, s.Cancelled != 1 || s.Succeeded != 1, "counters: %+v, want 1 cancelled, 1 succeeded", s)
	})
}

func TestOfAllThatStandsInTheListOnlyTheUnknownIsFresh(t *testing.T) {
	l := newTakenList(store.NewOwner(nil))
	receive := func(most int, whole bool, entries ...string) []string {
		taking := l.ask(most)
		return l.receive(taking, store.Taken{Entries: entries, Whole: whole})
	}
	for _, step := range []struct {
		most    int
		whole   bool
		entries []string
		want    []string
		known   int
	}{
		{2, false, []string{"a", "b"}, []string{"a", "b"}, 2},
		{2, true, []string{"a", "b"}, nil, 2},
		{1, true, []string{"a", "b", "c", "d"}, []string{"c"}, 3}, // no more than there is room for
		{1, true, []string{"a", "b", "c", "d"}, []string{"d"}, 4},
		{1, false, []string{"a"}, []string{"a"}, 5}, // somebody has pushed it twice
		{1, true, []string{"a", "b", "c", "d", "a"}, nil, 5},
	} {
		got := receive(step.most, step.whole, step.entries...)
		diff := cmp.Diff(step.want, got)
		failIf(t, diff != "" || l.ask(1).Known != step.known, "%+v: knows of %d, fresh (-want +got):\n%s", step, l.ask(1).Known, diff)
	}
	owner, _ := l.name()
	l.release([]message{{owner: owner, entry: "a", ends: true}, {owner: owner, entry: "x", ends: true}, {owner: "other", entry: "b", ends: true}, {owner: owner, entry: "b"}})
	known := l.ask(1).Known
	failIf(t, known != 4, "knows of %d, want 4 when one was answered", known)
	l.doubted()
	known = l.ask(1).Known
	failIf(t, known != -1, "knows of %d after a lost reply, want -1", known)
}

func TestAReplyUnderAnOldNameIsNotWorkedOn(t *testing.T) {
	l := newTakenList(store.NewOwner(nil))
	asked := l.ask(2)
	first, second := l.forget(asked.Owner), l.forget(asked.Owner)
	failIf(t, !first || second, "lost %v, then %v; want once", first, second)
	fresh := l.receive(asked, store.Taken{Entries: []string{"a"}})
	failIf(t, fresh != nil, "fresh %q, want none", fresh)
	next := l.ask(2)
	failIf(t, next.Owner == asked.Owner || !next.New || next.Known != 0, "next %+v, want a new name", next)
}

func TestAnEntryThatWasAnsweredWhileTheWholeListWasOnItsWayIsNotNew(t *testing.T) {
	l := newTakenList(store.NewOwner(nil))
	asked := l.ask(2)
	fresh := l.receive(asked, store.Taken{Entries: []string{"a"}})
	stopIf(t, len(fresh) != 1, "want it new, got %q", fresh)
	l.doubted()
	asked = l.ask(2)
	l.release([]message{{owner: asked.Owner, entry: "a", ends: true}})
	fresh = l.receive(asked, store.Taken{Entries: []string{"a", "b"}, Whole: true})
	failIf(t, len(fresh) != 1 || fresh[0] != "b", "want only b new, got %q", fresh)
	asked = l.ask(2)
	fresh = l.receive(asked, store.Taken{Entries: []string{"b", "a"}, Whole: true})
	failIf(t, len(fresh) != 1 || fresh[0] != "a", "want a that came again new, got %q", fresh)
}
