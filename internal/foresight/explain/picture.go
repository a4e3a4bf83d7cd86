package explain

import (
	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/internal/foresight/simulate"
	"github.com/refreshd/refreshd/model"
)

// Picture draws what happened to a model: the attempts that ended last, the one that runs, and its end by itself.
func Picture(s Shown, attempts []model.Attempt) chart.Chart {
	drawing := chart.Chart{Title: s.Record.UID, Location: ZoneOf(&s.Record.Model), Events: chart.FromHistory(attempts)}
	if count := len(drawing.Events); count > 0 {
		drawing.End = drawing.Events[count-1].At
	}
	switch r := s.Record; {
	case r.Running():
		event := chart.Begin(r.StartedAt, r.AttemptNo)
		event.RefreshAt, event.DeadlineAt, event.Why = r.RefreshAt, r.DeadlineAt, r.Why
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

// Branches draws what follows if the next attempt, or the one that runs, succeeds, fails or is lost: a chart for each, on one axis.
func (s *Explanation) Branches() (charts []chart.Chart) {
	m, start, no := &s.Record.Model, s.Forecast.StartAt, s.Record.AttemptNo+1
	if start.IsZero() {
		start, no = m.StartedAt, m.AttemptNo
	}
	for _, way := range []struct {
		name   string
		kind   chart.Kind
		branch model.Branch
	}{
		{"if it succeeds", chart.Success, s.Forecast.Success}, {"if it fails", chart.Failure, s.Forecast.Failure}, {"if it is lost", chart.Timeout, s.Forecast.TimedOut},
	} {
		if !way.branch.Possible() {
			continue
		}
		ends := chart.Event{At: way.branch.At, Kind: way.kind, AttemptNo: no, RefreshAt: way.branch.RefreshAt, Why: way.branch.Why}
		drawing := chart.Chart{Title: way.name, About: s.branch(way.branch), Location: s.zone, Start: start, End: way.branch.At, Events: []chart.Event{chart.Begin(start, no), ends}}
		if at := way.branch.RefreshAt; !at.Before(drawing.End) {
			drawing.End, drawing.Events = at, append(drawing.Events, chart.Begin(at, way.branch.AttemptNo+1))
		}
		if way.branch.Disabled {
			drawing.Events = append(drawing.Events, chart.Event{At: way.branch.At, Kind: chart.Disabled, AttemptNo: no, Why: way.branch.Why})
		}
		charts = append(charts, drawing)
	}
	return charts
}
