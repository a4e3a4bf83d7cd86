package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refreshd/refreshd/worker"
)

type workers struct {
	ran   *prometheus.HistogramVec
	busy  *prometheus.GaugeVec
	pools *pools
}

// Work measures what a handler does for a queue. Nil metrics return it as it is.
func (m *Metrics) Work(queue string, next worker.Handler) worker.Handler {
	if m == nil {
		return next
	}
	ran, busy := m.workers.ran.WithLabelValues(queue), m.workers.busy.WithLabelValues(queue)
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
	if m != nil {
		m.workers.pools.add(&poolNumbers{pool, float64(slots), queue})
	}
}

type pools struct{ list[*poolNumbers] }

type poolNumbers struct {
	pool  *worker.Pool
	slots float64
	queue string
}

var (
	poolSlots   = prometheus.NewDesc("refreshd_worker_slots", "Attempts that a worker of this process works on at the same time, at most.", []string{"queue"}, nil)
	poolEntries = prometheus.NewDesc("refreshd_worker_attempts_total",
		"Attempts of a worker of this process by how they ended; taken: entries that it has taken; requeued: those of dead workers that it has returned.",
		[]string{"queue", "outcome"}, nil)
)

func (p *pools) Describe(descs chan<- *prometheus.Desc) {
	descs <- poolSlots
	descs <- poolEntries
}

func (p *pools) Collect(metrics chan<- prometheus.Metric) {
	for _, n := range p.all() {
		s := n.pool.Stats()
		metrics <- prometheus.MustNewConstMetric(poolSlots, prometheus.GaugeValue, n.slots, n.queue)
		for outcome, count := range map[string]int64{
			"taken": s.Taken, "unreadable": s.Unreadable, "stale": s.Stale, "succeeded": s.Succeeded, "failed": s.Failed,
			"postponed": s.Postponed, "interrupted": s.Interrupted, "cancelled": s.Cancelled, "requeued": s.Requeued,
		} {
			metrics <- prometheus.MustNewConstMetric(poolEntries, prometheus.CounterValue, float64(count), n.queue, outcome)
		}
	}
}
