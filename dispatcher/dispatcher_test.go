package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/queuetest"
	"github.com/refreshd/refreshd/internal/redistest"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// bundle is a dispatcher with everything it touches.
type bundle struct {
	*queuetest.Rig
	t testing.TB
}

func setup(t *testing.T, server *redistest.Server) *bundle {
	t.Helper()
	return &bundle{queuetest.New(t, server), t}
}

// dispatcher returns a dispatcher whose attempts are named by a word and a number.
func (b *bundle) dispatcher(store dispatcher.Store, config dispatcher.Config) *dispatcher.Dispatcher {
	b.t.Helper()
	var count atomic.Int64
	if config.NewUID == nil {
		config.NewUID = func() string { return fmt.Sprintf("attempt-%d", count.Add(1)) }
	}
	d, err := dispatcher.New(store, config)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// put saves a one-shot that is due now, with a timeout of one minute and one retry after 30 s.
func (b *bundle) put(uids ...string) {
	b.t.Helper()
	policy := model.Policy{Timeout: time.Minute, Retries: model.Delays{30 * time.Second}, Alignment: model.AlignPlanned, OnExhausted: model.GiveUp}
	if err := b.Store.SavePolicy(context.Background(), policy); err != nil {
		b.t.Fatal(err)
	}
	now := b.now()
	records, err := b.Store.Load(context.Background(), uids)
	if err != nil {
		b.t.Fatal(err)
	}
	var transitions []*scripts.Transition
	for _, uid := range uids {
		definition := model.Definition{UID: uid, Payload: `{"input_url":"http://feed/` + uid + `"}`, PolicyName: policy.ContentName()}
		decision, _, err := records[uid].Put(definition, policy, false, now)
		if err != nil {
			b.t.Fatal(err)
		}
		transitions = append(transitions, records[uid].Decide(decision, now))
	}
	if _, err := b.Store.Apply(context.Background(), transitions, "", 0, now); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) now() time.Time {
	b.t.Helper()
	now, err := b.Store.Now(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return now
}

func (b *bundle) round(d *dispatcher.Dispatcher) dispatcher.Round {
	b.t.Helper()
	round, err := d.RunOnce(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return round
}

func TestDueModelsStartOldestFirst(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		for _, uid := range []string{"third", "first", "second"} {
			b.put(uid)
		}
		for i, uid := range []string{"first", "second", "third"} {
			b.refreshAt(uid, queuetest.Start.Add(time.Duration(i-3)*time.Second))
		}
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		var order []string
		for entry, ok := b.Take(); ok; entry, ok = b.Take() {
			order = append(order, entry.UID)
		}
		if diff := cmp.Diff([]string{"first", "second", "third"}, order); diff != "" {
			t.Error(diff)
		}
	})
}

// refreshAt moves the due time of a model in hash and set, as an operator could by hand.
func (b *bundle) refreshAt(uid string, at time.Time) {
	b.t.Helper()
	ctx := context.Background()
	b.Redis.HSet(ctx, b.Store.Keys.Model(uid), "refresh_at", model.FormatTime(at))
	b.Redis.ZAddXX(ctx, b.Store.Keys.Due(), zscore(uid, at))
}

func TestAStartTellsTheWorkerEverythingAndStoresTheFence(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.put("tbl_1")
		got := b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		if diff := cmp.Diff(dispatcher.Round{Started: 1}, got); diff != "" {
			t.Error(diff)
		}
		want := []string{`{"big_table_uid":"tbl_1","refresh_attempt_uid":"attempt-1","input_url":"http://feed/tbl_1","attempt_no":1,"deadline_at":"2026-11-21T07:01:00.000Z","v":1}`}
		if diff := cmp.Diff(want, b.List(b.Store.Keys.Input())); diff != "" {
			t.Error(diff)
		}
		hash := b.Model("tbl_1")
		for field, want := range map[string]string{
			"attempt_uid": "attempt-1", "attempt_no": "1", "started_at": "2026-11-21T07:00:00.000Z",
			"deadline_at": "2026-11-21T07:01:00.000Z", "refresh_at": "2026-11-21T07:01:30.000Z", "refresh_why": "if lost: retry 1/1 +30s",
		} {
			if hash[field] != want {
				t.Errorf("%s: want %q, got %q", field, want, hash[field])
			}
		}
		if due, running := b.Scores(b.Store.Keys.Due()), b.Scores(b.Store.Keys.Running()); len(due) != 0 || running["tbl_1"] == 0 {
			t.Errorf("want tbl_1 in running only, got due %v, running %v", due, running)
		}
	})
}

func TestTheInputListStaysBelowTheHighWaterMarkWithManyDispatchers(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		for i := range 40 {
			b.put(fmt.Sprintf("m%02d", i))
		}
		var uids atomic.Int64
		config := dispatcher.Config{MaxQueued: 15, Batch: 7, NewUID: func() string { return fmt.Sprint("a", uids.Add(1)) }}
		var running sync.WaitGroup
		for range 4 {
			d := b.dispatcher(b.Store, config)
			running.Go(func() {
				for range 10 {
					if _, err := d.RunOnce(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		running.Wait()
		if got := len(b.List(b.Store.Keys.Input())); got != 15 {
			t.Errorf("want 15 entries queued, got %d", got)
		}
		if round := b.round(b.dispatcher(b.Store, config)); round.Sleep != 20*time.Millisecond || round.Started != 0 {
			t.Errorf("want a short sleep and no start while the list is full, got %+v", round)
		}
	})
}

// crowd is a store in which others fill the input list after the dispatcher has looked at its length.
type crowd struct {
	*scripts.Store
	arrive func()
}

func (s *crowd) Load(ctx context.Context, uids []string) (map[string]*scripts.Record, error) {
	s.arrive()
	return s.Store.Load(ctx, uids)
}

func TestTheHighWaterMarkHoldsAtTheMomentOfTheStart(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.put("a", "b", "c")
		arrive := func() { b.Redis.RPush(context.Background(), b.Store.Keys.Input(), "x", "y") }
		round := b.round(b.dispatcher(&crowd{b.Store, arrive}, dispatcher.Config{MaxQueued: 3}))
		if round.Started != 1 || round.Refused != 2 {
			t.Errorf("want 1 started and 2 refused, got %+v", round)
		}
	})
}

func TestAPassedDeadlineIsAFailureByTimeout(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.put("tbl_1")
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.round(d)
		b.Take()
		b.Clock.Turn(59999 * time.Millisecond)
		if round := b.round(d); round.TimedOut != 0 || round.Sleep != time.Millisecond {
			t.Errorf("one millisecond early: want a sleep of 1ms, got %+v", round)
		}
		b.Clock.Turn(time.Millisecond)
		if round := b.round(d); round.TimedOut != 1 {
			t.Errorf("want 1 timeout, got %+v", round)
		}
		hash := b.Model("tbl_1")
		if hash["refresh_at"] != "2026-11-21T07:01:30.000Z" || hash["refresh_why"] != "retry 1/1 +30s" || hash["attempt_no"] != "1" || hash["attempt_uid"] != "" {
			t.Errorf("want retry 1/1 at 07:01:30, got %v", hash)
		}
	})
}

func TestAnAttemptThatNobodyTookIsWithdrawnAndNotCounted(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.put("tbl_1")
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.round(d)
		const timeouts = 200
		for range timeouts {
			b.Clock.Turn(time.Minute)
			b.round(d) // withdrawn
			b.round(d) // started again
		}
		hash := b.Model("tbl_1")
		if hash["attempt_no"] != "1" || hash["refresh_disabled_until_update"] != "" || hash["failing_since"] != "" {
			t.Errorf("want the first attempt of a healthy model, got %v", hash)
		}
		if stats := b.Stats(); stats["withdrawn"] != timeouts || stats["timeout"] != 0 || stats["retry"] != 0 {
			t.Errorf("want %d withdrawn and nothing counted, got %v", timeouts, stats)
		}
		if entries := b.List(b.Store.Keys.Input()); len(entries) != 1 || !strings.Contains(entries[0], hash["attempt_uid"]) {
			t.Errorf("want one entry of the current attempt, got %v", entries)
		}
	})
}

// lastMoment is a store in which a worker takes the attempt between the look at the input list and the script.
type lastMoment struct {
	*scripts.Store
	take func()
}

func (s *lastMoment) Queued(ctx context.Context) (map[string]string, error) {
	queued, err := s.Store.Queued(ctx)
	s.take()
	return queued, err
}

func TestAnAttemptTakenInTheLastMomentIsNotWithdrawn(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.put("tbl_1")
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		b.Clock.Turn(time.Minute)
		d := b.dispatcher(&lastMoment{b.Store, func() { b.Take() }}, dispatcher.Config{})
		if round := b.round(d); round.TimedOut != 1 || round.Withdrawn != 0 {
			t.Errorf("want 1 timeout, got %+v", round)
		}
	})
}

// lostReply is a store whose scripts run but whose replies do not arrive.
type lostReply struct {
	*scripts.Store
	lost int
}

var errLost = errors.New("reply lost")

func (s *lostReply) Apply(ctx context.Context, transitions []*scripts.Transition, owner string, maxQueued int, now time.Time) ([]scripts.Code, error) {
	codes, err := s.Store.Apply(ctx, transitions, owner, maxQueued, now)
	if s.lost > 0 {
		s.lost--
		return nil, errLost
	}
	return codes, err
}

func TestAStartWhoseReplyIsLostIsNotRepeated(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.put("a", "b")
		d := b.dispatcher(&lostReply{b.Store, 1}, dispatcher.Config{})
		if _, err := d.RunOnce(context.Background()); !errors.Is(err, errLost) {
			t.Fatalf("want the lost reply told, got %v", err)
		}
		if round := b.round(d); round.Started != 0 {
			t.Errorf("want nothing left to start, got %+v", round)
		}
		if got := len(b.List(b.Store.Keys.Input())); got != 2 {
			t.Errorf("want 2 entries, got %d", got)
		}
	})
}

func TestManyDispatchersStartEachModelOnce(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		uids := make([]string, 300)
		for i := range uids {
			uids[i] = fmt.Sprint("m", i)
		}
		b.put(uids...)
		var running sync.WaitGroup
		for i := range 5 {
			var count atomic.Int64
			d := b.dispatcher(b.Store, dispatcher.Config{Batch: 30, NewUID: func() string { return fmt.Sprintf("d%d-%d", i, count.Add(1)) }})
			running.Go(func() {
				for range 60 {
					if _, err := d.RunOnce(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		running.Wait()
		if stats := b.Stats(); stats["start"] != 300 {
			t.Errorf("want 300 starts, got %v", stats)
		}
		seen := map[string]int{}
		for entry, ok := b.Take(); ok; entry, ok = b.Take() {
			seen[entry.UID]++
		}
		for _, uid := range uids {
			if seen[uid] != 1 {
				t.Errorf("%s: want 1 entry, got %d", uid, seen[uid])
			}
		}
	})
}

func TestOneBadModelDoesNotStopTheOthers(t *testing.T) {
	cases := map[string]func(b *bundle){
		"a uid without a model": func(b *bundle) {
			b.Redis.ZAdd(context.Background(), b.Store.Keys.Due(), zscore("bad", queuetest.Start))
		},
		"a key of another type": func(b *bundle) {
			b.spoil("bad")
			b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		},
		"a score without a refresh": func(b *bundle) {
			b.put("bad")
			b.Redis.HDel(context.Background(), b.Store.Keys.Model("bad"), "refresh_at")
		},
		"a disabled model that waits": func(b *bundle) {
			b.put("bad")
			b.Redis.HSet(context.Background(), b.Store.Keys.Model("bad"), "refresh_disabled_until_update", "1")
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			redistest.Both(t, func(t *testing.T, server *redistest.Server) {
				b := setup(t, server)
				spoil(b)
				b.put("good")
				d := b.dispatcher(b.Store, dispatcher.Config{})
				b.round(d)
				if entry, ok := b.Take(); !ok || entry.UID != "good" {
					t.Errorf("want the good model started, got %v", entry)
				}
				if round := b.round(d); round.Sleep == 0 {
					t.Errorf("want a dispatcher at rest, got %+v", round)
				}
				if due := b.Scores(b.Store.Keys.Due()); len(due) != 0 {
					t.Errorf("want the bad one out of the due set, got %v", due)
				}
			})
		})
	}
}

func (b *bundle) spoil(uid string) {
	b.Redis.ZAdd(context.Background(), b.Store.Keys.Due(), zscore(uid, queuetest.Start))
}

func TestAModelWithAnUnreadableTimeIsStartedInsteadOfLost(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.put("tbl_1")
		b.Redis.HSet(context.Background(), b.Store.Keys.Model("tbl_1"), "refresh_at", "soon")
		if round := b.round(b.dispatcher(b.Store, dispatcher.Config{})); round.Started != 1 {
			t.Errorf("want it started, got %+v", round)
		}
	})
}

func TestAModelWithAMissingPolicyRunsUnderTheDefaultPolicy(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.put("tbl_1")
		b.Redis.Del(context.Background(), b.Store.Keys.Policies())
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		if got := b.Model("tbl_1")["deadline_at"]; got != "2026-11-21T07:10:00.000Z" {
			t.Errorf("want the default timeout of ten minutes, got %q", got)
		}
	})
}

func TestConfigIsRefusedWithTheFieldAndItsRange(t *testing.T) {
	cases := []struct {
		config dispatcher.Config
		want   string
	}{
		{dispatcher.Config{}, ""},
		{dispatcher.Config{Tick: 10 * time.Millisecond}, ""},
		{dispatcher.Config{Batch: -1}, "batch: expected 1 to 1000, found -1"},
		{dispatcher.Config{Batch: 1001}, "batch: expected 1 to 1000, found 1001"},
		{dispatcher.Config{MaxQueued: -5}, "max queued: expected at least 1, found -5"},
		{dispatcher.Config{Tick: time.Hour}, "tick: expected 10ms to 1m, found 1h0m0s"},
		{dispatcher.Config{FullTick: 2 * time.Second}, "full tick: expected 1ms to the tick of 1s, found 2s"},
		{dispatcher.Config{Backoff: -time.Second}, "backoff: expected 1ms to the tick of 1s, found -1s"},
	}
	for _, c := range cases {
		_, err := dispatcher.New(nil, c.config)
		if got := fmt.Sprint(err); got != c.want && (c.want != "" || err != nil) {
			t.Errorf("%+v: want %q, got %q", c.config, c.want, got)
		}
	}
}
