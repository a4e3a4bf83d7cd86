package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/faces/metrics"
	"github.com/refreshd/refreshd/internal/faces/traces"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/poller"
)

// loopStore is what the loops need of a part of a queue.
type loopStore interface {
	dispatcher.Store
	poller.Store
}

// observedStore is a part of a queue whose commits are measured and traced.
type observedStore struct {
	*store.Store
	queue   string
	loop    *metrics.Loop  // nil: nobody asks for numbers
	traces  *traces.Traces // nil: nobody asks for traces
	claimed time.Time      // when messages were claimed last; zero: it is the store of a dispatcher
}

// observed returns a part with its commits measured and traced, unless nobody asks for either.
func (a *app) observed(queue string, part *store.Store, loop *metrics.Loop) loopStore {
	if loop == nil && a.traces == nil {
		return part
	}
	return &observedStore{Store: part, queue: queue, loop: loop, traces: a.traces}
}

func (s *observedStore) Claim(ctx context.Context, owner string, limit int, lease time.Duration) (store.Claim, error) {
	claim, err := s.Store.Claim(ctx, owner, limit, lease)
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
	if s.traces != nil {
		s.traces.Committed(s.queue, batch, codes, since)
	}
	return codes, err
}

// both tells the health checks and the metrics of each round.
func both(health func() func(error), loop *metrics.Loop) func() func(error) {
	if loop == nil {
		return health
	}
	return func() func(error) {
		well, measured := health(), loop.Begin()
		return func(err error) {
			well(err)
			measured(err)
		}
	}
}

// collectors are the variables of the environment by which OpenTelemetry is told where traces go.
var collectors = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

// openTraces lets attempts be traced if somebody says where to. The caller calls the returned function when the process ends.
func (a *app) openTraces(ctx context.Context, flags *loopFlags) (func(), error) {
	named := flags.traces != ""
	for _, name := range collectors {
		named = named || os.Getenv(name) != "" // the library reads it there
	}
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
