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
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/scripts"
)

// TestABusyQueueRaisesNoFalseAlarm examines a queue, with and without --repair, while everything in it changes as fast as it can: models
// fail and are retried at once, are put and removed, run by hand and disabled, and workers of both kinds answer late.
func TestABusyQueueRaisesNoFalseAlarm(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		w := &ward{fixture.Live(t, server), t}
		stop := w.bustle()
		defer stop()
		for i := range long.Or(3, 40) {
			report := w.examine(Options{Repair: i%2 == 1})
			if report.Total(Error) > 0 || report.Mended() > 0 || report.Counts["input-stale"].Found > 0 || report.Counts["claimed-orphan"].Found > 0 {
				t.Fatalf("run %d: expected nothing wrong, found\n%s", i, report)
			}
			if i == 0 && report.Models == 0 {
				t.Fatal("expected models")
			}
		}
		stop()
		t.Logf("%d transitions", w.Stats()["start"])
		if w.Stats()["start"] < 100 {
			t.Errorf("expected a busy queue, found %v", w.Stats())
		}
	})
}

// bustle runs dispatcher, poller, workers and an application until it is stopped.
func (w *ward) bustle() (stop func()) {
	for i := range 150 {
		w.Command(fmt.Sprintf(`{"type":"put","uid":"m%d","payload":{"n":%d},"policy":{"timeout":"1m","retries":{"strategy":"fixed","base":"1ms"},"jitter":0}}`, i, i))
	}
	d, err := dispatcher.New(w.Store, dispatcher.Config{})
	w.ok(err)
	p, err := poller.New(w.Store, poller.Config{})
	w.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	running.Go(func() { _ = p.Run(ctx) })
	running.Go(func() { w.foreignWorker(ctx) })
	running.Go(func() { w.pool(ctx) })
	running.Go(func() { w.application(ctx) })
	for w.Stats()["failure"] < 100 {
		w.nextTransition(ctx)
	}
	return func() { cancel(); running.Wait() }
}

// foreignWorker pops attempts and answers them one by one.
func (w *ward) foreignWorker(ctx context.Context) {
	for ctx.Err() == nil {
		raw, err := w.Redis.LPop(ctx, w.Store.Keys.Input()).Result()
		if err == nil {
			w.fail(ctx, raw)
		}
	}
}

// pool takes attempts as our own worker pools do, and answers with the removal of what was taken.
func (w *ward) pool(ctx context.Context) {
	for isNew := true; ctx.Err() == nil; isNew = false {
		taken, err := w.Store.Take(ctx, scripts.TakeRequest{Owner: "pool", New: isNew, Most: 10})
		if err != nil {
			continue
		}
		var answers []scripts.Answer
		for _, raw := range taken.Entries {
			answers = append(answers, scripts.Answer{Message: failure(raw), Ends: true, Entry: raw})
		}
		_, _ = w.Store.Answer(ctx, "pool", answers)
	}
}

func (w *ward) fail(ctx context.Context, raw string) {
	_ = w.Redis.RPush(ctx, w.Store.Keys.Output(), failure(raw)).Err()
}

func failure(raw string) string {
	var uid, attempt string
	_, _ = fmt.Sscanf(raw, `{"big_table_uid":%q,"refresh_attempt_uid":%q`, &uid, &attempt)
	return fixture.Result("failure", uid, attempt)
}

// application puts, runs, disables, enables and removes models; the pauses keep the control list short.
func (w *ward) application(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		uid := strconv.Quote("n" + strconv.Itoa(i%50))
		pipe := w.Redis.Pipeline()
		for _, command := range []string{
			`{"type":"put","uid":` + uid + `,"rrule":"FREQ=SECONDLY","policy":{"retries":["0s"],"timeout":"1m"}}`, `{"type":"run","uid":` + uid + `,"force":true}`,
			`{"type":"disable","uid":` + uid + `}`, `{"type":"enable","uid":` + uid + `}`, `{"type":"remove","uid":"n` + strconv.Itoa((i+25)%50) + `"}`,
		} {
			pipe.RPush(ctx, w.Store.Keys.Control(), command)
		}
		_, _ = pipe.Exec(ctx)
		for ctx.Err() == nil && w.Redis.LLen(ctx, w.Store.Keys.Control()).Val() > 20 {
			w.nextTransition(ctx)
		}
	}
}

// nextTransition waits until another transition stands in the journal; nothing else makes what is waited for true.
func (w *ward) nextTransition(ctx context.Context) {
	_ = w.Redis.XRead(ctx, &redis.XReadArgs{Streams: []string{w.Store.Keys.Journal(), "$"}, Count: 1, Block: time.Second}).Err()
}

// TestManyModelsAreExaminedInChunks also measures how long a neighbour has to wait meanwhile.
func TestManyModelsAreExaminedInChunks(t *testing.T) {
	t.Parallel()
	models := long.Or(10_000, 100_000)
	w := &ward{fixture.New(t, testkit.Redis(t)), t}
	w.crowd(models)
	ctx, cancel := context.WithCancel(t.Context())
	slowest := make(chan time.Duration)
	neighbour := w.Server.Client(t)
	go func() { slowest <- slowestPing(ctx, neighbour) }()
	most := uint64(0)
	begun := time.Now()
	report := w.examine(Options{Repair: false, Progress: func(int) { most = max(most, heap()) }})
	took := time.Since(begun)
	cancel()
	wait := <-slowest
	if report.Models < models || report.Total(Error) != 10 || report.Counts["due-wrong"].Found != 10 {
		t.Errorf("expected %d models and 10 errors, found %d and\n%s", models, report.Models, report)
	}
	t.Logf("%d models in %s; slowest PING beside it %s; heap at most %d MB", models, took.Round(time.Millisecond), wait, most>>20)
	if most > 64<<20 {
		t.Errorf("expected at most 64 MB of heap, found %d MB", most>>20)
	}
}

// crowd writes waiting models as a poller would, of which ten are missing in the due set.
func (w *ward) crowd(n int) {
	w.t.Helper()
	k, at := w.Store.Keys, fixture.Start.Add(time.Hour)
	for from := 0; from < n; from += 1000 {
		pipe := w.Redis.Pipeline()
		for i := from; i < from+1000; i++ {
			uid := "m" + strconv.Itoa(i)
			pipe.HSet(w.t.Context(), k.Model(uid), "rev", "1", "rrule", "FREQ=HOURLY", "dtstart", "2026-01-01T00:00:00", "refresh_at", "2026-11-21T08:00:00.000Z", "refresh_why", "planned")
			pipe.Set(w.t.Context(), k.Payload(uid), `{"input_url":"https://example.com/a/b/c/`+uid+`"}`, 0)
			if i%(n/10) != 0 {
				pipe.ZAdd(w.t.Context(), k.Due(), redis.Z{Score: float64(at.UnixMilli()), Member: uid})
			}
		}
		_, err := pipe.Exec(w.t.Context())
		w.ok(err)
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
