package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/health"
	"github.com/refreshd/refreshd/internal/ui/metrics"
	"github.com/refreshd/refreshd/internal/ui/traces"
	"github.com/refreshd/refreshd/worker"
)

// observedStore measures and traces the commits to a part of a queue.
type observedStore struct {
	*store.Store
	queue   string
	loop    *metrics.Loop
	traces  *traces.Traces
	claimed time.Time // when messages were claimed last; zero: it is the store of a dispatcher
}

func (s *observedStore) Claim(ctx context.Context, owner string, holds store.Holding, limit int, lease time.Duration) (store.Claim, error) {
	claim, err := s.Store.Claim(ctx, owner, holds, limit, lease)
	s.claimed = time.Now()
	return claim, err
}

func (s *observedStore) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	since := s.claimed
	if since.IsZero() {
		since = time.Now()
	}
	codes, err := s.Store.Commit(ctx, batch)
	s.loop.Committed(batch, codes)
	s.traces.Committed(s.queue, batch, codes, since)
	return codes, err
}

// both reports each round to the health checks and to the metrics.
func both(health func() func(error), loop *metrics.Loop) func() func(error) {
	return func() func(error) {
		well, measured := health(), loop.Begin()
		return func(err error) {
			well(err)
			measured(err)
		}
	}
}

// collectors are the variables that name a collector of OpenTelemetry.
var collectors = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

// openTraces traces attempts if a collector is named. The caller calls the returned function at the end.
func (a *app) openTraces(ctx context.Context, flags *loopFlags) (func(), error) {
	read := func(variable string) bool { return os.Getenv(variable) != "" } // as the library does
	named := flags.traces != "" || slices.ContainsFunc(collectors, read)
	if !named || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return func() {}, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { a.log.Warn().Err(err).Msg("sending traces failed") }))
	sending, err := traces.New(ctx, flags.traces, readVersion().Version, time.Now)
	if err != nil {
		return nil, usageError{err}
	}
	a.traces = sending
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leastStop)
		defer cancel()
		if err := sending.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
			a.log.Warn().Err(err).Msg("sending traces failed")
		}
	}, nil
}

// checkedQueue reports the calls of a worker to the health checks. A busy worker takes and pushes nothing, but calls Redis at least once a second to
// look after its attempts: any call that Redis answers counts as progress.
type checkedQueue struct {
	worker.Queue
	steady, taking, pushing *health.Progress
}

// checked returns the parts of a queue with their calls reported. The worker makes progress as long as any part does.
func (a *app) checked(queue *store.Queue, config worker.Config) (queues []worker.Queue, drop func()) {
	queues = make([]worker.Queue, len(queue.Parts))
	tick := config.WithDefaults().FenceEvery
	steady := a.checks.Loop(a.loopName("worker", queue.Name), tick, false)
	checks := []*health.Progress{steady}
	for i, part := range queue.Parts {
		name := a.loopName("", queue.Name)
		if len(queue.Parts) > 1 {
			name = " " + part.Keys.Queue
		}
		taking, pushing := a.checks.Loop("taking"+name, tick, true), a.checks.Loop("pushing"+name, tick, true)
		queues[i], checks = &checkedQueue{part.Pool(), steady, taking, pushing}, append(checks, taking, pushing)
	}
	return queues, func() { a.checks.Drop(checks...) }
}

// begin reports one call for the whole worker and for one part. The returned function reports its result.
func (q *checkedQueue) begin(part *health.Progress) func(*error) {
	whole, own := q.steady.Begin(), part.Begin()
	return func(err *error) { whole(*err); own(*err) }
}

func (q *checkedQueue) Take(ctx context.Context, taking store.TakeRequest) (taken store.Taken, err error) {
	defer q.begin(q.taking)(&err)
	return q.Queue.Take(ctx, taking)
}

func (q *checkedQueue) WaitInput(ctx context.Context) (found bool, err error) {
	defer q.begin(q.taking)(&err)
	return q.Queue.WaitInput(ctx)
}

func (q *checkedQueue) Answer(ctx context.Context, owner string, answers []store.Answer) (pushed []bool, err error) {
	defer q.begin(q.pushing)(&err)
	return q.Queue.Answer(ctx, owner, answers)
}

func (q *checkedQueue) Fences(ctx context.Context, uids []string) (fences []store.Fence, now time.Time, err error) {
	defer q.begin(nil)(&err)
	return q.Queue.Fences(ctx, uids)
}

func (q *checkedQueue) Heartbeat(ctx context.Context, owner string) (taken store.Taken, err error) {
	defer q.begin(nil)(&err)
	return q.Queue.Heartbeat(ctx, owner)
}
