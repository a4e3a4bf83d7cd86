package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

const (
	// fresh is how long numbers of a queue are kept.
	fresh = time.Second
	// patience bounds the wait of a scrape for Redis. The HTTP server gives up after 5 s.
	patience = 3 * time.Second
	// atOnce bounds the parts that are read at the same time.
	atOnce = 8
)

// Queue adds the numbers of a queue, which are read at each scrape. A queue is added once.
func (m *Metrics) Queue(queue *store.Queue) {
	if m != nil {
		m.registry.MustRegister(collector((&queueNumbers{queue: queue, clock: m.clock}).collect))
	}
}

type queueNumbers struct {
	queue *store.Queue
	clock func() time.Time

	mu     sync.Mutex
	sum    report.Stats // guarded by mu: of all parts
	err    error        // guarded by mu
	readAt time.Time    // guarded by mu
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("refreshd_queue_"+name, help, append([]string{"queue"}, labels...), nil)
}

var (
	queueUp        = describe("up", "Whether the numbers of the queue could be read: 1, or 0.")
	queueModels    = describe("models", "Models in a set of the queue; due: to be started now, urgent: those asked for at once, waiting: for their time.", "set")
	queueEntries   = describe("entries", "Entries of a list or stream of the queue.", "list")
	queueOldestDue = describe("oldest_due_age_seconds", "How long the oldest due model has waited; 0: none is due.")
	queueParked    = describe("parked_models", "Models that wait for a blocker instead of a time, by its kind.", "reason")
	queueFreshness = describe("freshness_models", "Models whose policies promise freshness, by how they keep it.", "freshness")
	queueCircuits  = describe("open_circuits", "Keys whose circuits are open while models wait for them.")
	queueCircuit   = describe("circuit_open", "Whether the circuit of the queue is open: 1, or 0.")
	queueCauses    = describe("causes", "Fingerprints by which models are failing.")
	queueLargest   = describe("largest_cause_models", "Models that are failing by the fingerprint of most models.")
	queueOutbox    = describe("outbox_oldest_age_seconds", "How long the oldest notification has waited; 0: none does.")
	queueAlive     = describe("daemons", "Daemons of a kind with a heartbeat, in the part that has fewest.", "kind")
	queueCounted   = describe("counted_total", "Counters of the queue since it began, of all processes.", "counter")
)

func (n *queueNumbers) read() (report.Stats, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if age := n.clock().Sub(n.readAt); age >= 0 && age < fresh {
		return n.sum, n.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	parts := make([]report.Stats, len(n.queue.Parts))
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(atOnce)
	for i, part := range n.queue.Parts {
		reading.Go(func() (err error) {
			parts[i], err = report.Of(part).Stats(ctx)
			return err
		})
	}
	n.err, n.readAt, n.sum = reading.Wait(), n.clock(), report.Stats{}
	if n.err != nil {
		return n.sum, n.err // numbers of some parts would pass for those of the queue
	}
	for i := range parts {
		n.sum.Add(&parts[i])
	}
	return n.sum, n.err
}

func (n *queueNumbers) collect(metrics chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{n.queue.Name}, labels...)...)
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		send(desc, prometheus.GaugeValue, value, labels...)
	}
	count := func(desc *prometheus.Desc, value int64, labels ...string) { gauge(desc, float64(value), labels...) }
	g, err := n.read()
	count(queueUp, flag(err == nil))
	if err != nil {
		return
	}
	for set, models := range map[string]int64{
		"due": g.Due, "waiting": g.Waiting, "urgent": g.Urgent, "parked": g.Parked, "running": g.Running, "failing": g.Failing, "disabled": g.Disabled,
	} {
		count(queueModels, models, set)
	}
	for list, entries := range map[string]int64{
		"input": g.Input, "output": g.Output, "control": g.Control, "claimed": g.Claimed, "rejected": g.Rejected, "journal": g.Journal, "outbox": g.Outbox,
	} {
		count(queueEntries, entries, list)
	}
	for _, freshness := range model.Freshnesses {
		count(queueFreshness, g.Freshness[freshness], string(freshness))
	}
	events := redis.Map(model.Events, func(event model.Event) string { return string(event) })
	for _, name := range slices.Concat(model.Refusals, model.Particulars, events) { // the fields of <queue>:stats may have others
		send(queueCounted, prometheus.CounterValue, float64(g.Counters[name]), name)
	}
	rest := g.Parked
	for _, kind := range model.BlockerKinds {
		count(queueParked, g.ParkedBy[kind], kind)
		rest -= g.ParkedBy[kind]
	}
	count(queueParked, max(0, rest), other) // their blockers were not read
	largest := int64(0)
	for _, models := range g.Errors {
		largest = max(largest, models)
	}
	count(queueCircuits, g.OpenCircuits)
	count(queueCircuit, flag(g.QueueCircuitOpen))
	count(queueCauses, int64(len(g.Errors)))
	count(queueLargest, largest)
	gauge(queueOldestDue, seconds(g.OldestDue, g.At))
	gauge(queueOutbox, seconds(g.OldestNotice, g.At))
	for _, role := range model.Roles {
		count(queueAlive, g.Living[role], string(role))
	}
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
