package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/lab/bench"
	"github.com/refreshd/refreshd/internal/lab/conformance"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestBenchMeasuresAndLeavesNothingBehind(t *testing.T) {
	long.Only(t)
	t.Parallel()
	server := testkit.Redis(t)
	server.Client(t).Set(t.Context(), "mine", "1", 0)
	p := testkit.Refreshd(t, "bench", "--redis", server.URL, "--models", "300", "--paced", "50", "--dispatchers", "2", "--history-cap", "0", "-o", "json", "--beside-data")
	if code := p.Wait(); code != exitDone {
		t.Fatalf("expected exit code 0, found %d: %s", code, p.Output())
	}
	var report bench.Report
	if err := json.Unmarshal([]byte(p.Output()), &report); err != nil {
		t.Fatalf("expected one object, found %v: %s", err, p.Output())
	}
	switch {
	case report.Models != 300 || report.Cycles != 300 || report.CyclesPerSecond <= 0 || report.RedisVersion == "",
		report.RedisCPU == nil || *report.RedisCPU <= 0 || report.DaemonCPU <= 0 || report.BytesPerModel == nil || *report.BytesPerModel <= 0,
		report.StartLateness == nil || report.ApplyLateness == nil || report.StartLateness.P50 > report.StartLateness.Max:
		t.Errorf("expected every number, found %s", p.Output())
	}
	left := server.Dump(t)
	failIf(t, len(left) != 1, "expected the other data alone, found %v", left)
	p = testkit.Refreshd(t, "bench", "--models", "20", "--paced", "0")
	if code := p.Wait(); code != exitDone || !strings.Contains(p.Output(), "its numbers are no measurement") || !strings.Contains(p.Output(), "cycles a second") {
		t.Errorf("expected a warning and a report, found %d: %s", code, p.Output())
	}
}

func TestBenchRefusesARedisThatHoldsDataUnlessTold(t *testing.T) {
	server := testkit.Miniredis(t)
	server.Client(t).Set(t.Context(), "mine", "1", 0)
	told := at(t, server).fail(exitFailed, "bench", "--redis", server.URL, "--models", "10", "--paced", "0")
	expectContains(t, told, "expected an empty Redis, as what else it does is measured too, found 1 keys")
}

func TestConformanceTellsWhatFailsAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	c := at(t, server)
	hasty := []string{"--redis", server.URL, "--scenario", "success", "--", "sh", "-c", "echo 'no \x1b[31mredis' >&2; exit 3"}
	code, stdout, stderr := c.run(append([]string{"conformance", "-o", "json"}, hasty...)...)
	var report conformance.Report
	err := json.Unmarshal([]byte(stdout), &report)
	failIf(t, err != nil || code != exitFailed || report.Holds || len(report.Checks) != 3,
		"expected a report and a failure, found %v, %d, %s", err, code, stdout)
	expectContains(t, stderr, "[success] no  [31mredis\n")
	if long.Enabled() {
		_, stdout, _ := c.run(append([]string{"conformance"}, hasty...)...)
		expectContains(t, stdout, "a result is answered as success (found: nothing within the time; the worker has ended: exit status 3)", "not yet a worker of refreshd")
	}
	left := server.Dump(t)
	failIf(t, len(left) > 0, "expected an empty Redis, found %v", left)
}

func TestDemoNeverTouchesAnotherRedisAndFailsWhenTheAudienceDidNotSeeEverything(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := nowhere(t).run("demo", "--for", "1ms", "--queue", "other", "-o", "json")
	expectContains(t, stderr, "before everything was seen: 0 of")
	first, _, _ := strings.Cut(stdout, "\n")
	failIf(t, code != exitFailed || !strings.Contains(first, "other:model:"),
		"expected a failure, and first the commands of the queue other, found %d, %s", code, first)
}
