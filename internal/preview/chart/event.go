package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// Kind is a kind of event.
type Kind string

// The kinds of events. Start and retry begin an attempt.
const (
	Start Kind = "start"
	Retry Kind = "retry" // an attempt after a failure: its number is above 1

	// These end an attempt.
	Success      Kind = "success"
	Failure      Kind = "failure"
	Timeout      Kind = "timeout"
	Postponed    Kind = "postponed"
	Interrupted  Kind = "interrupted"
	Withdrawn    Kind = "withdrawn"
	QueueTimeout Kind = "queue_timeout"
	Superseded   Kind = "superseded"

	// These have no attempt.
	Exhausted Kind = "exhausted" // the retries are used up
	Disabled  Kind = "disabled"  // no further attempt until somebody acts
	Finished  Kind = "finished"  // no planned refresh is left
	Skipped   Kind = "skipped"   // a missed refresh was left out
)

type style struct {
	icon  string // two columns wide on a terminal
	bar   string // class of the bar of an attempt that ended so
	words string // class of the words about it
}

var styles = map[Kind]style{
	Success: {"✅", "success", "good"}, Failure: {"❌", "failure", "bad"}, Timeout: {"⏰", "timeout", "bad"},
	Start: {icon: "🚀"}, Retry: {icon: "🔄"}, Exhausted: {icon: "💥"}, Disabled: {icon: "💥"}, Finished: {icon: "🏁"}, Skipped: {icon: "⏩"},
	Postponed: {icon: "⏳"}, Interrupted: {icon: "✋"}, Withdrawn: {icon: "⏪"}, QueueTimeout: {icon: "⌛"}, Superseded: {icon: "🔁"},
	"": {bar: "running"}, // an attempt that has not ended
}

func (k Kind) style() style {
	l := styles[k]
	l.icon, l.bar, l.words = cmp.Or(l.icon, "🔹"), cmp.Or(l.bar, "other"), cmp.Or(l.words, "note")
	return l
}

func (k Kind) text() string { return strings.ReplaceAll(string(k), "_", " ") }

func (k Kind) begins() bool { return k == Start || k == Retry }

func (k Kind) failed() bool { return k == Failure || k == Timeout }

// Event is one thing that happened, or would happen, to a model.
type Event struct {
	At         time.Time `json:"at"`
	Kind       Kind      `json:"event"`
	AttemptNo  int       `json:"attempt_no"`
	RefreshAt  time.Time `json:"refresh_at"`       // when the next attempt starts; zero: none
	DeadlineAt time.Time `json:"deadline_at"`      // of the attempt that runs now; zero: none
	Why        string    `json:"why"`              // why RefreshAt was chosen
	Reason     string    `json:"reason,omitempty"` // of a failure, in the words of the worker
	BegunAt    time.Time `json:"-"`                // when a worker began the attempt; zero: with it, or nobody knows
	RetryAt    time.Time // when the next attempt would start if it had not to wait for the planned refresh; zero: at RefreshAt
	Planned    bool      // it begins a planned refresh, or ends an attempt behind which one comes next
}

// isRetry: the event begins an attempt after a failure, and no planned refresh.
func (e Event) isRetry() bool {
	return !e.Planned && (e.Kind == Retry || e.Kind == Start && e.AttemptNo > 1)
}

func ordered(events []Event) []Event {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return a.At.Compare(b.At) })
	for i := range events[min(1, len(events)):] {
		before, next := events[i], &events[i+1]
		next.Planned = next.Planned && !next.Kind.begins() || next.Kind.begins() && before.Planned && !next.At.Before(before.RefreshAt)
	}
	return events
}

// FromHistory makes the events of attempts that have ended, in any order.
func FromHistory(attempts []model.Attempt) []Event {
	// An attempt may start when the one before it ends.
	oldestFirst := slices.SortedStableFunc(slices.Values(attempts), func(a, b model.Attempt) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), a.EndedAt.Compare(b.EndedAt), cmp.Compare(a.AttemptNo, b.AttemptNo))
	})
	var events []Event
	for _, attempt := range oldestFirst {
		begin := Begin(attempt.StartedAt, attempt.AttemptNo)
		begin.DeadlineAt, begin.BegunAt = attempt.DeadlineAt, attempt.ProcessingAt
		events = append(append(events, begin), EndOf(attempt)...)
	}
	return ordered(events)
}

// Begin is the beginning of an attempt.
func Begin(at time.Time, no int) Event {
	event := Event{At: at, Kind: Start, AttemptNo: no}
	if no > 1 {
		event.Kind = Retry
	}
	return event
}

// EndOf makes the events of the end of an attempt: how it ended, then exhausted, disabled or finished where that follows.
func EndOf(attempt model.Attempt) []Event {
	end := Event{
		At: attempt.EndedAt, Kind: Kind(attempt.Outcome), AttemptNo: attempt.AttemptNo, Why: attempt.Why,
		RefreshAt: attempt.RefreshAt, Planned: !attempt.PlannedAt.IsZero() && attempt.RefreshAt.Equal(attempt.PlannedAt),
	}
	events := []Event{end}
	events[0].Reason, events[0].RetryAt = attempt.Reason, attempt.DisplacedRetry()
	if attempt.Exhausted {
		end.Kind = Exhausted
		events = append(events, end)
	}
	switch {
	case attempt.Final:
		end.Kind = Disabled
	case attempt.Outcome == model.EventSuccess && attempt.RefreshAt.IsZero():
		end.Kind = Finished
	default:
		return events
	}
	return append(events, end)
}

type attempt struct {
	before *attempt // nil: this is the first
	begin  Event
	end    Event // without a kind: it has not ended
}

func attemptsOf(events []Event) []*attempt {
	var attempts []*attempt
	var last *attempt
	open := false
	for _, event := range events {
		switch {
		case event.Kind.begins():
			if open {
				last.end = Event{At: event.At, Kind: Superseded}
			}
			last = &attempt{before: last, begin: event}
			attempts, open = append(attempts, last), true
		case open && event.Kind != Exhausted && event.Kind != Finished && event.Kind != Skipped: // these end no attempt
			last.end, open = event, false
		}
	}
	return attempts
}

func (a *attempt) running() bool { return a.end.Kind == "" }

func (a *attempt) name() string {
	if a.begin.isRetry() {
		return fmt.Sprintf("Retry %d", max(1, a.begin.AttemptNo-1))
	}
	return "Refresh"
}

// until is the end of its bar: a running attempt lasts to the end of the picture.
func (a *attempt) until(end time.Time) time.Time {
	switch {
	case !a.running():
		return a.end.At
	case end.Before(a.begin.At):
		return a.begin.At
	default:
		return end
	}
}
