package handlers

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

var (
	must   = testkit.Must
	equal  = testkit.Equal
	failIf = testkit.FailIf
)

func TestMain(m *testing.M) {
	store.LogTo(nil)
	testkit.Main(m)
}

// whole lets messages be compared with all their fields.
var whole = cmp.AllowUnexported(policy.Failure{})

// example is an attempt outside a pool.
func example() *worker.Attempt {
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	return &worker.Attempt{
		UID: "m", AttemptUID: "a1", AttemptNo: 2, DeadlineAt: at, PlannedAt: at.Add(time.Hour),
		Payload: json.RawMessage(`{"input_url":"http://x/?a=1&b=2"}`),
	}
}

// try runs a handler as a pool would and returns what the poller understands, without the uids.
func try(ctx context.Context, t *testing.T, handler worker.Handler, attempt *worker.Attempt) (statuses []model.Message, end model.Message) {
	t.Helper()
	told, err := worker.Try(ctx, handler, attempt)
	must(t, err)
	for i := range told {
		told[i].UID, told[i].AttemptUID = "", ""
	}
	if len(told) == 0 {
		return nil, model.Message{}
	}
	return told[:len(told)-1], told[len(told)-1]
}

// pool is a pool at work on a queue.
type pool struct {
	t     testing.TB
	store *store.Store
	redis redis.UniversalClient
}

// start runs a handler in a pool until the test ends or the returned function is called.
func start(t testing.TB, server *testkit.Server, handler worker.Handler) (p *pool, stop func()) {
	t.Helper()
	queue := fixture.Live(t, server)
	p = &pool{t, queue.Store, queue.Redis}
	w, err := worker.New(p.store.Pool(), handler, worker.Config{Concurrency: 8, FenceEvery: 20 * time.Millisecond, Grace: testkit.Limit})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return p, stop
}

// offer queues an attempt as the start script does: the hash holds the fence, the list the entry.
func (p *pool) offer(uid, inputURL string) {
	p.t.Helper()
	p.fence(uid, uid+"-1")
	entry, _ := json.Marshal(map[string]string{"big_table_uid": uid, "refresh_attempt_uid": uid + "-1", "input_url": inputURL})
	must(p.t, p.redis.RPush(context.Background(), p.store.Keys.Input, entry).Err())
}

func (p *pool) fence(uid, attemptUID string) {
	p.t.Helper()
	must(p.t, p.redis.HSet(context.Background(), p.store.Keys.Model(uid), "attempt_uid", attemptUID).Err())
}

// told waits for the next message, as the poller reads it.
func (p *pool) told() model.Message {
	p.t.Helper()
	reply, err := p.redis.BLPop(context.Background(), testkit.Limit, p.store.Keys.Output).Result()
	must(p.t, err)
	m, err := model.Wire{}.DecodeMessage([]byte(reply[1]))
	must(p.t, err)
	return m
}
