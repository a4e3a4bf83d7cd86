package chart

import (
	"fmt"
	"time"
)

type attempt struct {
	before   *attempt // nil: this is the first
	no       int
	retry    bool
	start    time.Time
	deadline time.Time // zero: not known

	// Set when it ends.
	end     time.Time
	outcome Kind
	why     string
	reason  string
	next    time.Time // when the next attempt starts; zero: none
	retryAt time.Time // when the next attempt would have started without a planned refresh; zero: at next
}

// attemptsOf pairs the beginnings and ends of events in the order of time.
func attemptsOf(events []Event) []*attempt {
	var attempts []*attempt
	var last *attempt
	open := false
	for _, event := range events {
		switch {
		case event.Kind.begins():
			if open {
				last.close(Event{At: event.At, Kind: Superseded})
			}
			last = &attempt{before: last, no: event.AttemptNo, retry: event.isRetry(), start: event.At, deadline: event.DeadlineAt}
			attempts, open = append(attempts, last), true
		case open && !event.Kind.alone():
			last.close(event)
			open = false
		}
	}
	return attempts
}

func (a *attempt) close(event Event) {
	a.end, a.outcome, a.why, a.reason = event.At, event.Kind, event.Why, event.Reason
	a.next, a.retryAt = event.RefreshAt, event.RetryAt
}

func (a *attempt) running() bool { return a.outcome == "" }

func (a *attempt) name() string {
	if a.retry {
		return fmt.Sprintf("Retry %d", max(1, a.no-1))
	}
	return "Refresh"
}

// until is where its bar ends: a running attempt lasts to the end of the picture.
func (a *attempt) until(end time.Time) time.Time {
	switch {
	case !a.running():
		return a.end
	case end.Before(a.start):
		return a.start
	default:
		return end
	}
}

// marks are the events that belong to no attempt and have a line of their own. Exhausted has none at the instant of the failure
// that it follows, whose line says so already.
func marks(events []Event) []Event {
	var found []Event
	for i, event := range events {
		switch event.Kind {
		case Exhausted:
			if i == 0 || !events[i-1].Kind.failed() || !events[i-1].At.Equal(event.At) {
				found = append(found, event)
			}
		case Disabled, Finished, Skipped:
			found = append(found, event)
		}
	}
	return found
}
