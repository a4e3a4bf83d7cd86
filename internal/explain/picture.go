package explain

import (
	"github.com/refreshd/refreshd/internal/chart"
	"github.com/refreshd/refreshd/internal/simulate"
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
		drawing.Events = append(drawing.Events, running(&r.Model))
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

// running is the beginning of the attempt that runs.
func running(m *model.Model) chart.Event {
	event := chart.Event{
		At: m.StartedAt, Kind: chart.Start, AttemptNo: m.AttemptNo, RefreshAt: m.RefreshAt, DeadlineAt: m.DeadlineAt, Why: m.Why,
	}
	if m.AttemptNo > 1 {
		event.Kind = chart.Retry
	}
	return event
}
