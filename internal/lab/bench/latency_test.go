// Package bench measures how late refreshd is and how much it moves. Nothing here asserts a time.
package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// servers are those that a benchmark runs on.
var servers = map[string]func(testing.TB) *testkit.Server{
	"redis-server": func(t testing.TB) *testkit.Server { return testkit.Redis(t) },
	"miniredis":    testkit.Miniredis,
}

type queue struct {
	*fixture.Queue
	b *testing.B
}

func onEach(b *testing.B, measure func(q *queue)) {
	for name, server := range servers {
		b.Run(name, func(b *testing.B) {
			q := &queue{fixture.Live(b, server(b)), b}
			d, err := dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{})
			if err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { _ = d.Run(ctx) })
			defer running.Wait()
			defer stop()
			measure(q)
		})
	}
}

// put saves a one-shot whose attempts time out after a while.
func (q *queue) put(uid string, timeout time.Duration, refreshAt func(now time.Time) time.Time) {
	q.b.Helper()
	ctx := context.Background()
	now, err := q.Store.Now(ctx)
	if err != nil {
		q.b.Fatal(err)
	}
	policy := policy.Policy{Timeout: timeout, Alignment: policy.AlignPlanned, OnExhausted: policy.GiveUp}
	definition := model.Definition{UID: uid, Payload: "{}", PolicyName: policy.ContentName()}
	record := &store.Record{Model: model.Model{UID: uid}}
	decision, _, err := record.Put(definition, policy, false, now)
	if err != nil {
		q.b.Fatal(err)
	}
	decision.Next.RefreshAt = refreshAt(now)
	q.Commit(now, record.Decide(decision, now))
}

// await follows the journal until an event of a model and returns its fields.
func (q *queue) await(uid string, event model.Event) (fields map[string]any) {
	q.b.Helper()
	q.Follow(func(entries []redis.XMessage) bool {
		for _, entry := range entries {
			if entry.Values["uid"] == uid && entry.Values["event"] == string(event) {
				fields = store.EntryFields(entry.Values)
				return true
			}
		}
		return false
	})
	return fields
}

func (q *queue) clock(value any) time.Time {
	q.b.Helper()
	at, err := time.Parse(time.RFC3339, fmt.Sprint(value))
	if err != nil {
		q.b.Fatal(err)
	}
	return at
}

// report gives the median and the 99th percentile in milliseconds.
func (q *queue) report(lateness []time.Duration) {
	slices.Sort(lateness)
	ms := func(share float64) float64 {
		return float64(lateness[int(share*float64(len(lateness)-1))].Microseconds()) / 1000
	}
	q.b.ReportMetric(ms(0.50), "p50-ms")
	q.b.ReportMetric(ms(0.99), "p99-ms")
	q.b.ReportMetric(0, "ns/op")
}

// BenchmarkSaveToQueued measures from the reply to a save until a waiting worker has the attempt.
func BenchmarkSaveToQueued(b *testing.B) {
	onEach(b, func(q *queue) {
		var lateness []time.Duration
		for i := 0; q.b.Loop(); i++ {
			q.put(fmt.Sprint("m", i), time.Hour, func(now time.Time) time.Time { return now })
			saved := time.Now()
			if err := q.Redis.BLPop(context.Background(), 10*time.Second, q.Store.Keys.Input).Err(); err != nil {
				q.b.Fatal(err)
			}
			lateness = append(lateness, time.Since(saved))
		}
		q.report(lateness)
	})
}

// BenchmarkDueToStarted measures how long after refresh_at a sleeping dispatcher starts the attempt, on the clock of Redis.
func BenchmarkDueToStarted(b *testing.B) {
	onEach(b, func(q *queue) {
		var lateness []time.Duration
		for i := 0; q.b.Loop(); i++ {
			var due time.Time
			uid := fmt.Sprint("m", i)
			q.put(uid, time.Hour, func(now time.Time) time.Time { due = now.Add(50 * time.Millisecond); return due })
			started := q.clock(q.await(uid, model.EventStart)["at"])
			lateness = append(lateness, started.Sub(due))
			q.Redis.Del(context.Background(), q.Store.Keys.Journal, q.Store.Keys.Input)
		}
		q.report(lateness)
	})
}

// BenchmarkDeadlineToApplied measures how long after the deadline the timeout is applied, on the clock of Redis.
func BenchmarkDeadlineToApplied(b *testing.B) {
	onEach(b, func(q *queue) {
		var lateness []time.Duration
		for i := 0; q.b.Loop(); i++ {
			uid := fmt.Sprint("m", i)
			q.put(uid, 50*time.Millisecond, func(now time.Time) time.Time { return now })
			if _, ok := q.Redis.BLPop(context.Background(), 10*time.Second, q.Store.Keys.Input).Result(); ok != nil {
				q.b.Fatal(ok)
			}
			deadline := q.clock(q.await(uid, model.EventStart)["deadline_at"])
			applied := q.clock(q.await(uid, model.EventTimeout)["at"])
			lateness = append(lateness, applied.Sub(deadline))
			q.Redis.Del(context.Background(), q.Store.Keys.Journal)
		}
		q.report(lateness)
	})
}
