package main

import (
	"github.com/refreshd/refreshd/internal/chart"
	"github.com/refreshd/refreshd/internal/simulate"
	"github.com/refreshd/refreshd/model"
)

// historyChart draws what happened to a model: the attempts that ended last, the one that runs, and its end by itself.
func historyChart(s shown, attempts []model.Attempt) chart.Chart {
	drawing := chart.Chart{Title: s.record.UID, Location: zoneOf(&s.record.Model), Events: chart.FromHistory(attempts)}
	switch r := s.record; {
	case r.Running():
		drawing.Events = append(drawing.Events, running(&r.Model))
		drawing.End = s.now
	case r.Disabled && r.FinalFailureAt.After(lastOf(drawing.Events).At):
		// The give-up window ended while the model waited.
		drawing.Events = append(drawing.Events, chart.Event{At: r.FinalFailureAt, Kind: chart.Disabled, AttemptNo: r.AttemptNo, Why: r.Why})
	}
	if len(drawing.Events) > 0 {
		drawing.Start = drawing.Events[0].At
		if drawing.End.IsZero() {
			drawing.End = lastOf(drawing.Events).At
		}
		drawing.Planned = simulate.Planned(&s.record.Model, drawing.Start, drawing.End)
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

func lastOf(events []chart.Event) chart.Event {
	if len(events) == 0 {
		return chart.Event{}
	}
	return events[len(events)-1]
}
