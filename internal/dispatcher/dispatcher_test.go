package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

type bundle struct {
	*fixture.Queue
	t testing.TB
}

func setup(t *testing.T, server *testkit.Server) *bundle {
	t.Helper()
	return &bundle{fixture.New(t, server), t}
}

// dispatcher returns a dispatcher with another store, and with its flow if it has one, whose attempts are named by a word and a number.
func (b *bundle) dispatcher(store dispatcher.Store, config dispatcher.Config) *dispatcher.Dispatcher {
	b.t.Helper()
	var count atomic.Int64
	if config.NewUID == nil {
		config.NewUID = func() string { return fmt.Sprintf("attempt-%d", count.Add(1)) }
	}
	rooms := dispatcher.RoomsOf(b.Store)
	rooms.Store = store
	if flow, is := store.(dispatcher.Flow); is {
		rooms.Flow = flow
	}
	d, err := dispatcher.New(rooms, config)
	must(b.t, err)
	return d
}

// decide applies a decision about each of some models together, as a poller does for messages.
func (b *bundle) decide(decide func(r *store.Record, now time.Time) model.Decision, uids ...string) {
	b.t.Helper()
	now := b.now()
	records, err := b.Store.Load(b.t.Context(), uids)
	must(b.t, err)
	var transitions []*store.Transition
	for _, uid := range uids {
		transitions = append(transitions, records[uid].Decide(decide(records[uid], now), now))
	}
	b.Commit(now, transitions...)
}

// decided is a decision without its outcome.
func decided[T any](decision model.Decision, _ T) model.Decision { return decision }

// save saves models under a policy, which is stored if it has a name.
func (b *bundle) save(p policy.Policy, definition model.Definition, uids ...string) {
	b.t.Helper()
	if definition.PolicyName = p.Name; p.Name != "" {
		must(b.t, b.Store.Fleet().PutPolicy(b.t.Context(), p))
	} else {
		definition.PolicyName = p.ContentName()
	}
	b.decide(func(r *store.Record, now time.Time) model.Decision {
		definition := definition
		definition.UID, definition.Payload = r.UID, strings.ReplaceAll(definition.Payload, "UID", r.UID)
		decision, _, err := r.Put(definition, p, false, now)
		must(b.t, err)
		return decision
	}, uids...)
}

// put saves a one-shot that is due now, with a timeout of one minute and one retry after 30 s.
func (b *bundle) put(uids ...string) {
	b.t.Helper()
	p := policy.Policy{Timeout: time.Minute, Retries: policy.Delays{30 * time.Second}, Alignment: policy.AlignPlanned, OnExhausted: policy.GiveUp}
	b.save(p, model.Definition{Payload: `{"input_url":"http://feed/UID"}`}, uids...)
}

func (b *bundle) now() time.Time {
	b.t.Helper()
	now, err := b.Store.Now(context.Background())
	must(b.t, err)
	return now
}

func (b *bundle) round(d *dispatcher.Dispatcher) dispatcher.Round {
	b.t.Helper()
	round, err := d.RunOnce(context.Background())
	must(b.t, err)
	return round
}

func both(t *testing.T, test func(t *testing.T, b *bundle)) {
	t.Helper()
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) { test(t, setup(t, server)) })
}

func onBoth(t *testing.T, test func(t *testing.T, b *bundle, d *dispatcher.Dispatcher)) {
	t.Helper()
	both(t, func(t *testing.T, b *bundle) { test(t, b, b.dispatcher(b.Store, dispatcher.Config{})) })
}

func TestDueModelsStartOldestFirst(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		for _, uid := range []string{"third", "first", "second"} {
			b.put(uid)
		}
		for i, uid := range []string{"first", "second", "third"} {
			b.refreshAt(uid, fixture.Start.Add(time.Duration(i-3)*time.Second))
		}
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		var order []string
		for entry, ok := b.Take(); ok; entry, ok = b.Take() {
			order = append(order, entry.UID)
		}
		equal(t, []string{"first", "second", "third"}, order)
	})
}

// refreshAt moves the due time of a model in hash and set, as an operator could by hand.
func (b *bundle) refreshAt(uid string, at time.Time) {
	b.t.Helper()
	ctx := context.Background()
	b.Redis.HSet(ctx, b.Store.Keys.Model(uid), "refresh_at", model.FormatTime(at))
	b.Redis.ZAddXX(ctx, b.Store.Keys.Due, zscore(uid, at))
}

func TestAStartTellsTheWorkerEverythingAndStoresTheFence(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		got := b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		equal(t, dispatcher.Round{Started: 1, Sleep: b.rest(1)}, got)
		want := []string{`{"big_table_uid":"tbl_1","refresh_attempt_uid":"attempt-1","input_url":"http://feed/tbl_1","attempt_no":1,"deadline_at":"2026-11-21T07:01:00.000Z",` +
			`"fence":1795244400000,"due_at":"2026-11-21T07:00:00.000Z","for":"change"}`}
		equal(t, want, b.List(b.Store.Keys.Input))
		hash := b.Model("tbl_1")
		for field, want := range map[string]string{
			"attempt_uid": "attempt-1", "attempt_no": "1", "started_at": "2026-11-21T07:00:00.000Z",
			"deadline_at": "2026-11-21T07:01:00.000Z", "refresh_at": "2026-11-21T07:01:30.000Z", "refresh_why": "on timeout: retry 1 of 1 after 30s",
		} {
			failIf(t, hash[field] != want, "%s: want %q, got %q", field, want, hash[field])
		}
		due, running := b.Scores(b.Store.Keys.Due), b.Scores(b.Store.Keys.Running)
		failIf(t, len(due) != 0 || running["tbl_1"] == 0, "want tbl_1 in running only, got due %v, running %v", due, running)
	})
}

// crowd is a store in which others fill the input list after the dispatcher has looked at its length.
type crowd struct {
	*store.Store
	arrive func()
}

func (s *crowd) Load(ctx context.Context, uids []string) (map[string]*store.Record, error) {
	s.arrive()
	return s.Store.Load(ctx, uids)
}

func TestTheHighWaterMarkHoldsAtTheMomentOfTheStart(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("a", "b", "c")
		arrive := func() { b.Redis.RPush(context.Background(), b.Store.Keys.Input, "x", "y") }
		round := b.round(b.dispatcher(&crowd{b.Store, arrive}, dispatcher.Config{MaxQueued: 3}))
		failIf(t, round.Started != 1 || round.Refused != 2, "want 1 started and 2 refused, got %+v", round)
	})
}

// lostReply is a store whose scripts run but whose replies do not arrive.
type lostReply struct {
	*store.Store
	lost int
}

var errLost = errors.New("reply lost")

func (s *lostReply) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	codes, err := s.Store.Commit(ctx, batch)
	if s.lost > 0 {
		s.lost--
		return nil, errLost
	}
	return codes, err
}

func TestAStartWhoseReplyIsLostIsNotRepeated(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("a", "b")
		d := b.dispatcher(&lostReply{b.Store, 1}, dispatcher.Config{})
		_, err := d.RunOnce(context.Background())
		stopIf(t, !errors.Is(err, errLost), "want the lost reply told, got %v", err)
		round := b.round(d)
		failIf(t, round.Started != 0, "want nothing left to start, got %+v", round)
		got := len(b.List(b.Store.Keys.Input))
		failIf(t, got != 2, "want 2 entries, got %d", got)
	})
}

func TestManyDispatchersStartEachModelOnce(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		const models = 100 // as many as may wait before it is known how fast workers are
		uids := make([]string, models)
		for i := range uids {
			uids[i] = fmt.Sprint("m", i)
		}
		b.put(uids...)
		var running sync.WaitGroup
		for i := range 5 {
			var count atomic.Int64
			d := b.dispatcher(b.Store, dispatcher.Config{Batch: 30, NewUID: func() string { return fmt.Sprintf("d%d-%d", i, count.Add(1)) }})
			running.Go(func() {
				for round := (dispatcher.Round{}); round.Sleep < 20*time.Millisecond; { // until nothing is due any more
					var err error
					if round, err = d.RunOnce(context.Background()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		running.Wait()
		stats := b.Stats()
		failIf(t, stats["start"] != models, "want %d starts, got %v", models, stats)
		seen := map[string]int{}
		for entry, ok := b.Take(); ok; entry, ok = b.Take() {
			seen[entry.UID]++
		}
		for _, uid := range uids {
			failIf(t, seen[uid] != 1, "%s: want 1 entry, got %d", uid, seen[uid])
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
		_, err := dispatcher.New(dispatcher.Rooms{}, c.config)
		got := fmt.Sprint(err)
		failIf(t, got != c.want && (c.want != "" || err != nil), "%+v: want %q, got %q", c.config, c.want, got)
	}
}

// aUID is 26 letters and digits of five random bits each, 130 in all.
var aUID = regexp.MustCompile(`^[a-z2-7]{26}$`)

// A uid must not be guessed, nor sort by time: no two attempts share a beginning, as they would if time made it.
func TestEachAttemptIsNamedByRandomLettersOfItsOwn(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	uids := make([]string, 100)
	for i := range uids {
		uids[i] = fmt.Sprint("m", i)
	}
	b.put(uids...)
	d, err := dispatcher.New(dispatcher.RoomsOf(b.Store), dispatcher.Config{})
	must(t, err)
	round, err := d.RunOnce(context.Background())
	stopIf(t, err != nil || round.Started != len(uids), "want %d started, got %+v, %v", len(uids), round, err)
	seen := map[string]bool{}
	for _, uid := range uids {
		attempt := b.Attempt(uid)
		stopIf(t, !aUID.MatchString(attempt) || seen[attempt[:min(8, len(attempt))]],
			"want 26 random letters and digits, got %q among %d", attempt, len(seen))
		seen[attempt[:8]] = true
	}
}
