package simulate

import (
	"time"

	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/model"
)

// Chart is the run as package chart shows it. It lasts to plan.Until if nothing else ended it before, or if the model waits
// for nothing until then; else to the last event.
func (r *Run) Chart(plan Plan, title string, zone *time.Location) chart.Chart {
	last := plan.Start
	if n := len(r.Events); n > 0 {
		last = r.Events[n-1].At
	}
	end := last
	if (r.End == EndUntil || r.End == EndNothingPlanned) && plan.Until.After(last) {
		end = plan.Until
	}
	return chart.Chart{
		Title: title, Policy: title, Location: zone, Start: plan.Start, End: end,
		Events: r.Events, Planned: Planned(&r.Model, plan.Start, end), CutOff: r.End == EndLimit,
	}
}

// maxPlanned bounds the planned refreshes of a chart. More than that nobody could see apart: then none are shown.
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
