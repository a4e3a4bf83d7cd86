package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// BenchmarkMemory measures what a model with the payload of a 100-byte URL takes in Redis, without the journal: idle, and after ten
// attempts that have failed.
func BenchmarkMemory(b *testing.B) {
	const models = 10_000
	for b.Loop() {
		q := fixture.Live(b, testkit.Redis(b))
		bench := &Bench{Store: q.Store, Redis: q.Redis, Now: time.Now}
		ctx := context.Background()
		now, err := q.Store.Now(ctx)
		if err != nil {
			b.Fatal(err)
		}
		empty := bench.memory(b)
		if err := bench.putPolicy(ctx); err != nil {
			b.Fatal(err)
		}
		if err := bench.Fill(ctx, 0, models, AtOnce); err != nil {
			b.Fatal(err)
		}
		idle := bench.memory(b)
		for range 10 {
			now = now.Add(time.Hour)
			bench.each(b, models, func(r *store.Record) model.Decision { return r.Start(now, fmt.Sprintf("%026d", r.AttemptNo)) }, now)
			now = now.Add(time.Minute)
			bench.each(b, models, func(r *store.Record) model.Decision { return r.Fail(policy.Failure{Reason: "HTTP 503"}, now) }, now)
		}
		b.ReportMetric(float64(idle-empty)/models, "bytes/idle")
		b.ReportMetric(float64(bench.memory(b)-empty)/models, "bytes/failed")
		b.ReportMetric(0, "ns/op")
	}
}

func (b *Bench) each(t testing.TB, models int, decide func(*store.Record) model.Decision, now time.Time) {
	t.Helper()
	ctx := context.Background()
	for first := 0; first < models; first += fillBatch {
		uids := make([]string, 0, fillBatch)
		for n := first; n < min(models, first+fillBatch); n++ {
			uids = append(uids, fmt.Sprintf(uidPrefix+"%09d", n))
		}
		records := check.Got(b.Store.Load(ctx, uids))(t)
		batch := store.Batch{Now: now, MaxQueued: models}
		for _, uid := range uids {
			batch.Items = append(batch.Items, store.Item{Transition: records[uid].Decide(decide(records[uid]), now)})
		}
		check.Must(t, check.Only(b.Store.Commit(ctx, batch)))
	}
	check.Must(t, b.Redis.Del(ctx, b.Store.Keys.Input).Err())
}

// memory is the memory of Redis, without the journal.
func (b *Bench) memory(t testing.TB) int {
	t.Helper()
	info := check.Got(b.Store.Report().Server(context.Background()))(t)
	var used int
	_, _ = fmt.Sscan(info["used_memory"], &used)
	journal, _ := b.Redis.MemoryUsage(context.Background(), b.Store.Keys.Journal, 0).Result() // none is 0
	return used - int(journal)
}
