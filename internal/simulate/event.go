package simulate

import (
	"github.com/refreshd/refreshd/internal/chart"
	"github.com/refreshd/refreshd/model"
)

// take puts a decision in force and tells of it.
func (r *runner) take(decision model.Decision) {
	r.model.State = decision.Next
	event := chart.Event{
		At: r.now, Kind: kindOf(&decision), AttemptNo: decision.Next.AttemptNo,
		RefreshAt: decision.Next.RefreshAt, DeadlineAt: decision.Next.DeadlineAt, Why: decision.Next.Why,
	}
	if ended := decision.Ended; ended != nil {
		event.AttemptNo, event.Reason, event.RetryAt = ended.AttemptNo, ended.Reason, ended.DisplacedRetry()
		r.last = ended.AttemptNo
	} else if event.Kind == chart.Disabled {
		event.AttemptNo = r.last // its cycle may be over
	}
	r.tell(event)
	event.Reason = ""
	if decision.Exhausted {
		r.tell(as(chart.Exhausted, event))
	}
	switch next := &decision.Next; {
	case next.Disabled:
		if event.Kind != chart.Disabled {
			r.tell(as(chart.Disabled, event))
		}
	case !next.Running() && !next.Waiting():
		r.tell(as(chart.Finished, event))
	}
}

func (r *runner) tell(event chart.Event) { r.run.Events = append(r.run.Events, event) }

func as(kind chart.Kind, event chart.Event) chart.Event {
	event.Kind = kind
	return event
}

func kindOf(decision *model.Decision) chart.Kind {
	switch {
	case decision.Event == model.EventStart && decision.Next.AttemptNo > 1:
		return chart.Retry
	case decision.Event == model.EventGiveUp:
		return chart.Disabled
	default:
		return chart.Kind(decision.Event)
	}
}
