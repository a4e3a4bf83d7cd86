package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// hostOf reads the host of an attempt out of its uid: that of "a/1" is a.
func hostOf(a *Attempt) string { return a.UID[:max(0, slices.Index([]byte(a.UID), '/'))] }

// sharing is a configuration in which a host may hold two of four slots.
func sharing() Config {
	config := quick()
	config.Host, config.Grace = hostOf, -1
	return config
}

func TestAttemptsOfOneHostHoldNoMoreThanItsShareAndOthersBegin(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
		for i := range 300 {
			r.offer(fmt.Sprint("endless/", i))
		}
		r.offer("own", "b/1", "c/1")
		run(t, r, sharing(), b.handle)
		var began []string
		for range 4 { // two of the endless ones, and two that stand behind 298 of them
			began = append(began, testkit.Await(t, b.began, "an attempt").UID)
		}
		hosts := map[string]int{}
		for _, uid := range began {
			hosts[hostOf(&Attempt{UID: uid})]++
		}
		if hosts["endless"] != 2 {
			t.Errorf("began %q, want two of the host endless and two others", began)
		}
		testkit.Eventually(t, "what may not begin stands in the input list", func() bool {
			return r.redis.LLen(t.Context(), r.Keys.Input()).Val() == 299
		})
		for _, m := range r.left() {
			if m.Type != model.MessageStarted || !slices.Contains(began, m.UID) {
				t.Errorf("told %+v of what has not begun", m)
			}
		}
	})
}

func TestAHostWhoseAttemptEndsBeginsTheNextAndEachOnce(t *testing.T) {
	r := newFixture(t, testkit.Miniredis(t))
	var now, most atomic.Int64
	p := run(t, r, sharing(), func(context.Context, *Attempt) error {
		defer now.Add(-1)
		for in := now.Add(1); ; {
			if old := most.Load(); in <= old || most.CompareAndSwap(old, in) {
				return nil
			}
		}
	})
	for i := range 200 {
		r.offer(fmt.Sprint("one/", i))
	}
	told := map[string]int{}
	for range 200 {
		told[r.toldOf(model.MessageSuccess).UID]++
	}
	r.must(p.stop())
	if s := p.Stats(); len(told) != 200 || s.Taken != 200 || s.Succeeded != 200 {
		t.Errorf("%d models told, counters %+v; want each of 200 worked on once", len(told), s)
	}
	if most.Load() > 2 {
		t.Errorf("%d at the same time, want at most 2", most.Load())
	}
	if len(r.left()) > 0 {
		t.Errorf("want nothing told twice, got %+v", r.left())
	}
}

// A reply that is lost leaves open whether the entry went back. It is asked again before anything is taken.
func TestAnEntryWhoseReturnWasNotHeardIsPutBackOnce(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
		q, lost := &faulty{Queue: r}, make(chan struct{}, 1)
		q.back = func(owner string, entries []string) error {
			if len(lost) > 0 {
				return nil
			}
			_, err := r.PutBack(t.Context(), owner, entries)
			r.must(err)
			lost <- struct{}{}
			return errBroken
		}
		config := sharing()
		config.Concurrency, config.PerHost = 2, 1
		r.offer("a/1", "a/2", "b/1")
		p := run(t, q, config, b.handle)
		for range 3 {
			testkit.Await(t, b.began, "an attempt")
			b.result <- nil
			r.toldOf(model.MessageSuccess)
		}
		r.must(p.stop())
		if s := p.Stats(); len(lost) != 1 || s.Succeeded != 3 || s.Taken != 3 {
			t.Errorf("%d replies lost, counters %+v; want one lost, and three attempts worked on once", len(lost), s)
		}
	})
}

func TestWhatCannotBePutBackWhileRedisFailsIsHandedBackAtTheEnd(t *testing.T) {
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	refused := make(chan struct{}, 1000)
	q := &faulty{Queue: r, back: func(string, []string) error {
		refused <- struct{}{}
		return errBroken
	}}
	config := sharing()
	config.PerHost = 1
	r.offer("a/1", "a/2", "a/3")
	p := run(t, q, config, b.handle)
	testkit.Await(t, b.began, "the first attempt")
	testkit.Await(t, refused, "a refusal")
	testkit.Await(t, refused, "another refusal")
	b.result <- nil
	r.must(p.stop())
	if left := r.redis.LLen(t.Context(), r.Keys.Input()).Val(); left != 2 {
		t.Errorf("%d entries in the input list, want the two that did not begin", left)
	}
}

// looks counts what a pool takes.
type looks struct {
	Queue
	entries, calls, known atomic.Int64 // known: of the last call, how many entries the pool believed to hold
}

func (l *looks) Take(ctx context.Context, taking store.TakeRequest) (store.Taken, error) {
	taken, err := l.Queue.Take(ctx, taking)
	l.calls.Add(1)
	l.known.Store(int64(taking.Known))
	l.entries.Add(int64(len(taken.Entries)))
	return taken, err
}

func TestAPoolThatFindsNothingToBeginRestsLongerAndLooksFarther(t *testing.T) {
	s := newShare(&Config{FenceEvery: time.Second}).newSearch()
	var rests []time.Duration
	var farLooks []int
	for range 9 {
		s.looked(0, 1)
		rests, farLooks = append(rests, s.rest()), append(farLooks, s.look(2))
	}
	ms := time.Millisecond
	if want := []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}; !slices.Equal(rests, want) {
		t.Errorf("rests: %s, want %s", rests, want)
	}
	if want := []int{4, 8, 16, 32, 64, 100, 100, 100, 100}; !slices.Equal(farLooks, want) {
		t.Errorf("looks: %d, want %d", farLooks, want)
	}
	for _, c := range [][2]int{{1, 1}, {0, 0}, {1, 0}} {
		if s.looked(c[0], c[1]); s.rest() != 0 || s.look(2) != 2 || s.look(200) != 200 {
			t.Errorf("%d began, %d put back: rest %s, look %d; want none, and as many as there are slots", c[0], c[1], s.rest(), s.look(2))
		}
		s.looked(0, 1)
	}
	if s.fruitless = 1000; s.rest() != time.Second || s.look(2) != 100 {
		t.Errorf("after a thousand looks: rest %s, look %d", s.rest(), s.look(2))
	}
}

func TestAnEndedAttemptEndsTheRest(t *testing.T) {
	t.Parallel()
	r, b := newFixture(t, testkit.Miniredis(t)), newBench()
	config := sharing()
	config.FenceEvery, config.PerHost = time.Minute, 1
	q := &looks{Queue: r}
	r.offer("a/1", "a/2")
	run(t, q, config, b.handle)
	testkit.Await(t, b.began, "the first attempt")
	testkit.Eventually(t, "the pool rests for seconds", func() bool { return q.calls.Load() > 9 })
	if known := q.known.Load(); known != 1 {
		t.Errorf("after %d looks the pool believes to hold %d entries, want the one that began", q.calls.Load(), known)
	}
	b.result <- nil
	testkit.Await(t, b.began, "the second attempt")
	b.result <- nil
}

func TestAnAttemptThatNobodyMayBeginUntilItsDeadlineStillStandsInTheInputList(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		r, b := newFixture(t, server), newBench()
		config := sharing()
		config.PerHost = 1
		r.offer("a/1", "a/2")
		q := &looks{Queue: r}
		run(t, q, config, b.handle)
		testkit.Await(t, b.began, "the first attempt")
		testkit.Eventually(t, "the second one was looked at several times", func() bool { return q.entries.Load() > 4 })
		testkit.Eventually(t, "it stands in the input list as it came", func() bool {
			left := r.redis.LRange(t.Context(), r.Keys.Input(), 0, -1).Val()
			var entry struct {
				UID string `json:"big_table_uid"`
			}
			return len(left) == 1 && json.Unmarshal([]byte(left[0]), &entry) == nil && entry.UID == "a/2"
		})
		b.result <- nil
		testkit.Await(t, b.began, "the second attempt")
		b.result <- nil
	})
}
