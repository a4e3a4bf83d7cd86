package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/words"
)

var planPage = page{path: "plan", title: "Plan", nav: true, file: "plan", read: readPlan, live: []string{"plan-chart"}}

const (
	planStep  = 10 * time.Minute
	planSlots = 144
	// planKept is how long a plan is shown before somebody who looks causes another.
	planKept = 5 * time.Minute
	// planRetry is the pause after a failure.
	planRetry = 10 * time.Second
	// planTime bounds the computation.
	planTime = 5 * time.Minute
)

// planner computes the starts of the next day in the background. It is safe for concurrent use.
type planner struct {
	wanted chan struct{}        // holds one if somebody looks
	last   atomic.Pointer[plan] // nil: none yet
}

type plan struct {
	operate.Forecast
	err  error
	kept time.Time // until then
}

// version changes with each computation.
func (p *planner) version() string { return fmt.Sprintf(" plan %p", p.last.Load()) }

// run computes a plan when somebody looks and the last one is too old, until ctx ends.
func (p *planner) run(ctx context.Context, queue *store.Queue, clock func() time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
		}
		if last := cmp.Or(p.last.Load(), &plan{}); !clock().Before(last.kept) {
			p.last.Store(computePlan(ctx, queue, clock, last.Forecast))
		}
	}
}

// computePlan keeps the old forecast if there is no new one.
func computePlan(ctx context.Context, queue *store.Queue, clock func() time.Time, old operate.Forecast) *plan {
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	found, err := operate.Operator{Queue: queue}.Forecast(ctx, operate.ForecastRequest{InputRequest: operate.InputRequest{For: "24h"}})
	if err != nil {
		return &plan{old, err, clock().Add(planRetry)}
	}
	return &plan{found, nil, clock().Add(planKept)}
}

type planView struct {
	Computed time.Time // zero: it is not computed yet
	Problem  string
	Graph    graph
	Peaks    []string
}

func readPlan(_ context.Context, req *request) (any, error) {
	backoff.Signal(req.planner.wanted)
	v, p := &planView{}, cmp.Or(req.planner.last.Load(), &plan{})
	if p.err != nil {
		v.Problem = inWords(p.err)
	}
	if !p.From.IsZero() {
		v.draw(&p.Forecast, req.zone)
	}
	return v, nil
}

func (v *planView) draw(f *operate.Forecast, zone *time.Location) {
	first, slots := f.From.Truncate(planStep), make([]slot, planSlots)
	for i := range slots {
		slots[i].from = first.Add(time.Duration(i) * planStep)
	}
	for minute, starts := range f.Counts.PerMinute {
		if i := int(f.Counts.At(minute).Sub(first) / planStep); i >= 0 && i < planSlots {
			slots[i].values[report.MetricStarts] += int64(starts)
		}
	}
	limit := int64(0)
	v.Computed = f.From
	v.Graph = graph{Name: "Starts in 10 minutes", Legend: []key{{"start", "starts"}}, About: numberText(int64(f.Load.Starts)) + " starts in 24 hours."}
	if f.Drain.PerMinute != nil {
		limit = int64(*f.Drain.PerMinute * planStep.Minutes())
		v.Graph.About += " Workers took " + numberText(limit) + " in 10 minutes when attempts waited for them."
	}
	v.Graph.draw(slots, planStep, zone, limit, report.MetricStarts)
	v.Peaks = peaks(f, slots, zone)
}

// peaks describes the busiest slot, and the backlog.
func peaks(f *operate.Forecast, slots []slot, zone *time.Location) (lines []string) {
	peak := slices.MaxFunc(slots, func(a, b slot) int { return int(a.values[report.MetricStarts] - b.values[report.MetricStarts]) })
	most := numberText(peak.values[report.MetricStarts])
	switch {
	case most == "0":
		return []string{"Nothing starts within 24 hours."}
	case peak.from.Before(f.From):
		lines = []string{fmt.Sprintf("Most starts now: %s until %s.", most, peak.from.Add(planStep).In(zone).Format("15:04"))}
	default:
		lines = []string{fmt.Sprintf("Most starts %s: %s in 10 minutes.", words.At(peak.from, f.From, zone), most)}
	}
	if load := f.Load; load.Backlog != nil && *load.Backlog > 0 {
		lines = append(lines, fmt.Sprintf("As fast as workers were when attempts waited, %s will wait in line %s.", words.Count(*load.Backlog, "attempt", "attempts"), words.At(load.BacklogAt, f.From, zone)))
	}
	return lines
}
