package main

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// receiver is a collector of OpenTelemetry on loopback.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span // guarded by mu
	paths []string     // guarded by mu
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		var export collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &export); err != nil {
			t.Errorf("expected spans, found %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.paths = append(r.paths, request.Method+" "+request.URL.Path)
		for _, resource := range export.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func TestARefreshIsOneTraceOfFourParts(t *testing.T) {
	t.Parallel()
	r, parents := newReceiver(t), make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		parents <- request.Header.Get("Traceparent")
	}))
	t.Cleanup(service.Close)
	c := &console{t: t}
	up := c.start("up", "-o", "json", "--models", file(t, "models.yaml", "uid: a\n"), "--http", service.URL, "--traces", r.URL)
	var hint struct{ Redis string }
	if err := json.Unmarshal([]byte(up.line(t, "redis")), &hint); err != nil {
		t.Fatal(err)
	}
	up.line(t, `"uid":"a","result":"created"`)
	parent := testkit.Await(t, parents, "a request of the worker")
	options, err := redis.ParseURL(hint.Redis)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	var attempt string
	testkit.Eventually(t, "its result is applied", func() bool {
		attempt = client.HGet(t.Context(), "bigtables:model:a", "last_attempt_uid").Val()
		return attempt != ""
	})
	if code := up.stop(); code != exitDone { // it sends what it has
		t.Fatalf("exit code %d\n%s", code, up.stderr)
	}
	if want := model.Traceparent(attempt, model.SpanRun); parent != want {
		t.Errorf("the service was called within %q, want %q", parent, want)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	names, parts := map[string]string{"": "nothing"}, map[string]string{}
	for _, span := range r.spans {
		names[hex.EncodeToString(span.SpanId)] = span.Name
	}
	for _, span := range r.spans {
		parts[span.Name] = names[hex.EncodeToString(span.ParentSpanId)]
		if hex.EncodeToString(span.TraceId) != model.TraceID(attempt) || span.EndTimeUnixNano < span.StartTimeUnixNano || time.Since(time.Unix(0, int64(span.StartTimeUnixNano))) > time.Hour {
			t.Errorf("%s belongs to another trace or time: %v", span.Name, span)
		}
	}
	if diff := cmp.Diff(map[string]string{"schedule": "nothing", "wait": "schedule", "run": "schedule", "apply": "run"}, parts); diff != "" || len(r.spans) != 4 {
		t.Errorf("%d parts and what they are parts of (-want +got):\n%s", len(r.spans), diff)
	}
	if len(r.paths) == 0 || r.paths[0] != "POST /v1/traces" {
		t.Errorf("asked for %v", r.paths)
	}
}

func TestWithoutACollectorNothingIsTraced(t *testing.T) {
	for _, name := range append(collectors, "OTEL_SDK_DISABLED") {
		t.Setenv(name, "")
	}
	a := &app{}
	done, err := a.openTraces(t.Context(), &loopFlags{})
	if err != nil || a.traces != nil || a.storeConfig().Traces {
		t.Errorf("found traces, %v", err)
	}
	done()
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if _, err := a.openTraces(t.Context(), &loopFlags{traces: "http://127.0.0.1:4318"}); err != nil || a.traces != nil {
		t.Errorf("found traces that are switched off, %v", err)
	}
}
