package main

import (
	"github.com/refreshd/refreshd/internal/chart"
	"github.com/refreshd/refreshd/internal/simulate"
	"github.com/refreshd/refreshd/model"
)

// historyChart draws what happened to a model: the attempts that ended last, the one that runs, and its end by itself.
func historyChart(s shown, attempts []model.Attempt) chart.Chart {
	chart := chart.Chart{Title: s.record.UID, Location: zoneOf(&s.record.Model), Events: chart.FromHistory(attempts)}
	switch r := s.record; {
	case r.Running():
		chart.Events = append(chart.Events, running(&r.Model))
		chart.End = s.now
	case r.Disabled && r.FinalFailureAt.After(lastOf(chart.Events).At):
		// The give-up window ended while the model waited.
		chart.Events = append(chart.Events, chart.Event{At: r.FinalFailureAt, Kind: chart.Disabled, AttemptNo: r.AttemptNo, Why: r.Why})
	}
	if len(chart.Events) > 0 {
		chart.Start = chart.Events[0].At
		if chart.End.IsZero() {
			chart.End = lastOf(chart.Events).At
		}
		chart.Planned = simulate.Planned(&s.record.Model, chart.Start, chart.End)
	}
	return chart
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
