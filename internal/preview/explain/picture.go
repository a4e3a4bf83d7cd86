package explain

import (
	"fmt"

	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// Picture draws the attempts that ended last, the running one, and the end of a give-up window.
func Picture(s View, attempts []model.Attempt) chart.Chart {
	drawing := chart.Chart{Title: s.Record.UID, Location: ZoneOf(&s.Record.Model), Events: chart.FromHistory(attempts)}
	if count := len(drawing.Events); count > 0 {
		drawing.End = drawing.Events[count-1].At
	}
	switch r := s.Record; {
	case r.Running():
		event := chart.Begin(r.StartedAt, r.AttemptNo)
		event.RefreshAt, event.DeadlineAt, event.BegunAt, event.Why = r.RefreshAt, r.DeadlineAt, r.ProcessingAt, r.Why
		drawing.Events = append(drawing.Events, event)
		drawing.End = s.Now
	case r.Disabled && r.FinalFailureAt.After(drawing.End):
		// The give-up window ended while the model waited.
		drawing.Events = append(drawing.Events, chart.Event{At: r.FinalFailureAt, Kind: chart.Disabled, AttemptNo: r.AttemptNo, Why: r.Why})
		drawing.End = r.FinalFailureAt
	}
	if len(drawing.Events) > 0 {
		drawing.Start = drawing.Events[0].At
		drawing.Planned = simulate.Planned(&s.Record.Model, drawing.Start, drawing.End)
	}
	return drawing
}

// Tree draws what follows the next or running attempt; without branches: there will be none.
func (s *Explanation) Tree() chart.Tree {
	f := &s.Forecast
	tree := chart.Tree{Title: s.m.UID, Location: s.zone, Now: s.Now, Start: f.StartAt, Begins: "starts at " + s.clock(f.StartAt)}
	switch {
	case s.m.Running():
		tree.Start, tree.Begins = s.m.StartedAt, "runs since "+s.clock(s.m.StartedAt)
	case s.WaitsFor != "":
		tree.Start, tree.Begins = s.Now, "starts when "+string(s.WaitsFor)+" lets it go"
	case f.StartAt.IsZero():
		tree.Start, tree.Begins = s.Now, "starts no more"
	}
	add := func(kind chart.Kind, ends string, b model.Branch) {
		if b.Possible() && b.At.Sub(s.Now) < forever {
			follows := words.Clause(s.coming(b))
			tree.Branches = append(tree.Branches, chart.Branch{Kind: kind, At: b.At, Ends: ends, Next: b.RefreshAt, Disabled: b.Disabled, Follows: follows})
		}
	}
	add(chart.Success, "it succeeds", f.Success)
	add(chart.Failure, "it fails", f.Failure)
	add(chart.Timeout, "nobody answers", f.TimedOut)
	return tree
}

// Next describes the branches of Tree; nil: there are none.
func (s *Explanation) Next() (lines []string) {
	for _, b := range s.Tree().Branches {
		lines = append(lines, "If "+b.Ends+": "+b.Follows)
	}
	switch {
	case lines == nil:
		return nil
	case s.WaitsFor != "":
		lines = append(lines, "These times are for a start once due, and an answer at once.")
	case !s.Forecast.StartAt.IsZero():
		lines = append(lines, "These times are for an answer at once.")
	}
	if s.Forecast.Jitter > 0 {
		lines = append(lines, fmt.Sprintf("Jitter may move a retry by %g%%.", 100*s.Forecast.Jitter))
	}
	return lines
}
