package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

func TestHealthSaysWhetherADaemonIsWellAndWhyNot(t *testing.T) {
	t.Parallel()
	server, address := testkit.Miniredis(t), testkit.FreeAddress(t)
	c := at(t, server)
	dispatcher := c.start("dispatcher", "--health", address)
	check.Eventually(t, "the dispatcher is ready", func() bool {
		code, _, _ := c.run("health", address)
		return code == exitDone
	})
	for _, url := range []string{address, "http://" + address, "http://" + address + "/livez", "http://" + address + "/readyz"} {
		expectContains(t, c.do("health", url), "status  ok")
	}
	report := c.object("health", address)
	failIf(t, report["status"] != "ok" || len(report["loops"].([]any)) != 1, "expected a loop that is well, found %v", report)
	as := at(t, server)
	as.env["REFRESHD_HEALTH"] = address // as the daemon may have it
	as.do("health")
	as.do("health", "/livez")
	dispatcher.stop()
	expectContains(t, as.fail(exitFailed, "health"), "ask for health: ", "connection refused")
}

func TestHealthFailsByWhatItIsToldOrNotToldInTime(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"not ready":          {503, `{"status":"failing","why":"poller: stuck\u001b[2J","loops":[]}`, "/readyz: poller: stuck"},
		"not ready, no why":  {503, `{"status":"failing"}`, "it does not say why"},
		"another service":    {200, `<html>`, "expected the report of a daemon, found 200 OK"},
		"elsewhere":          {302, `{"status":"ok"}`, "found 302"},
		"a contradiction":    {503, `{"status":"ok"}`, "found 503"},
		"not what it serves": {404, "expected /livez or /readyz", "found 404"},
	} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1")
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		}))
		told := (&console{t: t}).fail(exitFailed, "health", service.URL)
		if service.Close(); !strings.Contains(told, test.want) || plain(told[:len(told)-1]) != told[:len(told)-1] {
			t.Errorf("%s: expected %q without control characters, found %q", name, test.want, told)
		}
	}
	released := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer service.Close()
	defer close(released)
	expectContains(t, (&console{t: t}).fail(exitFailed, "health", service.URL, "--health-timeout", "10ms"), "deadline exceeded")
}

func TestTheAddressOfHealthMayBeShort(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8080":           "http://127.0.0.1:8080/readyz",
		":8080":                    "http://127.0.0.1:8080/readyz",
		"0.0.0.0:8080/livez":       "http://127.0.0.1:8080/livez",
		"[::]:8080":                "http://127.0.0.1:8080/readyz",
		"[::1]:8080/livez":         "http://[::1]:8080/livez",
		"https://host:8080/readyz": "https://host:8080/readyz",
		"http://host/":             "http://host/readyz",
	} {
		got, err := healthURL(address)
		failIf(t, got != want || err != nil, "%s: expected %s, found %s, %v", address, want, got, err)
	}
}

// scrape asks a daemon for its numbers; empty: it does not answer yet.
func scrape(t *testing.T, address string) string {
	t.Helper()
	client := http.Client{Timeout: check.Limit}
	defer client.CloseIdleConnections()
	reply, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	stopIf(t, err != nil || reply.StatusCode != http.StatusOK, "scrape: %s: %v", reply.Status, err)
	return string(text)
}

// tells waits until a daemon has logged all of these lines.
func tells(t *testing.T, address string, lines ...string) {
	t.Helper()
	check.Eventually(t, strings.Join(lines, ", "), func() bool {
		text := "\n" + scrape(t, address)
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line) {
				return false
			}
		}
		return true
	})
}

func TestEachDaemonTellsItsNumbers(t *testing.T) {
	t.Parallel()
	service := newService(t)
	close(service.release)
	models := file(t, "models.yaml", "uid: a\npayload: {n: 1}\n")
	address := testkit.FreeAddress(t)
	up := (&console{t: t}).start("up", "-o", "json", "--models", models, "--http", service.URL, "--health", address)
	up.line(t, `"uid":"a","result":"created"`)
	tells(t, address, `refreshd_queue_up{queue="bigtables"} 1`, `refreshd_queue_counted_total{counter="success",queue="bigtables"} 1`,
		`refreshd_results_total{outcome="success",queue="bigtables"} 1`, `refreshd_worker_attempts_total{outcome="succeeded",queue="bigtables"} 1`,
		`refreshd_transitions_total{event="start",loop="dispatcher",queue="bigtables"} 1`, `refreshd_worker_slots{queue="bigtables"} 4`,
		`refreshd_script_seconds_count{script="commit"}`, `refreshd_round_seconds_count{loop="poller",queue="bigtables"}`,
		`refreshd_queue_daemons{kind="worker",queue="bigtables"} 1`, `go_goroutines`)
}

func TestADaemonTellsItsNumbersBeforeRedisAnswersAndAWorkerTellsOfItselfAlone(t *testing.T) {
	t.Parallel()
	address := testkit.FreeAddress(t)
	(&console{t: t, env: map[string]string{"REDIS_URL": "redis://" + testkit.Nowhere}}).start("dispatcher", "--health", address)
	tells(t, address, `refreshd_redis_errors_total{kind="unreachable"}`, `refreshd_build_info{`)
	address = testkit.FreeAddress(t)
	at(t, testkit.Miniredis(t)).start("worker", "--exec", "true", "--health", address)
	tells(t, address, `refreshd_worker_busy_slots{queue="bigtables"} 0`)
	failIf(t, strings.Contains(scrape(t, address), "refreshd_queue_up"), "each of many workers would ask Redis for the same numbers")
}

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
		err := proto.Unmarshal(body, &export)
		failIf(t, err != nil, "expected spans, found %v", err)
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
	must(t, json.Unmarshal([]byte(up.line(t, "redis")), &hint))
	up.line(t, `"uid":"a","result":"created"`)
	parent := check.Await(t, parents, "a request of the worker")
	options := check.Got(redis.ParseURL(hint.Redis))(t)
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	var attempt string
	check.Eventually(t, "its result is applied", func() bool {
		attempt = client.HGet(t.Context(), "bigtables:model:a", "last_attempt_uid").Val()
		return attempt != ""
	})
	if code := up.stop(); code != exitDone { // it sends what it has
		t.Fatalf("exit code %d\n%s", code, up.stderr)
	}
	want := model.Traceparent(attempt, model.SpanRun)
	failIf(t, parent != want, "the service was called within %q, want %q", parent, want)
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
	diff := cmp.Diff(map[string]string{"schedule": "nothing", "wait": "schedule", "run": "schedule", "apply": "run"}, parts)
	failIf(t, diff != "" || len(r.spans) != 4, "%d parts and what they are parts of (-want +got):\n%s", len(r.spans), diff)
	failIf(t, len(r.paths) == 0 || r.paths[0] != "POST /v1/traces", "asked for %v", r.paths)
}

func TestWithoutACollectorNothingIsTraced(t *testing.T) {
	for _, name := range append(collectors, "OTEL_SDK_DISABLED") {
		t.Setenv(name, "")
	}
	a := &app{}
	done, err := a.openTraces(t.Context(), &loopFlags{})
	failIf(t, err != nil || a.traces != nil || a.configOf(a.store.Queue).Traces, "found traces, %v", err)
	done()
	t.Setenv("OTEL_SDK_DISABLED", "true")
	_, err = a.openTraces(t.Context(), &loopFlags{traces: "http://127.0.0.1:4318"})
	failIf(t, err != nil || a.traces != nil, "found traces that are switched off, %v", err)
}
