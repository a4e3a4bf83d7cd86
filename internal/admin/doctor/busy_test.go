package doctor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// busy is a queue in which everything changes as fast as it can. It is a hook of its own store, and notes transitions.
type busy struct {
	*queue
	passing
	mu   sync.Mutex
	next chan struct{} // guarded by mu; closed by the next transition
}

func (q *busy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if slices.Contains(command.Args(), any(q.Store.Keys.Journal)) {
			q.mu.Lock()
			close(q.next)
			q.next = make(chan struct{})
			q.mu.Unlock()
		}
		return err
	}
}

func (q *busy) coming() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next
}

// until waits until something holds, which it asks for after each transition: nothing else makes it true. Or for the end of ctx.
func (q *busy) until(ctx context.Context, holds func() bool) {
	for coming := q.coming(); !holds() && ctx.Err() == nil; coming = q.coming() {
		select {
		case <-ctx.Done():
		case <-coming:
		}
	}
}

// another waits for one transition, or for the end of ctx.
func (q *busy) another(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-q.coming():
	}
}

func (q *busy) keepBusy() (stop func()) {
	for i := range 150 {
		q.Command(fmt.Sprintf(`{"type":"put","uid":"m%d","payload":{"n":%d},"policy":{"timeout":"1m","retries":{"strategy":"fixed","base":"1ms"},"jitter":0}}`, i, i))
	}
	d, err := dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{})
	q.ok(err)
	p, err := poller.New(poller.RoomsOf(q.Store), poller.Config{})
	q.ok(err)
	w, err := worker.New(q.Store.Pool(), func(context.Context, *worker.Attempt) error { return errors.New("failed") }, worker.Config{Grace: -1})
	q.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	running.Go(func() { _ = p.Run(ctx) })
	running.Go(func() { q.externalWorker(ctx) })
	running.Go(func() { _ = w.Run(ctx) })
	running.Go(func() { q.application(ctx) })
	q.until(ctx, func() bool { return q.Stats()["failure"] >= 100 })
	return func() { cancel(); running.Wait() }
}

func (q *busy) externalWorker(ctx context.Context) {
	for ctx.Err() == nil {
		popped, err := q.Redis.BLPop(ctx, time.Second, q.Store.Keys.Input).Result()
		if err != nil {
			continue
		}
		var uid, attempt string
		_, _ = fmt.Sscanf(popped[1], `{"big_table_uid":%q,"refresh_attempt_uid":%q`, &uid, &attempt)
		_ = q.Redis.RPush(ctx, q.Store.Keys.Output, fixture.Result("failure", uid, attempt)).Err()
	}
}

// application puts, runs, disables, enables and removes models; the pauses keep the control list short.
func (q *busy) application(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		uid := strconv.Quote("n" + strconv.Itoa(i%50))
		pipe := q.Redis.Pipeline()
		for _, command := range []string{
			`{"type":"put","uid":` + uid + `,"rrule":"FREQ=SECONDLY","policy":{"retries":["0s"],"timeout":"` + strconv.Itoa(i%7+1) + `m"}}`, `{"type":"run","uid":` + uid + `,"force":true}`,
			`{"type":"disable","uid":` + uid + `}`, `{"type":"enable","uid":` + uid + `}`, `{"type":"remove","uid":"n` + strconv.Itoa((i+25)%50) + `"}`,
		} {
			pipe.RPush(ctx, q.Store.Keys.Control, command)
		}
		_, _ = pipe.Exec(ctx)
		q.until(ctx, func() bool { return q.Redis.LLen(ctx, q.Store.Keys.Control).Val() <= 20 })
	}
}

// TestManyModelsAreCheckedInChunks bounds the size of each request to Redis: other clients wait for it.
func TestManyModelsAreCheckedInChunks(t *testing.T) {
	models := long.Or(2_000, 30_000)
	q := &queue{fixture.New(t, testkit.Redis(t)), t}
	q.writeModels(models)
	most := &heapHook{}
	q.Intercept(most)
	report := q.check(Options{Limit: 3})
	failIf(t, report.Models < models || report.Total(Error) != 10 || report.Counts["due-wrong"].Found != 10 || len(report.Findings) != 3,
		"expected %d models and the first 3 of 10 errors, found %d and\n%s", models, report.Models, report)
	failIf(t, most.widest > 1000 || most.longest > 1000,
		"expected others to be let in between, found %d commands at once and a reply of %d elements", most.widest, most.longest)
	failIf(t, most.pipelines < models/200 || most.bytes > 64<<20,
		"expected at most 64 MB of heap in many chunks, found %d MB in %d", most.bytes>>20, most.pipelines)
}

// writeModels writes waiting models as a poller would. Ten of them are missing in the due set.
func (q *queue) writeModels(n int) {
	q.t.Helper()
	k, at := q.Store.Keys, fixture.Start.Add(time.Hour)
	for from := 0; from < n; from += 1000 {
		pipe := q.Redis.Pipeline()
		for i := from; i < from+1000; i++ {
			uid := "m" + strconv.Itoa(i)
			pipe.HSet(q.t.Context(), k.Model(uid), "rev", "1", "rrule", "FREQ=HOURLY", "dtstart", "2026-01-01T00:00:00", "refresh_at", "2026-11-21T08:00:00.000Z", "refresh_why", "planned")
			pipe.Set(q.t.Context(), k.Payload(uid), `{"input_url":"https://example.com/a/b/c/`+uid+`"}`, 0)
			if i%(n/10) != 0 {
				pipe.ZAdd(q.t.Context(), k.Due, redis.Z{Score: float64(at.UnixMilli()), Member: uid})
			}
		}
		_, err := pipe.Exec(q.t.Context())
		q.ok(err)
	}
}

// TestABusyQueueRaisesNoFalseAlarm checks a queue, with and without --repair, while everything in it changes as fast as it can: models fail and are
// retried at once, are put and removed, run by hand and disabled, and workers of both kinds answer late. Holds come and go, limits change,
// circuits open, and models that fail wait for all of them.
func TestABusyQueueRaisesNoFalseAlarm(t *testing.T) {
	long.Only(t)
	q := &busy{queue: &queue{fixture.Live(t, testkit.Redis(t)), t}, next: make(chan struct{})}
	q.Intercept(q)
	q.ok(q.Store.Fleet().PutPolicy(t.Context(), q.parsed("p", `{"timeout":"1m","retries":{"strategy":"fixed","base":"1ms"},"jitter":0,"limits":[{"key":"{label.tenant}","running":3}],
			"circuit":{"key":"{label.tenant}","open_after":"3 of 3","probe":"1s"}}`)))
	for i := range 50 {
		q.Command(fmt.Sprintf(`{"type":"put","uid":"s%d","policy":"p","labels":{"tenant":"t%d"}}`, i, i%5))
	}
	stop := q.keepBusy()
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	var controlling sync.WaitGroup
	controlling.Go(func() { q.controlFlow(ctx) })
	for i := 0; i < 40 || q.Stats()["parked"] < 50 || q.Stats()["start"] < 100; i++ { // and until the queue has been busy
		report := q.check(Options{Repair: i%2 == 1})
		wrong := report.Counts["input-stale"].Found + report.Counts["claimed-orphan"].Found + report.Counts["gate-late"].Found
		if report.Total(Error) > 0 || report.Repaired() > 0 || wrong > 0 || report.Models == 0 {
			t.Errorf("run %d: expected models and nothing wrong, found %d and\n%s", i, report.Models, report)
			break
		}
	}
	cancel()
	controlling.Wait()
	stop()
	t.Logf("%d parked, %d released, %d circuits opened", q.Stats()["parked"], q.Stats()["released"], q.Stats()["circuit_opened"])
}

func (q *busy) controlFlow(ctx context.Context) {
	picks, _ := model.ParseSelector("tenant=t1")
	for i := 0; ctx.Err() == nil; i++ {
		now, err := q.Store.Now(ctx)
		if err != nil {
			return
		}
		key := "tenant=t" + strconv.Itoa(i%5)
		_ = flow.Of(q.Store).PutHold(ctx, &model.Hold{ID: "h" + strconv.Itoa(i%3), Selector: picks, Since: now})
		_ = flow.Of(q.Store).PutLimit(ctx, &model.Limit{Name: key, Running: 1 + i%4, Since: now}, now)
		q.another(ctx)
		_, _ = flow.Of(q.Store).ReleaseHold(ctx, "h"+strconv.Itoa((i+1)%3), 0, now)
		_, _ = flow.Of(q.Store).RemoveLimit(ctx, key, now)
		if i%5 == 0 {
			_, _ = flow.Of(q.Store).CloseCircuit(ctx, key, "ann", now)
		}
		q.another(ctx)
	}
}

// heapHook notes how much of the heap is in use at most, dead objects included, whenever a pipeline was run; and how much is asked of
// Redis at once at most, which is what others have to wait for.
type heapHook struct {
	passing
	mu        sync.Mutex // guards the rest
	pipelines int
	bytes     uint64
	widest    int // commands of a pipeline, which may be a transaction
	longest   int // elements of a reply
}

func (h *heapHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		h.measure(command)
		return err
	}
}

func (h *heapHook) measure(command redis.Cmder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	elements := 0
	switch c := command.(type) {
	case *redis.ScanCmd:
		page, _ := c.Val()
		elements = len(page)
	case *redis.StringSliceCmd:
		elements = len(c.Val())
	case *redis.ZSliceCmd:
		elements = len(c.Val())
	case *redis.MapStringStringCmd:
		elements = 2 * len(c.Val())
	case *redis.Cmd:
		whole, _ := c.Val().([]any)
		elements = len(whole)
	}
	h.longest = max(h.longest, elements)
}

func (h *heapHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		for _, command := range commands {
			h.measure(command)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.pipelines++
		h.widest, h.bytes = max(h.widest, len(commands)), max(h.bytes, stats.HeapAlloc)
		return err
	}
}
