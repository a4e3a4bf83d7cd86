// Package metrics exports numbers of a process and of its queues, for Prometheus.
//
// Numbers of a process are counted where they happen: add up the processes. Numbers of a queue are read at each scrape and are the same in each
// process: take the largest. Their names begin with refreshd_queue_.
//
// Nobody outside can make up the value of a label: queues are those that the process serves, all other values come from lists.
package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/worker"
)

// Build describes the build of the program.
type Build struct{ Version, Commit, Go string }

// Metrics are those of one process. It is safe for concurrent use. Nil metrics measure nothing.
type Metrics struct {
	registry *prometheus.Registry
	clock    func() time.Time

	loops  loops
	script *prometheus.HistogramVec
	faults *prometheus.CounterVec
	ran    *prometheus.HistogramVec // by handlers of workers
	busy   *prometheus.GaugeVec     // slots of workers
}

// New returns the metrics of a process that serves no queue yet. The clock measures how long things take.
func New(build Build, clock func() time.Time) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), clock: clock}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "refreshd_build_info", Help: "What the program was built from; always 1.",
		ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Commit, "goversion": build.Go},
	})
	info.Set(1)
	m.script = histogram("refreshd_script_seconds", "How long a call of a script took, as the caller sees it.", waits, "script")
	m.faults = counter("refreshd_redis_errors_total", "Calls to Redis that failed: without an answer, refused, or with an error.", "kind")
	for _, kind := range []string{"unreachable", "refused", "answered"} {
		m.faults.WithLabelValues(kind)
	}
	m.registry.MustRegister(info, m.script, m.faults, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.loops = newLoops(m.registry)
	m.ran = histogram("refreshd_worker_run_seconds", "How long the handler of a worker took.", runs, "queue")
	m.busy = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "refreshd_worker_busy_slots", Help: "Slots of a worker in which a handler works.",
	}, []string{"queue"})
	m.registry.MustRegister(m.ran, m.busy)
	return m
}

// collector collects the numbers of one queue. It describes none, because a registry takes each description once.
type collector func(metrics chan<- prometheus.Metric)

func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(metrics chan<- prometheus.Metric) { c(metrics) }

// Handler answers scrapes, also while Redis does not answer: then the numbers of the queues are absent.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, EnableOpenMetrics: true,
	})
}

// Watch measures the calls of these clients from now on.
func (m *Metrics) Watch(clients *redis.Clients) {
	if m == nil {
		return
	}
	clients.Watch(m.clock, func(call redis.Call) {
		if call.Script != "" {
			m.script.WithLabelValues(call.Script).Observe(call.Took.Seconds())
		}
		switch {
		case call.Err == nil:
		case redis.Refused(call.Err):
			m.faults.WithLabelValues("refused").Inc()
		case redis.Answered(call.Err):
			m.faults.WithLabelValues("answered").Inc()
		default:
			m.faults.WithLabelValues("unreachable").Inc()
		}
	})
}

// Classic buckets, for scrapers without native histograms.
var (
	waits = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	runs  = []float64{.01, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600}
	sizes = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Work measures the handler of a queue. Nil metrics return it as it is.
func (m *Metrics) Work(queue string, next worker.Handler) worker.Handler {
	if m == nil {
		return next
	}
	ran, busy := m.ran.WithLabelValues(queue), m.busy.WithLabelValues(queue)
	return func(ctx context.Context, attempt *worker.Attempt) error {
		began := m.clock()
		busy.Inc()
		defer func() { // also when it panics
			busy.Dec()
			ran.Observe(m.clock().Sub(began).Seconds())
		}()
		return next(ctx, attempt)
	}
}

// Pool adds the counters of a pool with so many slots. A queue has one in a process.
func (m *Metrics) Pool(queue string, pool *worker.Pool, slots int) {
	if m == nil {
		return
	}
	m.registry.MustRegister(collector(func(metrics chan<- prometheus.Metric) {
		s := pool.Stats()
		metrics <- prometheus.MustNewConstMetric(poolSlots, prometheus.GaugeValue, float64(slots), queue)
		for outcome, count := range map[string]int64{
			"taken": s.Taken, "unreadable": s.Unreadable, "stale": s.Stale, "succeeded": s.Succeeded, "failed": s.Failed,
			"postponed": s.Postponed, "interrupted": s.Interrupted, "cancelled": s.Cancelled,
		} {
			metrics <- prometheus.MustNewConstMetric(poolEntries, prometheus.CounterValue, float64(count), queue, outcome)
		}
	}))
}

var (
	poolSlots   = prometheus.NewDesc("refreshd_worker_slots", "Attempts that a worker works on at a time, at most.", []string{"queue"}, nil)
	poolEntries = prometheus.NewDesc("refreshd_worker_attempts_total",
		"Attempts of a worker by outcome; taken: from the list.",
		[]string{"queue", "outcome"}, nil)
)
