package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
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

func TestWhatADeadWorkerHadTakenIsDoneByAnother(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, _ *bench) {
		r.offer("a", "b", "c")
		r.takeAs("dead", 3)
		r.offer("d")
		order := make(chan *Attempt, 10)
		config := brief()
		config.Concurrency = 1
		p := run(t, observe(r), config, func(_ context.Context, attempt *Attempt) error {
			order <- attempt
			return nil
		})
		for _, uid := range []string{"d", "a", "b", "c"} {
			a := testkit.Await(t, order, "the attempt of "+uid)
			failIf(t, a.UID != uid || a.AttemptUID != uid+"-1" || a.AttemptNo != 2, "worked on %+v, want %s as it was taken first", a, uid)
		}
		r.must(p.stop())
		s := p.Stats()
		failIf(t, s.Requeued != 3 || s.Succeeded != 4, "counters: %+v, want 3 handed back and 4 succeeded", s)
		failIf(t, len(r.workers())+len(r.standing()) > 0, "left behind: workers %q, entries %q", r.workers(), r.standing())
	})
}

// standstill is a queueFixture whose clock stands until the test turns it: no lease runs out because the machine is busy.
func standstill(t testing.TB, server *testkit.Server) (*queueFixture, *fixture.Clock) {
	t.Helper()
	r, clock := newFixture(t, server), &fixture.Clock{}
	clock.Set(fixture.Start)
	store, err := store.New(&store.Clients{Read: r.redis, Write: r.redis, Block: r.redis}, store.Config{Clock: clock.Now})
	r.must(err)
	r.Store = store
	return r, clock
}

// observed tells of a pool's heartbeats, and of the expired workers that it found, to whoever waits for that. The pool waits for the replies to what
// a test counts, however busy the machine is.
type observed struct {
	Queue
	beats chan struct{}
	looks chan []store.ExpiredWorker
}

func observe(queue Queue) *observed {
	return &observed{queue, make(chan struct{}), make(chan []store.ExpiredWorker, 1)}
}

func (o *observed) Heartbeat(ctx context.Context, owner string) (store.Taken, error) {
	taken, err := o.Queue.Heartbeat(context.WithoutCancel(ctx), owner)
	select {
	case o.beats <- struct{}{}:
	default:
	}
	return taken, err
}

func (o *observed) ExpiredWorkers(ctx context.Context, now time.Time, lease time.Duration) ([]store.ExpiredWorker, error) {
	expired, err := o.Queue.ExpiredWorkers(context.WithoutCancel(ctx), now, lease)
	select {
	case o.looks <- expired:
	default:
	}
	return expired, err
}

func (o *observed) Requeue(ctx context.Context, dead store.ExpiredWorker) (int, error) {
	return o.Queue.Requeue(context.WithoutCancel(ctx), dead)
}

func (o *observed) Leave(ctx context.Context, owner string) (int, error) {
	return o.Queue.Leave(context.WithoutCancel(ctx), owner)
}

func TestAWorkerThatIsBusyInAllItsSlotsKeepsItsAttempts(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		r, clock := standstill(t, server)
		b, queue, other := newBench(), observe(r), observe(r)
		config := brief()
		config.Concurrency = 1
		busy := run(t, queue, config, b.handle)
		r.hand(b)
		p := run(t, other, brief(), func(context.Context, *Attempt) error { return nil })
		for looked := 0; looked < 20; { // more than two leases
			clock.Turn(config.Lease / 8)
			for range 2 { // the first may have read the clock before it was turned
				testkit.Await(t, queue.beats, "a sign of life")
			}
			select {
			case expired := <-other.looks:
				looked++
				stopIf(t, len(expired) > 0, "found expired: %v", expired)
			default:
			}
		}
		b.result <- nil
		r.toldOf(model.MessageSuccess)
		r.must(errors.Join(busy.stop(), p.stop()))
		s := p.Stats()
		failIf(t, s.Requeued+s.Taken > 0, "counters of the other one: %+v", s)
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
		successor, queue := newBench(), observe(r)
		other := run(t, queue, config, successor.handle)
		for begun := false; !begun; { // only now does the clock run: later no lease ends
			select {
			case a := <-successor.began:
				begun = true
				failIf(t, a.AttemptUID != "m-1", "requeued %s", a.AttemptUID)
			case <-queue.beats:
				clock.Turn(config.Heartbeat)
			}
		}
		cut.change(func() { cut.beat = nil })
		cause := testkit.Await(t, b.causes, "the end of the context")
		failIf(t, !errors.Is(cause, ErrRequeued) || !errors.Is(cause, ErrFenceLost), "cause: %v, want ErrRequeued", cause)
		successor.result <- nil
		r.toldOf(model.MessageSuccess)
		r.offer("n", "o")
		testkit.Await(t, b.began, "an attempt under its new name")
		testkit.Await(t, successor.began, "an attempt of the other")
		b.result <- nil
		successor.result <- nil
		r.must(errors.Join(lost.stop(), other.stop()))
		got := ends(r.left())
		failIf(t, len(got) != 2 || len(r.standing()) > 0, "told %v, entries left %q", got, r.standing())
		s := lost.Stats()
		failIf(t, s.Cancelled != 1 || s.Succeeded != 1, "counters: %+v, want 1 cancelled, 1 succeeded", s)
	})
}

func TestAPauseInTheSignsOfLifeBeginsTheLeaseAnew(t *testing.T) {
	const s = time.Second
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		beats []time.Duration // since start
		want  bool
	}{
		"the first":              {[]time.Duration{0}, false},
		"not yet a lease":        {[]time.Duration{0, s, 2 * s, 3 * s, 4 * s, 5*s - 1}, false},
		"a lease":                {[]time.Duration{0, s, 2 * s, 3 * s, 4 * s, 5 * s}, true},
		"some are lost":          {[]time.Duration{0, 2 * s, 4 * s, 6 * s}, true},
		"an outage":              {[]time.Duration{0, 2 * s, 4 * s, 6 * s, 60 * s}, false},
		"soon after an outage":   {[]time.Duration{0, 60 * s, 62 * s, 64 * s}, false},
		"a lease after":          {[]time.Duration{0, 60 * s, 62 * s, 64 * s, 65 * s}, true},
		"the clock was set back": {[]time.Duration{0, 2 * s, 4 * s, 6 * s, s, 2 * s, 4 * s}, false},
		"a lease after that":     {[]time.Duration{0, 2 * s, 4 * s, 6 * s, s, 2 * s, 4 * s, 6 * s}, true},
	} {
		var h heartbeats
		var got bool
		for _, at := range test.beats {
			got = h.even(start.Add(at), 5*s)
		}
		failIf(t, got != test.want, "%s: even is %v, want %v", name, got, test.want)
	}
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

func TestWhatADeadWorkerHadTakenIsDoneByAnotherWithinTheLeaseHoweverTheClockJumps(t *testing.T) {
	config := brief()
	lease := config.Lease
	for name, test := range map[string]struct {
		jump time.Duration
		most time.Duration // on the clock, after the jump
		long bool          // run with the long tests
	}{
		"it runs on":           {0, lease, false},
		"half a lease back":    {-lease / 2, lease + lease/2, false},
		"a lease and a half":   {-lease * 3 / 2, lease, true},
		"two leases back":      {-2 * lease, lease, true},
		"an hour back":         {-time.Hour, lease, false},
		"half a lease forward": {lease / 2, lease, true},
		"an hour forward":      {time.Hour, lease, true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.long {
				long.Only(t)
			}
			testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
				r, clock := standstill(t, server)
				r.offerUntil("m", 24*time.Hour)
				r.takeAs("dead", 1)
				queue, b := observe(r), newBench()
				p := run(t, queue, config, b.handle)
				testkit.Await(t, queue.beats, "a heartbeat before the jump")
				clock.Turn(test.jump)
				for passed := time.Duration(0); ; passed += config.Heartbeat {
					for range 2 { // the first may have read the clock before it was turned
						testkit.Await(t, queue.beats, "a heartbeat")
					}
					if len(b.began) > 0 || p.Stats().Requeued > 0 {
						t.Logf("handed back %s after the jump", passed)
						break
					}
					stopIf(t, passed > test.most+2*config.Heartbeat, "not handed back %s after the jump: %v", passed, r.workers())
					clock.Turn(config.Heartbeat)
				}
				b.result <- nil
				testkit.Await(t, b.began, "the attempt of the dead worker")
				r.must(p.stop())
			})
		})
	}
}

func TestAPoolThatCannotLookForDeadOnesSaysSo(t *testing.T) {
	for _, look := range []func() ([]store.ExpiredWorker, error){
		func() ([]store.ExpiredWorker, error) { return nil, errBroken }, func() ([]store.ExpiredWorker, error) { return []store.ExpiredWorker{{Owner: "dead"}}, nil },
	} {
		pool, err := New(&faulty{Queue: nopQueue{}, look: look}, newBench().handle, quick())
		must(t, err)
		s := newSession(t.Context(), pool, pool.queues[0], "own", newSlots(&pool.config, func() {}))
		err = s.look(t.Context(), "own", time.Time{})
		s.cancel(nil)
		failIf(t, !errors.Is(err, errBroken), "got %v, want the error of Redis", err)
	}
}
