package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/internal/trials/bench"
)

func TestBenchMeasuresAndLeavesNothingBehind(t *testing.T) {
	long.Only(t)
	t.Parallel()
	server := testkit.Redis(t)
	p := testkit.Refreshd(t, "bench", "--redis", server.URL, "--models", "300", "--paced", "50", "--dispatchers", "2", "--history-cap", "0", "-o", "json")
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
	if left := server.Dump(t); len(left) > 0 {
		t.Errorf("expected an empty Redis, found %v", left)
	}
}

func TestBenchRefusesARedisThatHoldsDataUnlessTold(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	server.Client(t).Set(t.Context(), "mine", "1", 0)
	p := testkit.Refreshd(t, "bench", "--redis", server.URL, "--models", "10", "--paced", "0")
	if code := p.Wait(); code != exitFailed || !strings.Contains(p.Output(), "expected an empty Redis, as what else it does is measured too, found 1 keys") {
		t.Errorf("expected a refusal, found %d: %s", code, p.Output())
	}
	p = testkit.Refreshd(t, "bench", "--redis", server.URL, "--models", "10", "--paced", "0", "--beside-data")
	if code := p.Wait(); code != exitDone || !strings.Contains(p.Output(), "cycles a second") {
		t.Errorf("expected a report, found %d: %s", code, p.Output())
	}
	if left := server.Dump(t); len(left) != 1 {
		t.Errorf("expected the other data alone, found %v", left)
	}
}

func TestBenchSaysThatTheEmbeddedRedisMeasuresNothing(t *testing.T) {
	long.Only(t)
	t.Parallel()
	p := testkit.Refreshd(t, "bench", "--models", "20", "--paced", "0")
	if code := p.Wait(); code != exitDone || !strings.Contains(p.Output(), "its numbers are no measurement") {
		t.Errorf("expected a warning and a report, found %d: %s", code, p.Output())
	}
}
