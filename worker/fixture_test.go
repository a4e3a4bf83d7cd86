package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
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

func TestMain(m *testing.M) {
	redis.LogTo(nil)
	testkit.Main(m)
}

var _ Queue = store.Pool{}

var whole = cmp.AllowUnexported(policy.Failure{})

type queueFixture struct {
	fixture.Part
	t     testing.TB
	redis goredis.UniversalClient
	block bool // whether waiting for entries blocks in the server, which makes stopping a pool take up to a second
}

// WaitInput spares most tests the second that a blocking call takes to notice the end.
func (r *queueFixture) WaitInput(ctx context.Context) (bool, error) {
	if r.block {
		return r.Pool.WaitInput(ctx)
	}
	backoff.Rest(ctx, 2*time.Millisecond, nil)
	n, err := r.redis.LLen(ctx, r.Keys.Input).Result()
	return n > 0, err
}

func newFixture(t testing.TB, server *testkit.Server) *queueFixture {
	t.Helper()
	store, err := store.New(fixture.Connect(t, server.URL), store.Config{})
	must(t, err)
	return &queueFixture{Part: fixture.Whole(store), t: t, redis: server.Client(t)}
}

// onQueue runs a test on a queue of each server that is to be had, with a bench.
func onQueue(t *testing.T, test func(t *testing.T, r *queueFixture, b *bench)) {
	t.Helper()
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) { test(t, newFixture(t, server), newBench()) })
}

// offer queues an attempt as the start script does: the hash holds the fence, the list the entry. The attempt is called
// uid-1 and has an hour.
func (r *queueFixture) offer(uids ...string) {
	r.t.Helper()
	for _, uid := range uids {
		r.offerUntil(uid, time.Hour)
	}
}

func (r *queueFixture) offerUntil(uid string, left time.Duration) {
	r.t.Helper()
	deadline := model.FormatTime(r.now().Add(left))
	r.set(uid, "attempt_uid", uid+"-1", "deadline_at", deadline)
	r.queue(fmt.Sprintf(`{"big_table_uid":%q,"refresh_attempt_uid":%q,"input_url":"http://x/","attempt_no":2,"deadline_at":%q}`,
		uid, uid+"-1", deadline))
}

func (r *queueFixture) now() time.Time {
	r.t.Helper()
	now, err := r.Now(context.Background())
	r.must(err)
	return now
}

func (r *queueFixture) set(uid string, fields ...any) {
	r.t.Helper()
	r.must(r.redis.HSet(context.Background(), r.Keys.Model(uid), fields...).Err())
}

func (r *queueFixture) queue(entries ...string) {
	r.t.Helper()
	for _, entry := range entries {
		r.must(r.redis.RPush(context.Background(), r.Keys.Input, entry).Err())
	}
}

func (r *queueFixture) must(err error) {
	r.t.Helper()
	must(r.t, err)
}

// told waits for the next message, as the poller reads it.
func (r *queueFixture) told() model.Message {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), check.Limit)
	defer cancel()
	for ctx.Err() == nil {
		reply, err := r.redis.BLPop(context.Background(), time.Second, r.Keys.Output).Result()
		if errors.Is(err, goredis.Nil) {
			continue
		}
		r.must(err)
		m, err := model.Wire{}.DecodeMessage([]byte(reply[1]))
		stopIf(r.t, err != nil, "the poller would reject %s: %v", reply[1], err)
		return m
	}
	r.t.Fatal("no message came")
	return model.Message{}
}

func (r *queueFixture) toldOf(kind model.MessageType) model.Message {
	r.t.Helper()
	for {
		if m := r.told(); m.Type == kind {
			return m
		}
	}
}

func (r *queueFixture) left() []model.Message {
	r.t.Helper()
	var all []model.Message
	texts, err := r.redis.LRange(context.Background(), r.Keys.Output, 0, -1).Result()
	r.must(err)
	for _, text := range texts {
		m, err := model.Wire{}.DecodeMessage([]byte(text))
		r.must(err)
		all = append(all, m)
	}
	return all
}

func kinds(messages []model.Message) []model.MessageType {
	all := []model.MessageType{}
	for _, m := range messages {
		all = append(all, m.Type)
	}
	return all
}

func ends(messages []model.Message) []model.MessageType {
	return slices.DeleteFunc(kinds(messages), func(kind model.MessageType) bool {
		return kind == model.MessageStarted || kind == model.MessageStatus
	})
}

type running struct {
	*Pool
	t      testing.TB
	cancel context.CancelFunc
	ended  chan error
}

// quick is a configuration for tests that do not wait for the ordinary intervals.
func quick() Config {
	return Config{
		Name: "w1", FenceEvery: 20 * time.Millisecond, StatusEvery: 20 * time.Millisecond, Grace: check.Limit,
		Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	}
}

func run(t testing.TB, queue Queue, config Config, handler Handler) *running {
	t.Helper()
	pool, err := New(queue, handler, config)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	p := &running{Pool: pool, t: t, cancel: cancel, ended: make(chan error, 1)}
	go func() { p.ended <- pool.Run(ctx) }()
	t.Cleanup(func() { cancel(); p.ended <- <-p.ended })
	return p
}

// stop ends the pool and returns what Run returned. It may be called once.
func (p *running) stop() error {
	p.t.Helper()
	p.cancel()
	return p.wait()
}

func (p *running) wait() error {
	p.t.Helper()
	err := check.Await(p.t, p.ended, "the end of Run")
	p.ended <- err // for the cleanup
	return err
}

// bench is a handler under the control of a test: it reports that it began and returns the error that the test sets.
type bench struct {
	began  chan *Attempt
	result chan error
	causes chan error // why its context ended
}

func newBench() *bench {
	return &bench{make(chan *Attempt, 100), make(chan error, 100), make(chan error, 100)}
}

func (b *bench) handle(ctx context.Context, attempt *Attempt) error {
	b.began <- attempt
	select {
	case err := <-b.result:
		return err
	case <-ctx.Done():
		b.causes <- context.Cause(ctx)
		return ctx.Err()
	}
}

// hand offers the attempt m, and waits until the handler has it.
func (r *queueFixture) hand(b *bench) {
	r.t.Helper()
	r.offer("m")
	check.Await(r.t, b.began, "the attempt")
}

// faulty is a queue whose single calls a test replaces, stops or watches while the pool runs.
type faulty struct {
	Queue
	mu     sync.Mutex
	before func(call string) // is called first; the call waits for it, whatever happens to its context
	take   func(taking store.TakeRequest) (store.Taken, error)
	push   func(owner string, answers []store.Answer) error
	beat   func(owner string) (store.Taken, error)
	fences func(uids []string) ([]store.Fence, time.Time, error)
}

var errBroken = errors.New("connection refused")

func (f *faulty) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// hook replaces a call now; nil: nothing does.
func hook[F any](f *faulty, call string, field *F) (replaced F) {
	var before func(string)
	f.change(func() { before, replaced = f.before, *field })
	if before != nil {
		before(call)
	}
	return replaced
}

func (f *faulty) Take(ctx context.Context, taking store.TakeRequest) (store.Taken, error) {
	if take := hook(f, "take", &f.take); take != nil {
		return take(taking)
	}
	return f.Queue.Take(ctx, taking)
}

func (f *faulty) WaitInput(ctx context.Context) (bool, error) {
	hook(f, "wait", new(int))
	return f.Queue.WaitInput(ctx)
}

func (f *faulty) Answer(ctx context.Context, owner string, answers []store.Answer) ([]bool, error) {
	if push := hook(f, "answer", &f.push); push != nil {
		if err := push(owner, answers); err != nil {
			return nil, err
		}
	}
	return f.Queue.Answer(ctx, owner, answers)
}

func (f *faulty) Heartbeat(ctx context.Context, owner string) (store.Taken, error) {
	if beat := hook(f, "heartbeat", &f.beat); beat != nil {
		return beat(owner)
	}
	return f.Queue.Heartbeat(ctx, owner)
}

func (f *faulty) Fences(ctx context.Context, uids []string) ([]store.Fence, time.Time, error) {
	if fences := hook(f, "fences", &f.fences); fences != nil {
		return fences(uids)
	}
	return f.Queue.Fences(ctx, uids)
}

type nopQueue struct{ Queue }

func (nopQueue) Wire() model.Wire { return model.Wire{} }

func (nopQueue) Answer(context.Context, string, []store.Answer) ([]bool, error) {
	return nil, nil
}
