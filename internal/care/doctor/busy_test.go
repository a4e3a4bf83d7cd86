package doctor

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
)

// busy is a queue in which everything changes as fast as it can.
type busy struct {
	*queue
	*traffic
}

func newBusy(t *testing.T, server *testkit.Server) busy {
	q := busy{queue: &queue{fixture.Live(t, server), t}}
	q.traffic = newTraffic(server, q.Store.Keys.Journal)
	q.Intercept(q.traffic)
	return q
}

// keepBusy runs dispatcher, poller, workers and an application until it is stopped.
func (q busy) keepBusy() (stop func()) {
	for i := range 150 {
		q.Command(fmt.Sprintf(`{"type":"put","uid":"m%d","payload":{"n":%d},"policy":{"timeout":"1m","retries":{"strategy":"fixed","base":"1ms"},"jitter":0}}`, i, i))
	}
	d, err := dispatcher.New(q.Store, dispatcher.Config{})
	q.ok(err)
	p, err := poller.New(q.Store, poller.Config{})
	q.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	running.Go(func() { _ = p.Run(ctx) })
	running.Go(func() { q.externalWorker(ctx) })
	running.Go(func() { q.pool(ctx) })
	running.Go(func() { q.application(ctx) })
	q.until(ctx, func() bool { return q.Stats()["failure"] >= 100 })
	return func() { cancel(); running.Wait() }
}

// externalWorker pops attempts and answers them one by one.
func (q busy) externalWorker(ctx context.Context) {
	for ctx.Err() == nil {
		popped, err := q.Redis.BLPop(ctx, time.Second, q.Store.Keys.Input).Result()
		if err == nil {
			q.fail(ctx, popped[1])
		}
	}
}

// pool takes attempts as our own worker pools do, and answers with the removal of what was taken.
func (q busy) pool(ctx context.Context) {
	for isNew := true; ctx.Err() == nil; {
		var answers []store.Answer
		q.until(ctx, func() bool { // to ask on and on would only keep the server from the others
			taken, _ := q.Store.Pool().Take(ctx, store.TakeRequest{Owner: "pool", New: isNew, Most: 10})
			for _, raw := range taken.Entries {
				answers = append(answers, store.Answer{Message: failure(raw), Ends: true, Entry: raw})
			}
			isNew = false
			return len(answers) > 0
		})
		_, _ = q.Store.Pool().Answer(ctx, "pool", answers)
	}
}

func (q busy) fail(ctx context.Context, raw string) {
	_ = q.Redis.RPush(ctx, q.Store.Keys.Output, failure(raw)).Err()
}

func failure(raw string) string {
	var uid, attempt string
	_, _ = fmt.Sscanf(raw, `{"big_table_uid":%q,"refresh_attempt_uid":%q`, &uid, &attempt)
	return fixture.Result("failure", uid, attempt)
}

// application puts, runs, disables, enables and removes models; the pauses keep the control list short.
func (q busy) application(ctx context.Context) {
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

// TestManyModelsAreCheckedInChunks bounds what is asked of Redis at once, for that is how long another client has to wait; how long that
// is here is only measured.
func TestManyModelsAreCheckedInChunks(t *testing.T) {
	models := long.Or(10_000, 100_000)
	q := &queue{fixture.New(t, testkit.Redis(t)), t}
	q.writeModels(models)
	ctx, cancel := context.WithCancel(t.Context())
	slowest := make(chan time.Duration)
	other := q.Server.Client(t)
	go func() { slowest <- slowestPing(ctx, other) }()
	most := &heapHook{}
	q.Intercept(most)
	begun := time.Now()
	report := q.check(Options{})
	took := time.Since(begun)
	cancel()
	wait := <-slowest
	if report.Models < models || report.Total(Error) != 10 || report.Counts["due-wrong"].Found != 10 {
		t.Errorf("expected %d models and 10 errors, found %d and\n%s", models, report.Models, report)
	}
	t.Logf("%d models in %s; slowest PING beside it %s; heap at most %d MB; at most %d commands and a reply of %d elements at once",
		models, took.Round(time.Millisecond), wait, most.bytes>>20, most.widest, most.longest)
	if most.widest > 1000 || most.longest > 1000 {
		t.Errorf("expected others to be let in between, found %d commands at once and a reply of %d elements", most.widest, most.longest)
	}
	if most.pipelines < models/200 || most.bytes > 64<<20 {
		t.Errorf("expected at most 64 MB of heap in many chunks, found %d MB in %d", most.bytes>>20, most.pipelines)
	}
}

// writeModels writes waiting models as a poller would, of which ten are missing in the due set.
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

func slowestPing(ctx context.Context, client redis.UniversalClient) (slowest time.Duration) {
	for ctx.Err() == nil {
		begun := time.Now()
		_ = client.Ping(context.WithoutCancel(ctx)).Err()
		slowest = max(slowest, time.Since(begun))
	}
	return slowest
}

// TestABusyQueueRaisesNoFalseAlarm checks a queue, with and without --repair, while everything in it changes as fast as it can: models fail and are
// retried at once, are put and removed, run by hand and disabled, and workers of both kinds answer late. Holds come and go, limits change,
// circuits open, and models that fail wait for all of them.
func TestABusyQueueRaisesNoFalseAlarm(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		q := newBusy(t, server)
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
		for i := 0; i < long.Or(2, 40) || q.Stats()["parked"] < 50 || q.Stats()["start"] < 100; i++ { // at least two, and until the queue has been busy
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
	})
}

// controlFlow begins and ends holds, and sets and forgets limits, until it is stopped.
func (q busy) controlFlow(ctx context.Context) {
	picks, _ := model.ParseSelector("tenant=t1")
	for i := 0; ctx.Err() == nil; i++ {
		now, err := q.Store.Now(ctx)
		if err != nil {
			return
		}
		key := "tenant=t" + strconv.Itoa(i%5)
		_ = q.Store.Fleet().PutHold(ctx, &model.Hold{ID: "h" + strconv.Itoa(i%3), Selector: picks, Since: now})
		_ = q.Store.Fleet().PutLimit(ctx, &model.Limit{Name: key, Running: 1 + i%4, Since: now}, now)
		q.another(ctx)
		_, _ = q.Store.Fleet().ReleaseHold(ctx, "h"+strconv.Itoa((i+1)%3), 0, now)
		_, _ = q.Store.Fleet().RemoveLimit(ctx, key, now)
		if i%5 == 0 {
			_, _ = q.Store.Fleet().CloseCircuit(ctx, key, "ann", now)
		}
		q.another(ctx)
	}
}
