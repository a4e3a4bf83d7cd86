package metrics_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/ui/metrics"
	domain "github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// A result that is refused comes again with the next batch: it is counted when it is applied, as is the transition that it caused.
func TestWhatWasRefusedIsCountedOnceWhenItIsApplied(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Build{}, time.Now)
	ended := (&store.Record{}).Decide(domain.Decision{Event: domain.EventSuccess, Ended: &domain.Attempt{Duration: time.Minute}}, fixture.Start)
	loop, batch := m.Loop("q", "poller"), store.Batch{Now: fixture.Start, Items: []store.Item{
		{Transition: ended, Message: store.Claimed{Entry: "oresult"}},
		{Counter: "stale", Message: store.Claimed{Entry: "oresult"}},
		{Counter: "malformed", Message: store.Claimed{Entry: "n1 command"}},
	}}
	loop.Committed(batch, nil) // nobody knows
	for _, code := range []store.Code{store.CodeConflict, store.CodeGone, store.CodeApplied} {
		loop.Committed(batch, []store.Code{code, code, code})
	}
	want := map[string]float64{
		"refreshd_commit_refusals_total{code=conflict,loop=poller,queue=q}": 3,
		"refreshd_commit_refusals_total{code=gone,loop=poller,queue=q}":     3,
		"refreshd_transitions_total{event=success,loop=poller,queue=q}":     1,
		"refreshd_results_total{outcome=success,queue=q}":                   1,
		"refreshd_results_total{outcome=stale,queue=q}":                     1,
		"refreshd_commands_total{outcome=malformed,queue=q}":                1,
		"refreshd_attempt_seconds{outcome=success,queue=q} count":           1,
		"refreshd_attempt_seconds{outcome=success,queue=q} sum":             60,
	}
	got := values(scrape(t, m), "refreshd_build_info", "refreshd_commit_items")
	equal(t, want, got)
}

func TestAStartIsLateAndAnAttemptIsWaitedForByItsOwnTimes(t *testing.T) {
	t.Parallel()
	begun := domain.State{StartedAt: fixture.Start.Add(-40 * time.Second), RefreshAt: fixture.Start.Add(-time.Hour)}
	for _, test := range []struct {
		decision domain.Decision
		want     map[string]float64
	}{
		{domain.Decision{Event: domain.EventStart}, map[string]float64{"refreshd_transitions_total{event=start,loop=loop,queue=q}": 1}}, // it had no time of its own
		{domain.Decision{Event: domain.EventStarted, Next: begun}, map[string]float64{
			"refreshd_transitions_total{event=started,loop=loop,queue=q}": 1, "refreshd_wait_seconds{queue=q} count": 1, "refreshd_wait_seconds{queue=q} sum": 40,
		}},
	} {
		m := metrics.New(metrics.Build{}, time.Now)
		item := store.Item{Transition: (&store.Record{}).Decide(test.decision, fixture.Start)}
		m.Loop("q", "loop").Committed(store.Batch{Now: fixture.Start, Items: []store.Item{item}}, []store.Code{store.CodeApplied})
		diff := cmp.Diff(test.want, values(scrape(t, m), "refreshd_build_info", "refreshd_commit_items"))
		failIf(t, diff != "", "%s (-want +got):\n%s", test.decision.Event, diff)
	}
}

func TestTheMeasuredWorkOfAHandlerEndsAsTheHandlerDoes(t *testing.T) {
	t.Parallel()
	m, failed := metrics.New(metrics.Build{}, time.Now), errors.New("no such feed")
	handler := m.Work("q", func(context.Context, *worker.Attempt) error { return failed })
	err := handler(t.Context(), &worker.Attempt{})
	failIf(t, !errors.Is(err, failed), "expected %v, found %v", failed, err)
	got := values(scrape(t, m))
	failIf(t, got["refreshd_worker_run_seconds{queue=q} count"] != 1, "expected one run to be measured, found %v", got)
}

// Numbers of some parts alone would pass for those of the queue.
func TestAQueueOfWhichAPartFailsTellsNoNumbers(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		fault := new(testkit.Fault)
		queue := &store.Queue{Name: "q"}
		for _, name := range []string{"a", "b"} {
			client := server.Client(t)
			part, err := store.New(&redis.Clients{Read: client, Write: client, Block: client}, store.Config{Queue: name})
			if err == nil {
				_, err = report.Of(part).Stats(t.Context()) // there is a connection
			}
			must(t, err)
			if name == "b" {
				client.AddHook(fault)
			}
			queue.Parts = append(queue.Parts, part)
		}
		for n := 1; ; n++ {
			m := metrics.New(metrics.Build{}, time.Now)
			m.Queue(queue)
			fault.Arm(n)
			families := scrape(t, m)
			up := families["refreshd_queue_up"].Metric[0].GetGauge().GetValue()
			told := families["refreshd_queue_models"] != nil
			stopIf(t, told == fault.Struck() || told != (up == 1), "call %d failed: %v; found up %g and numbers: %v", n, fault.Struck(), up, told)
			if !fault.Struck() {
				failIf(t, n < 5, "expected at least 4 calls, found %d", n-1)
				return
			}
		}
	})
}

func TestAProcessTellsItsNumbersWhileRedisIsAwayOrHangs(t *testing.T) {
	t.Parallel()
	listener := check.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	for _, address := range []string{testkit.Nowhere, listener.Addr().String()} { // the listener takes connections, and reads nothing
		clients := fixture.Connect(t, "redis://"+address)
		queue := check.Got(store.New(clients, store.Config{}))(t)
		m := metrics.New(metrics.Build{}, time.Now)
		m.Watch(clients)
		m.Queue(&store.Queue{Name: "bigtables", Parts: []*store.Store{queue}})
		m.Loop("bigtables", "dispatcher").Begin()(nil)
		families := scrape(t, m)
		up := families["refreshd_queue_up"]
		failIf(t, up == nil || up.Metric[0].GetGauge().GetValue() != 0, "expected that the numbers of the queue are absent, found %v", up)
		failIf(t, families["refreshd_queue_models"] != nil, "nobody has told how many models there are")
		failIf(t, families["refreshd_round_seconds"] == nil || families["go_goroutines"] == nil, "the process does not tell its own numbers")
		failIf(t, values(scrape(t, m))["refreshd_redis_errors_total{kind=unreachable}"] == 0, "the calls that failed are not counted")
	}
}
