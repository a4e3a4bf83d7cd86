package model

import (
	"strings"
	"time"
)

// Trigger is why refresh_at was set; while an attempt runs, why that one was started.
type Trigger string

const (
	// TriggerPlanned is a planned refresh, also one that takes the place of a retry, and what stands in for one: the start of a one-shot
	// that was saved.
	TriggerPlanned Trigger = ""
	// TriggerRetry is a retry after a failure. It is never skipped.
	TriggerRetry Trigger = "retry"
	// TriggerHand is somebody who wants a refresh at once: `refresh: now`, a cure, a bulk, a save while an attempt ran. It is urgent.
	TriggerHand Trigger = "hand"
	// TriggerRun is a run of one model: it is urgent too, and starts before all that TriggerHand stands for, however many these are.
	TriggerRun Trigger = "run"
	// TriggerDeferred is an attempt that is tried again because it was postponed or interrupted, or not begun.
	TriggerDeferred Trigger = "deferred"
	// TriggerGiveUp is the end of the give-up window: nothing starts then.
	TriggerGiveUp Trigger = "give_up"
)

// started is the cause of an attempt that starts after all, though the model has waited for something else: where the circuit of the queue holds giving
// up back, or a save has begun a new window.
func (c Trigger) started() Trigger {
	if c == TriggerGiveUp {
		return TriggerRetry
	}
	return c
}

// wait sets when the model starts next, and why.
func (s *State) wait(at time.Time, cause Trigger, why string) {
	s.RefreshAt, s.Trigger, s.Why = at, cause, why
	s.PlannedFor = time.Time{}
	s.ParkedBy, s.ParkedSince, s.Reserved = "", time.Time{}, ""
}

// dueNow makes the model due now, before the backlog. Somebody asks for it, so that no floor of a worker holds.
func (s *State) dueNow(now time.Time, why string) {
	cause := TriggerHand
	if s.Urgent() {
		cause = s.Trigger
	}
	s.wait(now, cause, why)
	s.NotBefore = time.Time{}
}

// Urgent reports whether the model waits for a start that somebody wants at once: exactly then it stands in the urgent set.
func (s *State) Urgent() bool { return s.Waiting() && s.Trigger.ByHand() && !s.Parked() }

// ByHand reports whether somebody wants the start at once.
func (c Trigger) ByHand() bool { return c == TriggerHand || c == TriggerRun }

// endsWindow reports whether the model waits for the end of its give-up window. A release before this one told it by words alone.
func (s *State) endsWindow() bool {
	return s.Trigger == TriggerGiveUp || s.Trigger == TriggerPlanned && strings.HasPrefix(s.Why, givesUpWords)
}

// Stopper is who disabled a model.
type Stopper string

// The two that may disable a model.
const (
	StoppedByHand   Stopper = "hand"   // until it is enabled, whatever is saved meanwhile
	StoppedByPolicy Stopper = "policy" // a final failure: until a save that changes something
)

// StoppedBy tells who disabled the model; empty: it is enabled. A release before this one told it by words alone.
func (s *State) StoppedBy() Stopper {
	switch {
	case !s.Disabled:
		return ""
	case s.DisabledBy != "":
		return s.DisabledBy
	case s.Why == whyDisabled:
		return StoppedByHand
	default:
		return StoppedByPolicy
	}
}

// whyDisabled is refresh_why of a model that was disabled by hand.
const whyDisabled = "disabled by hand"
