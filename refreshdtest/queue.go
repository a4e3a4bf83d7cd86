package refreshdtest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/embedded"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// Queue is a queue with its daemons on a virtual clock. Its methods are called by the goroutine of the test. What goes wrong ends the test.
type Queue struct {
	// Redis is the server, for code of the application that talks to it. What was pushed there is seen by the next Advance, also by 0.
	Redis goredis.UniversalClient

	t          testing.TB
	mini       *miniredis.Miniredis
	store      *store.Store
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
	pool       *worker.ManualPool
	due        *watched
	waiting    int          // entries of the input list that the worker has not looked at, at most
	attempts   int          // that were started
	handler    atomic.Value // of worker.Handler; nil: no worker runs
}

// pollBatch is how many messages the poller takes at a time.
const pollBatch = 100

// Begin is where the clock begins: a Monday.
var Begin = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// Test runs do with an empty queue, in its own bubble of testing/synctest. At the end, running handlers get worker.ErrShutdown.
func Test(t *testing.T, do func(t *testing.T, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := open(t)
		defer func() {
			err := q.pool.Stop(context.Background())
			_ = q.Redis.Close()
			q.mini.Close()
			q.must(err, "stop the worker")
		}()
		do(t, q)
	})
}

// open builds a queue and its daemons, which run when they are called.
func open(t testing.TB) *Queue {
	t.Helper()
	mini, client := embedded.InBubble()
	q := &Queue{Redis: client, t: t, mini: mini}
	var err error
	q.store, err = store.New(&redis.Clients{Read: client, Write: client, Block: client}, store.Config{HistoryCap: 1000, Grace: store.None})
	q.must(err, "open the queue")
	q.due = &watched{Store: q.store}
	rooms := dispatcher.RoomsOf(q.store)
	rooms.Store = q.due
	newUID := func() string {
		q.attempts++ // the uid of an attempt is the same in each run, and so is the jitter that follows from it
		return fmt.Sprintf("attempt-%019d", q.attempts)
	}
	q.dispatcher, err = dispatcher.New(rooms, dispatcher.Config{NewUID: newUID})
	q.must(err, "open the dispatcher")
	q.poller, err = poller.New(poller.RoomsOf(q.store), poller.Config{Batch: pollBatch, NewUID: newUID})
	q.must(err, "open the poller")
	handle := func(ctx context.Context, attempt *worker.Attempt) error { return q.handling()(ctx, attempt) }
	config := worker.Config{Name: "refreshdtest", Concurrency: 1000, StatusEvery: time.Minute}
	q.pool, err = worker.NewManualPool(t.Context(), q.store.Pool(), handle, config)
	q.must(err, "open the worker")
	<-time.After(Begin.Sub(q.Now())) // bubbles begin in 2000, before the anchor of policies
	return q
}

// watched is a store that remembers when its dispatcher has to look again.
type watched struct {
	*store.Store
	now, next time.Time
}

// ReadDue calls the store.
func (w *watched) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := w.Store.ReadDue(ctx, asked)
	w.now, w.next = due.Now, due.Next
	return due, err
}

// RequeueExpired does nothing: the worker gives no heartbeat, and does not die.
func (*watched) RequeueExpired(context.Context, time.Time, time.Time, time.Duration) ([]store.ExpiredWorker, error) {
	return nil, nil
}

// Handle gives each attempt that starts from now on to handler. Nil: no worker takes anything, as before the first call.
func (q *Queue) Handle(handler worker.Handler) {
	q.handler.Store(handler)
}

func (q *Queue) handling() worker.Handler {
	handler, _ := q.handler.Load().(worker.Handler)
	return handler
}

// Now is the virtual clock.
func (q *Queue) Now() time.Time {
	q.t.Helper()
	now, err := q.store.Now(q.t.Context())
	q.must(err, "read the clock")
	return now
}

// Model returns a model with its state, and its policy and schedule in force. If it does not exist, the test ends.
func (q *Queue) Model(uid string) model.Model {
	q.t.Helper()
	records, err := q.store.Load(q.t.Context(), []string{uid})
	q.must(err, "read the model")
	if !records[uid].Exists {
		q.t.Fatalf("read the model: expected %s, found none", uid)
	}
	return records[uid].Model
}

// Status is the status of a model.
func (q *Queue) Status(uid string) model.Status {
	q.t.Helper()
	m := q.Model(uid)
	queued, err := q.store.Queued(q.t.Context())
	q.must(err, "read the input list")
	_, waits := queued[m.AttemptUID]
	return m.Status(q.Now(), waits)
}

// Attempts are the ended ones of a model, the oldest first: the last 1,000.
func (q *Queue) Attempts(uid string) []model.Attempt {
	q.t.Helper()
	attempts, err := report.Of(q.store).History(q.t.Context(), uid)
	q.must(err, "read the history")
	slices.Reverse(attempts)
	return attempts
}

// Notices are the notices to all owners, oldest first.
func (q *Queue) Notices() (all []model.Notification) {
	q.t.Helper()
	for position := report.TailStart; ; {
		more, next, err := report.Of(q.store).TailOutbox(q.t.Context(), position)
		q.must(err, "read the notices")
		if len(more) == 0 {
			return all
		}
		all, position = append(all, more...), next
	}
}

// Counters are the counters of the queue, by their names in `refreshd stats`.
func (q *Queue) Counters() map[string]int64 {
	q.t.Helper()
	stats, err := report.Of(q.store).Stats(q.t.Context())
	q.must(err, "read the counters")
	return stats.Counters
}

func (q *Queue) must(err error, doing string) {
	q.t.Helper()
	if err != nil {
		q.t.Fatalf("%s: %v", doing, err)
	}
}
