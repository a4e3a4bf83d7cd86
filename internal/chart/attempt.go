package chart

import (
	"fmt"
	"time"
)

// attempt is one attempt from its start to its end.
type attempt struct {
	no         int
	retry      bool
	waited     bool      // the attempt before had no success
	start, end time.Time // end is zero while it runs
	deadline   time.Time // zero: not known
	outcome    Kind      // empty while it runs
	why        string
	reason     string
	next       time.Time // when the next one starts; zero: none
	retryAt    time.Time // when a retry would have started, had the planned refresh not come first; zero: none
}

// attemptsOf pairs the beginnings and ends of events in the order of time.
func attemptsOf(events []Event) []attempt {
	var attempts []attempt
	open := false
	for _, event := range events {
		last := len(attempts) - 1
		switch {
		case event.Kind.begins():
			if open {
				attempts[last].close(Event{At: event.At, Kind: Superseded})
			}
			next := begun(event)
			next.waited = last >= 0 && attempts[last].outcome != Success
			attempts, open = append(attempts, next), true
		case open && !event.Kind.alone():
			attempts[last].close(event)
			open = false
		}
	}
	return attempts
}

func begun(event Event) attempt {
	return attempt{no: event.AttemptNo, retry: event.isRetry(), start: event.At, deadline: event.DeadlineAt}
}

func (a *attempt) close(event Event) {
	a.end, a.outcome, a.next, a.retryAt = event.At, event.Kind, event.RefreshAt, event.RetryAt
	a.why, a.reason = event.Why, event.Reason
}

func (a *attempt) running() bool { return a.outcome == "" }

// name is what people call it: the refresh, or its first, second, ... retry.
func (a *attempt) name() string {
	if a.retry {
		return fmt.Sprintf("Retry %d", max(1, a.no-1))
	}
	return "Refresh"
}

// until is where its bar ends: a running attempt lasts to the end of the picture.
func (a *attempt) until(end time.Time) time.Time {
	if !a.running() {
		return a.end
	}
	if end.Before(a.start) {
		return a.start
	}
	return end
}

// marks are the events that belong to no attempt and are worth a line of their own. What a failure of the same instant has
// said already is left out.
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
