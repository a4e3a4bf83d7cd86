package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

type loops struct {
	rounds      *prometheus.HistogramVec
	failed      *prometheus.CounterVec
	items       *prometheus.HistogramVec
	refused     *prometheus.CounterVec
	transitions *prometheus.CounterVec
	results     *prometheus.CounterVec
	commands    *prometheus.CounterVec
	lateness    *prometheus.HistogramVec
	waited      *prometheus.HistogramVec
	ran         *prometheus.HistogramVec
	lasted      *prometheus.HistogramVec
}

func newLoops(registry *prometheus.Registry) loops {
	l := loops{
		rounds:      histogram("refreshd_round_seconds", "How long a round of a loop took.", waits, "queue", "loop"),
		failed:      counter("refreshd_round_errors_total", "Rounds that ended with an error of Redis.", "queue", "loop"),
		items:       histogram("refreshd_commit_items", "How many decisions were committed at once.", sizes, "queue", "loop"),
		refused:     counter("refreshd_commit_refusals_total", "Decisions that were refused, as another process was first.", "queue", "loop", "code"),
		transitions: counter("refreshd_transitions_total", "Transitions of models that this process has committed.", "queue", "loop", "event"),
		results:     counter("refreshd_results_total", "Messages of workers by their outcome: the event, or why nothing changed.", "queue", "outcome"),
		commands:    counter("refreshd_commands_total", "Commands of applications by their outcome.", "queue", "outcome"),
		lateness: histogram("refreshd_start_lateness_seconds", "From refresh_at to the start, without models that waited for a blocker.",
			waits, "queue"),
		waited: histogram("refreshd_wait_seconds", "From the start of an attempt until its worker said that it begins.", waits, "queue"),
		ran:    histogram("refreshd_run_seconds", "From when its worker began until an attempt ended.", runs, "queue", "outcome"),
		lasted: histogram("refreshd_attempt_seconds", "From the start of an attempt until it ended.", runs, "queue", "outcome"),
	}
	registry.MustRegister(l.rounds, l.failed, l.items, l.refused, l.transitions, l.results, l.commands, l.lateness, l.waited, l.ran, l.lasted)
	return l
}

// Loop measures one kind of loop of one queue, in all its parts. A nil Loop measures nothing.
type Loop struct {
	metrics     *Metrics
	queue, name string
}

// Loop returns the numbers of one kind of loop, such as dispatcher.
func (m *Metrics) Loop(queue, name string) *Loop {
	if m == nil {
		return nil
	}
	m.loops.failed.WithLabelValues(queue, name)
	return &Loop{m, queue, name}
}

// Begin is called when a round begins; the caller calls ended when it has ended.
func (l *Loop) Begin() (ended func(error)) {
	if l == nil {
		return func(error) {}
	}
	began := l.metrics.clock()
	return func(err error) {
		l.metrics.loops.rounds.WithLabelValues(l.queue, l.name).Observe(l.metrics.clock().Sub(began).Seconds())
		if err != nil {
			l.metrics.loops.failed.WithLabelValues(l.queue, l.name).Inc()
		}
	}
}

// Committed counts a batch by its codes. Without codes it is unknown whether it was applied.
func (l *Loop) Committed(batch store.Batch, codes []store.Code) {
	if l == nil {
		return
	}
	loops := &l.metrics.loops
	if len(batch.Items) > 0 {
		loops.items.WithLabelValues(l.queue, l.name).Observe(float64(len(batch.Items)))
	}
	for i, code := range codes {
		item := &batch.Items[i]
		if code != store.CodeApplied {
			name := code.String()
			if name == "code "+strconv.Itoa(int(code)) { // it has no name
				name = other
			}
			loops.refused.WithLabelValues(l.queue, l.name, name).Inc()
			continue
		}
		if item.Transition != nil {
			l.transition(item.Transition, batch.Now)
		}
		switch message := item.Message; {
		case message.Entry == "":
		case message.FromControl():
			loops.commands.WithLabelValues(l.queue, outcome(item)).Inc()
		default:
			loops.results.WithLabelValues(l.queue, outcome(item)).Inc()
		}
	}
}

// transition counts a transition that was committed at now, and measures the attempt that it started, began or ended.
func (l *Loop) transition(t *store.Transition, now time.Time) {
	loops, event := &l.metrics.loops, t.Event()
	loops.transitions.WithLabelValues(l.queue, l.name, known(model.Events, string(event))).Inc()
	d := t.Decision()
	switch {
	case event == model.EventStart:
		if was := t.Prior(); !was.Parked && !was.RefreshAt.IsZero() {
			loops.lateness.WithLabelValues(l.queue).Observe(seconds(was.RefreshAt, now))
		}
	case event == model.EventStarted:
		loops.waited.WithLabelValues(l.queue).Observe(seconds(d.Next.StartedAt, now))
	case d.Ended != nil:
		loops.lasted.WithLabelValues(l.queue, known(model.Events, string(event))).Observe(d.Ended.Duration.Seconds())
		if began := t.Prior().ProcessingAt; !began.IsZero() {
			loops.ran.WithLabelValues(l.queue, known(model.Events, string(event))).Observe(seconds(began, now))
		}
	}
}

// seconds between two instants; 0: none, or the clock was set back.
func seconds(from, to time.Time) float64 {
	if from.IsZero() {
		return 0
	}
	return max(0, to.Sub(from).Seconds())
}

// outcome is the event of a message, or why it changed nothing.
func outcome(item *store.Item) string {
	if item.Transition != nil {
		return known(model.Events, string(item.Transition.Event()))
	}
	return known(model.Refusals, item.Counter)
}

const other = "other"

// known returns a name of a list, so that nobody outside can make up a label.
func known[T ~string](list []T, name string) string {
	if slices.Contains(list, T(name)) {
		return name
	}
	return other
}
