// Package traces sends the spans of an attempt to OpenTelemetry: its late start, its wait in line, the work, and how its result was applied.
//
// It keeps no state. The ids of a trace and its spans follow from the uid of the attempt, so that a dispatcher, a worker and a poller add to the
// same trace without knowing each other. Instants are those of the clock of Redis.
package traces

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/worker"
)

// Traces sends spans to a collector. It is safe for concurrent use. Nil traces send nothing.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	clock    func() time.Time
}

// New returns traces for the collector at an address, such as http://127.0.0.1:4318; empty: as the environment says by OTEL_EXPORTER_OTLP_*. The
// clock measures durations. The caller closes them.
func New(ctx context.Context, address, version string, clock func() time.Time) (*Traces, error) {
	var options []otlptracehttp.Option
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, document.Refuse("traces", "the URL of a collector, as in http://127.0.0.1:4318", document.Found(address))
		}
		if strings.Trim(u.Path, "/") == "" {
			u = u.JoinPath("v1", "traces")
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.String()))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("open the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "refreshd"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the source of traces: %w", err)
	}
	// The collector decides whether to keep a trace: each daemon sends its own part, and knows of no other.
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about), sdk.WithIDGenerator(ids{}), sdk.WithSampler(sdk.AlwaysSample()))
	return &Traces{provider, provider.Tracer("github.com/refreshd/refreshd"), clock}, nil
}

// Close sends the rest, as long as ctx lasts.
func (t *Traces) Close(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// Committed records the attempts that a batch of a queue has started, begun or ended. codes are the outcome of the batch; since is when it was begun, by
// the clock of this process.
func (t *Traces) Committed(queue string, batch store.Batch, codes []store.Code, since time.Time) {
	if t == nil {
		return
	}
	for i, code := range codes {
		transition := batch.Items[i].Transition
		if transition == nil || code != store.CodeApplied {
			continue
		}
		d, next := transition.Decision(), &transition.Decision().Next
		s := span{queue: queue, model: transition.UID(), attempt: next.AttemptUID, no: next.AttemptNo, to: batch.Now}
		switch {
		case d.Event == model.EventStart && next.Traced:
			if s.part, s.from = model.SpanSchedule, transition.Prior().RefreshAt; s.from.IsZero() || s.from.After(s.to) {
				s.from = s.to
			}
		case d.Event == model.EventStarted && next.Traced:
			s.part, s.from, s.worker = model.SpanWait, next.StartedAt, next.Worker
			s.parent = model.SpanID(s.attempt, model.SpanSchedule)
		case d.Ended != nil && transition.Prior().Traced:
			s.part, s.attempt, s.no, s.worker = model.SpanApply, d.Ended.AttemptUID, d.Ended.AttemptNo, d.Ended.Worker
			s.parent = cmp.Or(model.SpanWithin(d.Traceparent, s.attempt), model.SpanID(s.attempt, model.SpanSchedule))
			s.from, s.to = batch.Now, batch.Now.Add(max(0, t.clock().Sub(since)))
			s.outcome, s.reason = string(d.Event), d.Ended.Reason
			s.failed = d.Event == model.EventFailure || d.Event == model.EventTimeout
		default:
			continue
		}
		t.record(s)
	}
}

// Run records the work of a worker pool of a queue, see worker.Config.
func (t *Traces) Run(queue string) func(*worker.Attempt, time.Time) func(model.MessageType) {
	return func(a *worker.Attempt, begun time.Time) func(model.MessageType) {
		parent := model.SpanWithin(a.Traceparent, a.AttemptUID)
		if parent == "" { // the trace is not ours
			return nil
		}
		began := t.clock()
		if begun.IsZero() {
			begun = began
		}
		a.Traceparent = model.Traceparent(a.AttemptUID, model.SpanRun)
		return func(kind model.MessageType) {
			outcome := string(kind)
			if outcome == "" {
				outcome = "cancelled"
			}
			t.record(span{
				queue: queue, model: a.UID, attempt: a.AttemptUID, no: a.AttemptNo, part: model.SpanRun, parent: parent,
				from: begun, to: begun.Add(max(0, t.clock().Sub(began))), outcome: outcome, failed: kind == model.MessageFailure,
			})
		}
	}
}

type span struct {
	queue, model, attempt string
	no                    int
	part                  string
	parent                string // empty: it is the root
	from, to              time.Time
	outcome               string // empty: it has none
	failed                bool
	reason, worker        string
}

func (t *Traces) record(s span) {
	id, err := trace.TraceIDFromHex(model.TraceID(s.attempt))
	if err != nil {
		return // it is a hash
	}
	own, _ := trace.SpanIDFromHex(model.SpanID(s.attempt, s.part))
	ctx := context.WithValue(context.Background(), idsKey{}, ids{id, own})
	if parent, err := trace.SpanIDFromHex(s.parent); err == nil {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: parent, TraceFlags: trace.FlagsSampled, Remote: true}))
	}
	attributes := []attribute.KeyValue{
		attribute.String("refreshd.queue", s.queue), attribute.String("refreshd.model", s.model),
		attribute.String("refreshd.attempt", s.attempt), attribute.Int("refreshd.attempt_no", s.no),
	}
	for name, text := range map[string]string{"refreshd.outcome": s.outcome, "refreshd.worker": s.worker} {
		if text != "" {
			attributes = append(attributes, attribute.String(name, text))
		}
	}
	_, started := t.tracer.Start(ctx, s.part, trace.WithTimestamp(s.from), trace.WithAttributes(attributes...))
	if s.failed {
		started.SetStatus(codes.Error, s.reason)
	}
	started.End(trace.WithTimestamp(s.to))
}

// ids are the ids of a span; as a generator they come from the context.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

type idsKey struct{}

// NewIDs is called by the library for a root.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	own, _ := ctx.Value(idsKey{}).(ids)
	return own.trace, own.span
}

// NewSpanID is called by the library for any other span.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	own, _ := ctx.Value(idsKey{}).(ids)
	return own.span
}
