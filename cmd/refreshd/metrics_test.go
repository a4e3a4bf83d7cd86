package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// scrape asks a daemon for its numbers; empty: it does not answer yet.
func scrape(t *testing.T, address string) string {
	t.Helper()
	client := http.Client{Timeout: testkit.Limit}
	defer client.CloseIdleConnections()
	reply, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("scrape: %s: %v", reply.Status, err)
	}
	return string(text)
}

// tells waits until a daemon tells all of these lines.
func tells(t *testing.T, address string, lines ...string) {
	t.Helper()
	testkit.Eventually(t, strings.Join(lines, ", "), func() bool {
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

func TestADaemonTellsItsNumbersBeforeRedisAnswers(t *testing.T) {
	t.Parallel()
	address := testkit.FreeAddress(t)
	(&console{t: t, env: map[string]string{"REDIS_URL": "redis://" + testkit.FreeAddress(t)}}).start("dispatcher", "--health", address)
	tells(t, address, `refreshd_redis_errors_total{kind="unreachable"}`, `refreshd_build_info{`)
}

func TestAWorkerTellsOfItselfAlone(t *testing.T) {
	t.Parallel()
	server, address := testkit.Miniredis(t), testkit.FreeAddress(t)
	at(t, server).start("worker", "--exec", "true", "--health", address)
	tells(t, address, `refreshd_worker_busy_slots{queue="bigtables"} 0`)
	if text := scrape(t, address); strings.Contains(text, "refreshd_queue_up") {
		t.Error("each of many workers would ask Redis for the same numbers")
	}
}
