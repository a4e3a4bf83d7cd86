package main

import (
	"github.com/refreshd/refreshd/internal/simulate"
	"github.com/refreshd/refreshd/internal/timeline"
	"github.com/refreshd/refreshd/model"
)

// historyChart draws what happened to a model: the attempts that ended last, the one that runs, and its end by itself.
func historyChart(s shown, attempts []model.Attempt) timeline.Chart {
	chart := timeline.Chart{Title: s.record.UID, Location: zoneOf(&s.record.Model), Events: timeline.FromHistory(attempts)}
	switch r := s.record; {
	case r.Running():
		chart.Events = append(chart.Events, running(&r.Model))
		chart.End = s.now
	case r.Disabled && r.FinalFailureAt.After(lastOf(chart.Events).At):
		// The give-up window ended while the model waited.
		chart.Events = append(chart.Events, timeline.Event{At: r.FinalFailureAt, Kind: timeline.Disabled, AttemptNo: r.AttemptNo, Why: r.Why})
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
func running(m *model.Model) timeline.Event {
	event := timeline.Event{
		At: m.StartedAt, Kind: timeline.Start, AttemptNo: m.AttemptNo, RefreshAt: m.RefreshAt, DeadlineAt: m.DeadlineAt, Why: m.Why,
	}
	if m.AttemptNo > 1 {
		event.Kind = timeline.Retry
	}
	return event
}

func lastOf(events []timeline.Event) timeline.Event {
	if len(events) == 0 {
		return timeline.Event{}
	}
	return events[len(events)-1]
}
