package simulate

import (
	"github.com/refreshd/refreshd/internal/timeline"
	"github.com/refreshd/refreshd/model"
)

// take puts a decision in force and tells of it.
func (r *runner) take(decision model.Decision) {
	r.model.State = decision.Next
	event := timeline.Event{
		At: r.now, Kind: kindOf(&decision), AttemptNo: decision.Next.AttemptNo,
		RefreshAt: decision.Next.RefreshAt, DeadlineAt: decision.Next.DeadlineAt, Why: decision.Next.Why,
	}
	if ended := decision.Ended; ended != nil {
		event.AttemptNo, event.Reason = ended.AttemptNo, ended.Reason
		r.last = ended.AttemptNo
	} else if event.Kind == timeline.Disabled {
		event.AttemptNo = r.last // its cycle may be over
	}
	r.tell(event)
	event.Reason = ""
	if decision.Exhausted {
		r.tell(as(timeline.Exhausted, event))
	}
	switch next := &decision.Next; {
	case next.Disabled:
		if event.Kind != timeline.Disabled {
			r.tell(as(timeline.Disabled, event))
		}
	case !next.Running() && !next.Waiting():
		r.tell(as(timeline.Finished, event))
	}
}

func (r *runner) tell(event timeline.Event) { r.run.Events = append(r.run.Events, event) }

func as(kind timeline.Kind, event timeline.Event) timeline.Event {
	event.Kind = kind
	return event
}

func kindOf(decision *model.Decision) timeline.Kind {
	switch {
	case decision.Event == model.EventStart && decision.Next.AttemptNo > 1:
		return timeline.Retry
	case decision.Event == model.EventGiveUp:
		return timeline.Disabled
	default:
		return timeline.Kind(decision.Event)
	}
}
