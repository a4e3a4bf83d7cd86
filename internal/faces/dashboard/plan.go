package dashboard

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/foresight/forecast"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/words"
)

var planPage = page{path: "plan", title: "Plan", nav: true, file: "plan", read: readPlan, live: []string{"plan-chart"}}

const (
	planStep  = 10 * time.Minute
	planSlots = 144
	// planKept is how long a plan is shown before another is computed, if somebody looks.
	planKept = 5 * time.Minute
	// planRetry is how long it waits after one that failed.
	planRetry = 10 * time.Second
	// planWait is how long a page waits for the first plan.
	planWait = 200 * time.Millisecond
	// planTime bounds the computation.
	planTime = 5 * time.Minute
	// planSample is how many models tell how long attempts take.
	planSample = 200
)

// planner computes the starts of the next day, beside the pages that show them. It is safe for concurrent use.
type planner struct {
	wanted chan struct{} // holds one if somebody looks
	first  chan struct{} // closed when the first computation has ended

	mu   sync.Mutex
	plan *plan // guarded by mu: the last one; nil: none yet
	err  error // guarded by mu: of the last computation
	no   int   // guarded by mu: computations so far
}

func newPlanner() *planner {
	return &planner{wanted: make(chan struct{}, 1), first: make(chan struct{})}
}

// plan is what is expected of a queue.
type plan struct {
	at       time.Time
	forecast operate.Forecast
	length   time.Duration // of an attempt, on average; 0: not known
}

// last returns the last plan; if there is none yet it waits for a moment.
func (p *planner) last(ctx context.Context) (*plan, error) {
	backoff.Signal(p.wanted)
	ctx, cancel := context.WithTimeout(ctx, planWait)
	defer cancel()
	select {
	case <-p.first:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan, p.err
}

// version changes with each computation.
func (p *planner) version() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(" plan ", p.no)
}

// run computes a plan when somebody looks and the last one is too old, until ctx ends.
func (p *planner) run(ctx context.Context, queue *store.Queue, clock func() time.Time) {
	var computed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
		}
		if backoff.Recent(computed, clock(), planKept) {
			continue
		}
		plan, err := computePlan(ctx, queue)
		if computed = clock(); err != nil {
			computed = computed.Add(planRetry - planKept)
		}
		p.mu.Lock()
		if p.err = err; err == nil {
			p.plan = plan
		}
		if p.no++; p.no == 1 {
			close(p.first)
		}
		p.mu.Unlock()
	}
}

func computePlan(ctx context.Context, queue *store.Queue) (*plan, error) {
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	found, err := operate.Operator{Queue: queue}.Forecast(ctx, operate.ForecastRequest{FleetRequest: operate.FleetRequest{For: "24h"}})
	if err != nil {
		return nil, err
	}
	length, err := attemptLength(ctx, queue)
	return &plan{found.From, found, length}, err
}

// attemptLength is how long the attempts take of the models that start next.
func attemptLength(ctx context.Context, queue *store.Queue) (time.Duration, error) {
	sum, known := time.Duration(0), 0
	err := queue.Each(func(part *store.Store) error {
		next, err := part.Report().Behind(ctx, part.Keys.Due, store.Scored{}, planSample)
		if err != nil {
			return err
		}
		uids := make([]string, len(next))
		for i := range next {
			uids[i] = next[i].UID
		}
		histories, err := part.Report().Histories(ctx, uids, 5)
		for _, attempts := range histories {
			if length := forecast.Length(attempts); length > 0 {
				sum, known = sum+length, known+1
			}
		}
		return err
	})
	return sum / time.Duration(max(1, known)), err
}

// planView is the plan on its page.
type planView struct {
	Computed time.Time // zero: it is not computed yet
	Problem  string
	Graph    graph
	Values   table
	Peaks    []string
}

func readPlan(ctx context.Context, req *request) (any, error) {
	v := &planView{}
	p, err := req.planner.last(ctx)
	if err != nil {
		v.Problem = inWords(err)
	}
	if p != nil {
		v.Computed = p.at
		v.draw(p, req.zone)
	}
	return v, nil
}

func (v *planView) draw(p *plan, zone *time.Location) {
	first := p.at.Truncate(planStep)
	spans := make([]span, planSlots)
	for i := range spans {
		spans[i] = span{first.Add(time.Duration(i) * planStep), []int64{0}}
	}
	counts := p.forecast.Counts
	for minute, starts := range counts.PerMinute {
		if i := int(counts.At(minute).Sub(first) / planStep); i >= 0 && i < planSlots {
			spans[i].values[0] += int64(starts)
		}
	}
	limit := int64(0)
	if p.forecast.Drain.PerMinute != nil {
		limit = int64(*p.forecast.Drain.PerMinute * planStep.Minutes())
	}
	v.Graph = graph{Name: "Starts in 10 minutes", Legend: []key{{"start", "starts"}}}
	v.Graph.About = numberText(int64(p.forecast.Load.Starts)) + " starts in 24 hours."
	if limit > 0 {
		v.Graph.About += " The line is what workers took lately: " + numberText(limit) + " in 10 minutes."
	}
	v.Graph.draw(spans, planStep, zone, false, limit)
	v.Values.add(&v.Graph)
	slices.Reverse(v.Values.Rows) // the next comes first
	v.Peaks = p.peaks(spans, zone)
}

// peaks names the most starts, and what they need.
func (p *plan) peaks(spans []span, zone *time.Location) (told []string) {
	peak := slices.MaxFunc(spans, func(a, b span) int { return int(a.values[0] - b.values[0]) })
	if peak.values[0] == 0 {
		return []string{"Nothing starts within 24 hours."}
	}
	text := fmt.Sprintf("Most starts %s: %s in 10 minutes", words.At(peak.from, p.at, zone), numberText(peak.values[0]))
	if peak.from.Before(p.at) {
		text = fmt.Sprintf("Most starts now: %s until %s", numberText(peak.values[0]), peak.from.Add(planStep).In(zone).Format("15:04"))
	}
	if p.length > 0 {
		slots := int(math.Ceil(float64(peak.values[0]) * p.length.Seconds() / planStep.Seconds()))
		text += fmt.Sprintf(", which needs %s at %s each", words.Count(slots, "slot", "slots"), words.Roughly(max(time.Second, p.length)))
	}
	told = append(told, text+".")
	if load := p.forecast.Load; load.Backlog != nil && *load.Backlog > 0 {
		told = append(told, fmt.Sprintf("As fast as workers were lately, %s will wait in line %s.", words.Count(*load.Backlog, "attempt", "attempts"), words.At(load.BacklogAt, p.at, zone)))
	}
	return told
}
