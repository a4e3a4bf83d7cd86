package metrics_test

import (
	"net"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/faces/metrics"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// away are the metrics of a process whose Redis should answer at an address.
func away(t *testing.T, address string) *metrics.Metrics {
	t.Helper()
	clients := fixture.Connect(t, address)
	queue, err := store.New(clients, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := metrics.New(metrics.Build{}, time.Now)
	m.Watch(clients)
	m.Queue(&store.Queue{Name: "bigtables", Parts: []*store.Store{queue}})
	m.Loop("bigtables", "dispatcher").Begin()(nil)
	return m
}

func TestAProcessTellsItsNumbersWhileRedisIsAwayOrHangs(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for _, address := range []string{testkit.FreeAddress(t), listener.Addr().String()} { // the listener takes connections, and reads nothing
		m := away(t, "redis://"+address)
		families := scrape(t, m)
		if up := families["refreshd_queue_up"]; up == nil || up.Metric[0].GetGauge().GetValue() != 0 {
			t.Errorf("expected that the numbers of the queue are absent, found %v", up)
		}
		if families["refreshd_queue_models"] != nil {
			t.Error("nobody has told how many models there are")
		}
		if families["refreshd_round_seconds"] == nil || families["go_goroutines"] == nil {
			t.Error("the process does not tell its own numbers")
		}
		if faults := values(scrape(t, m))["refreshd_redis_errors_total{kind=unreachable}"]; faults == 0 {
			t.Error("the calls that failed are not counted")
		}
	}
}
