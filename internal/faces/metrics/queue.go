package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

const (
	// fresh is how long numbers of a queue are told again before they are read anew.
	fresh = time.Second
	// patience bounds how long a scrape waits for Redis. The server that answers gives up after 5 s.
	patience = 3 * time.Second
	// atOnce is how many parts of a queue are read at the same time.
	atOnce = 8
)

// Queue tells what a queue is, whenever somebody asks. A queue is told of once.
func (m *Metrics) Queue(queue *store.Queue) {
	if m != nil {
		m.queues.add(&queueNumbers{queue: queue, clock: m.clock})
	}
}

// queues collects the numbers of the queues of a process.
type queues struct{ list[*queueNumbers] }

// queueNumbers reads those of one.
type queueNumbers struct {
	queue *store.Queue
	clock func() time.Time

	mu     sync.Mutex
	gauges []store.Gauges // guarded by mu: of the parts
	err    error          // guarded by mu
	readAt time.Time      // guarded by mu
}

// describe returns a desc of a number of the queue.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("refreshd_queue_"+name, help, append([]string{"queue"}, labels...), nil)
}

var (
	queueUp        = describe("up", "Whether Redis has told the numbers of the queue: 1, or 0. Without them they are absent.")
	queueModels    = describe("models", "Models in a set of the queue; due: to be started now, urgent: those of them that were asked for at once, waiting: for their time. A failing or disabled model stands in another set too.", "set")
	queueEntries   = describe("entries", "Entries of a list or stream of the queue.", "list")
	queueOldestDue = describe("oldest_due_age_seconds", "How long the model is due that is due for longest and was not started; 0: none is.")
	queueParked    = describe("parked_models", "Models that wait for a gate instead of a time, by its kind.", "reason")
	queueFreshness = describe("freshness_models", "Models whose policies promise freshness, by how they keep it.", "freshness")
	queueCircuits  = describe("open_circuits", "Keys whose circuits are open while models wait for them.")
	queueCircuit   = describe("circuit_open", "Whether the circuit of the queue is open: 1, or 0.")
	queueCauses    = describe("causes", "Signatures by which models are failing.")
	queueLargest   = describe("largest_cause_models", "Models that are failing by the signature of most models.")
	queueOutbox    = describe("outbox_oldest_age_seconds", "How long the oldest notification waits to be delivered; 0: none does.")
	queueLiving    = describe("daemons", "Daemons of a kind that have given a heartbeat; of a queue of several parts, in the part that has fewest.", "kind")
	queueCounted   = describe("counted_total", "What the queue has counted since it began, whoever did it.", "counter")
)

func (q *queues) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		queueUp, queueModels, queueEntries, queueOldestDue, queueParked, queueFreshness, queueCircuits, queueCircuit, queueCauses, queueLargest,
		queueOutbox, queueLiving, queueCounted,
	} {
		descs <- desc
	}
}

func (q *queues) Collect(metrics chan<- prometheus.Metric) {
	var reading sync.WaitGroup
	for _, n := range q.all() {
		reading.Go(func() { n.collect(metrics) })
	}
	reading.Wait()
}

// read reads all parts, unless that was done just now.
func (n *queueNumbers) read() ([]store.Gauges, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock()
	if age := now.Sub(n.readAt); age >= 0 && age < fresh {
		return n.gauges, n.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n.gauges = make([]store.Gauges, len(n.queue.Parts))
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(atOnce)
	for i, part := range n.queue.Parts {
		reading.Go(func() (err error) {
			n.gauges[i], err = part.Report().Gauges(ctx)
			return err
		})
	}
	n.err, n.readAt = reading.Wait(), n.clock()
	return n.gauges, n.err
}

func (n *queueNumbers) collect(metrics chan<- prometheus.Metric) {
	parts, err := n.read()
	tell := func(desc *prometheus.Desc, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if desc == queueCounted {
			kind = prometheus.CounterValue
		}
		metrics <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{n.queue.Name}, labels...)...)
	}
	if err != nil {
		tell(queueUp, 0)
		return
	}
	tell(queueUp, 1)
	sum := store.Gauges{}
	for i := range parts {
		sum.Add(&parts[i])
	}
	count := func(desc *prometheus.Desc, value int64, labels ...string) { tell(desc, float64(value), labels...) }
	for set, of := range sets {
		count(queueModels, of(&sum), set)
	}
	for list, of := range lists {
		count(queueEntries, of(&sum), list)
	}
	for _, freshness := range model.Freshnesses {
		count(queueFreshness, sum.Freshness[freshness], string(freshness))
	}
	for _, names := range counters {
		for _, name := range names {
			count(queueCounted, sum.Counters[name], name)
		}
	}
	rest := sum.Parked
	for _, kind := range model.BlockerKinds {
		count(queueParked, sum.ParkedBy[kind], kind)
		rest -= sum.ParkedBy[kind]
	}
	count(queueParked, max(0, rest), other) // what waits for gates beyond those that were looked at has an unknown reason
	open := int64(0)
	if sum.QueueCircuitOpen {
		open = 1
	}
	largest := int64(0)
	for _, models := range sum.Errors {
		largest = max(largest, models)
	}
	count(queueCircuits, sum.OpenCircuits)
	count(queueCircuit, open)
	count(queueCauses, int64(len(sum.Errors)))
	count(queueLargest, largest)
	tell(queueOldestDue, age(sum.OldestDue, sum.At))
	tell(queueOutbox, age(sum.OldestNotice, sum.At))
	for _, party := range model.Roles {
		count(queueLiving, sum.Living[party], string(party))
	}
}

// counters are the names of those that are told: the fields of <queue>:stats may have others.
var counters = [][]string{texts(model.Events), model.Refusals, model.Particulars}

func texts[T ~string](names []T) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	return all
}

// sets and lists are what is counted of each part.
var (
	sets = map[string]func(*store.Gauges) int64{
		"due":      func(g *store.Gauges) int64 { return g.Due },
		"waiting":  func(g *store.Gauges) int64 { return g.Waiting },
		"urgent":   func(g *store.Gauges) int64 { return g.Urgent },
		"parked":   func(g *store.Gauges) int64 { return g.Parked },
		"running":  func(g *store.Gauges) int64 { return g.Running },
		"failing":  func(g *store.Gauges) int64 { return g.Failing },
		"disabled": func(g *store.Gauges) int64 { return g.Disabled },
	}
	lists = map[string]func(*store.Gauges) int64{
		"input":    func(g *store.Gauges) int64 { return g.Input },
		"output":   func(g *store.Gauges) int64 { return g.Output },
		"control":  func(g *store.Gauges) int64 { return g.Control },
		"claimed":  func(g *store.Gauges) int64 { return g.Claimed },
		"rejected": func(g *store.Gauges) int64 { return g.Rejected },
		"journal":  func(g *store.Gauges) int64 { return g.Journal },
		"outbox":   func(g *store.Gauges) int64 { return g.Outbox },
	}
)

// age is how long ago an instant was; 0: there is none.
func age(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return seconds(at, now)
}
