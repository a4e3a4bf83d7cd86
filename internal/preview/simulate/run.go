// Package simulate shows what a policy would do: it runs package model on a clock that jumps from one event to the next. A run begins with a start
// by hand. Its outcomes are a list, or follow from a seed. The package knows no Redis and waits for nothing: weeks take milliseconds.
package simulate

import (
	"fmt"
	"iter"
	"time"

	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Plan bounds a run.
type Plan struct {
	Start time.Time // the start by hand, whole milliseconds
	Until time.Time // no attempt starts later; zero: there is no such end
	Limit int       // attempts, at least 1
	// Seed names the attempts. Jitter follows from their names, so the same seed gives the same delays.
	Seed uint64
}

// End is why a run ended.
type End string

// The ends.
const (
	EndNothingPlanned End = "nothing planned" // the model is disabled or finished
	EndOutcomes       End = "outcomes"        // all outcomes are used up
	EndUntil          End = "until"           // the next attempt would start after Plan.Until
	EndLimit          End = "limit"           // as many attempts as Plan.Limit have run
)

// Run is what happened.
type Run struct {
	Events   []chart.Event
	Attempts int
	End      End
	Model    model.Model // as the run has left it
}

// NewModel saves the first definition of a model, as the daemons would.
func NewModel(definition model.Definition, p policy.Policy, now time.Time) (*model.Model, error) {
	decision, _, err := new(model.Model).Put(definition, p, false, now)
	if err != nil {
		return nil, err
	}
	saved := *decision.Definition
	saved.State = decision.Next
	return &saved, nil
}

// Simulate runs a model under its policy, from a start by hand. Workers begin immediately and answer as outcomes say; answers and deadlines are
// handled in the same millisecond. The given model stays unchanged.
func Simulate(m model.Model, outcomes Outcomes, plan Plan) Run {
	byHand, _ := m.Run(true, plan.Start) // forced: it cannot be refused
	m.State = byHand.Next
	next, stop := iter.Pull(outcomes)
	defer stop()
	r := runner{model: &m, outcome: next, plan: plan, now: plan.Start}
	for r.run.End == "" {
		r.run.End = r.step()
	}
	r.run.Model = m
	return r.run
}

type runner struct {
	model   *model.Model
	outcome func() (next Outcome, more bool)
	plan    Plan
	now     time.Time
	lastNo  int // of the attempt that ended last
	run     Run
}

// step wakes the model at its time and lets the attempt end that this starts. It returns why there is no further step, or
// nothing.
func (r *runner) step() End {
	at := r.model.RefreshAt
	switch {
	case !r.model.Waiting():
		return EndNothingPlanned
	case !r.plan.Until.IsZero() && at.After(r.plan.Until):
		return EndUntil
	case at.After(r.now):
		r.now = at
	}
	decision := r.model.StartOrSkip(r.now, fmt.Sprintf("%d-%d", r.plan.Seed, r.run.Attempts+1))
	if decision.Event != model.EventStart { // the end of the give-up window needs no outcome
		r.take(decision)
		return ""
	}
	if r.run.Attempts >= r.plan.Limit {
		return EndLimit
	}
	outcome, more := r.outcome()
	if !more {
		return EndOutcomes
	}
	r.run.Attempts++
	r.take(decision)
	if r.model.Policy.QueueTimeout > 0 {
		begun, _ := r.model.Begin(r.now, "")
		r.model.State = begun.Next
	}
	answer := r.now.Add(outcome.After)
	if outcome.Result == Lost || answer.After(r.model.DeadlineAt) {
		r.now = r.model.DeadlineAt
		r.take(r.model.Expire(r.now))
		return ""
	}
	r.now = answer
	decision, _ = r.model.Handle(model.Message{
		Type: model.MessageType(outcome.Result), UID: r.model.UID, AttemptUID: r.model.AttemptUID,
		Failure: policy.Failure{Reason: outcome.ErrorType, ErrorType: outcome.ErrorType},
	}, r.now) // it has the fence: it cannot be stale
	r.take(decision)
	return ""
}

func (r *runner) take(decision model.Decision) {
	r.model.State = decision.Next
	if decision.Ended != nil {
		r.run.Events = append(r.run.Events, chart.EndOf(*decision.Ended)...)
		r.lastNo = decision.Ended.AttemptNo
		return
	}
	next := &decision.Next
	event := chart.Event{
		At: r.now, Kind: chart.Kind(decision.Event), AttemptNo: next.AttemptNo,
		RefreshAt: next.RefreshAt, DeadlineAt: next.DeadlineAt, Why: next.Why,
	}
	switch {
	case decision.Event == model.EventStart && next.AttemptNo > 1:
		event.Kind = chart.Retry
	case decision.Event == model.EventGiveUp:
		event.Kind, event.AttemptNo = chart.Disabled, r.lastNo // the cycle of the attempt may be over
	}
	r.run.Events = append(r.run.Events, event)
}

// Chart is the run as package chart shows it. It lasts to plan.Until if nothing else ended it before, or if the model waits
// for nothing until then; else to the last event.
func (r *Run) Chart(plan Plan, title string, zone *time.Location) chart.Chart {
	end := plan.Start
	if n := len(r.Events); n > 0 {
		end = r.Events[n-1].At
	}
	if (r.End == EndUntil || r.End == EndNothingPlanned) && plan.Until.After(end) {
		end = plan.Until
	}
	return chart.Chart{
		Title: title, Location: zone, Start: plan.Start, End: end,
		Events: r.Events, Planned: Planned(&r.Model, plan.Start, end), CutOff: r.End == EndLimit,
	}
}

// maxPlanned bounds the planned refreshes of a chart. Nobody could see more, so then none are shown.
const maxPlanned = 5000

// Planned are the planned refreshes of a model from one instant to another, both included; none if there are too many to draw.
func Planned(m *model.Model, from, to time.Time) []time.Time {
	var all []time.Time
	for at := m.Planned(from.Add(-time.Millisecond)); !at.IsZero() && !at.After(to); at = m.Planned(at) {
		if len(all) == maxPlanned {
			return nil
		}
		all = append(all, at)
	}
	return all
}

var timeLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "20060102T150405", time.DateOnly}

// ParseTime reads a time from 1970 to 2200: in RFC 3339, or a wall clock time in zone, of two equal ones the first. An error is a *document.Error.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	for _, layout := range timeLayouts {
		if err == nil {
			break
		}
		if at, err = time.Parse(layout, text); err == nil {
			at = schedule.Shown(at, zone)
		}
	}
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return at, &document.Error{Want: "a time such as 2026-11-21T06:00 or 2026-11-21T06:00:00Z, from 1970 to 2200", Found: document.Found(text)}
	}
	return at.UTC().Truncate(time.Millisecond), nil
}
