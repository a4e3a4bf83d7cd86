package simulate

import (
	"time"

	"github.com/refreshd/refreshd/internal/chart"
	"github.com/refreshd/refreshd/model"
)

// eventsOf is how a decision looks in a chart. lastNo is the number of the attempt that ended last.
func eventsOf(decision *model.Decision, now time.Time, lastNo int) []chart.Event {
	if decision.Ended != nil {
		return chart.EndOf(*decision.Ended)
	}
	next := &decision.Next
	event := chart.Event{
		At: now, Kind: chart.Kind(decision.Event), AttemptNo: next.AttemptNo,
		RefreshAt: next.RefreshAt, DeadlineAt: next.DeadlineAt, Why: next.Why,
	}
	switch {
	case decision.Event == model.EventStart && next.AttemptNo > 1:
		event.Kind = chart.Retry
	case decision.Event == model.EventGiveUp:
		event.Kind, event.AttemptNo = chart.Disabled, lastNo // the cycle of the attempt may be over
	}
	return []chart.Event{event}
}
