package model

import (
	"fmt"
	"time"
)

// Start hands out an attempt under a new uid (S0-9). The caller has checked that the model is due.
//
// refresh_at becomes what a timeout at the deadline would decide, so it never lies before the deadline; it stays empty
// when that timeout would be final: then the deadline alone wakes the model (bug 21).
func (m *Model) Start(now time.Time, attemptUID string) Decision {
	next := m.State
	next.AttemptNo++
	next.AttemptUID = attemptUID
	next.StartedAt = now
	next.DeadlineAt = now.Add(m.Policy.Timeout)
	next.UserFriendlyStatus, next.Progress = "", 0
	m.expectTimeout(&next)
	return Decision{Event: EventStart, Next: next, Message: m.message(&next)}
}

// expectTimeout sets refresh_at to what a timeout at the deadline would decide.
func (m *Model) expectTimeout(next *State) {
	if next.Again {
		next.RefreshAt, next.Why = next.DeadlineAt, whyAgain
		return
	}
	lost := m.afterFailure(next.AttemptNo, Failure{Reason: ReasonTimeout}, next.DeadlineAt)
	next.RefreshAt = lost.at
	next.Why = shorten("if lost: "+lost.why, maxWhy)
}

// Expire ends an attempt whose deadline has passed: a failure with reason "timeout" (decision 6, bug 4).
func (m *Model) Expire(now time.Time) Decision {
	return m.fail(EventTimeout, Failure{Reason: ReasonTimeout, ErrorType: ReasonTimeout}, now)
}

// Withdraw ends an attempt that still stood in the input list at its deadline: nobody took it, so nothing failed. The
// model is due again and nothing is counted.
func (m *Model) Withdraw(now time.Time) Decision {
	decision := Decision{Event: EventWithdrawn, Next: m.State}
	next := &decision.Next
	next.AttemptNo = max(0, next.AttemptNo-1)
	next.RefreshAt, next.Why = now, "withdrawn: no worker took it"
	if next.Again {
		next.Why = whyAgain
	}
	next.endAttempt()
	return decision
}

const whyAgain = "saved while running: again"

// Succeed ends the running attempt well: the next refresh is planned after now (S0-10, S0-14).
func (m *Model) Succeed(now time.Time, changed *bool) Decision {
	decision := Decision{Event: EventSuccess, Next: m.State}
	next := &decision.Next
	if !next.FinalFailureAt.IsZero() {
		decision.Notice = NoticeRecovered
	}
	next.AttemptNo, next.Deferrals = 0, 0
	next.LastSuccessAt = now
	next.FailingSince, next.FinalFailureAt = time.Time{}, time.Time{}
	if next.Again {
		next.RefreshAt, next.Why = now, whyAgain
	} else {
		m.plan(next, now)
	}
	decision.end(&m.State, now, Failure{}, changed)
	return decision
}

// plan sets refresh_at to the next planned refresh after now; none is left: the model is finished.
func (m *Model) plan(next *State, now time.Time) {
	planned, found := m.planned(now)
	next.RefreshAt = planned
	switch {
	case m.OneShot():
		next.Why = "finished: one-shot"
	case !found:
		next.Why = "finished: no planned refresh left"
	case m.Schedule == nil:
		next.Why = "schedule unreadable: look again later"
	default:
		next.Why = "planned"
	}
}

// Fail ends the running attempt with the failure rule (S0-11).
func (m *Model) Fail(failure Failure, now time.Time) Decision {
	return m.fail(EventFailure, failure, now)
}

func (m *Model) fail(event Event, failure Failure, now time.Time) Decision {
	decision := Decision{Event: event, Next: m.State}
	next := &decision.Next
	next.Deferrals = 0
	if next.Again {
		// The failure belongs to a definition that is no longer in force: it must not count against the new one.
		next.AttemptNo = 0
		next.RefreshAt, next.Why = now, whyAgain
	} else {
		m.follow(&decision, failure, now)
	}
	decision.end(&m.State, now, failure, nil)
	return decision
}

// follow writes what the failure rule decides into the next state.
func (m *Model) follow(decision *Decision, failure Failure, now time.Time) {
	next := &decision.Next
	if next.FailingSince.IsZero() {
		next.FailingSince = now
	}
	rule := m.afterFailure(next.AttemptNo, failure, now)
	next.AttemptNo, next.RefreshAt, next.Why = rule.attemptNo, rule.at, rule.why
	decision.Exhausted, decision.Final = rule.exhausted, rule.final
	if !rule.final {
		return
	}
	next.Disabled = true
	next.DisabledReason = ownersReason(next.AttemptNo, failure)
	next.FinalFailureAt = now
	decision.Notice = NoticeDisabled
}

// ownersReason is what the owner of a disabled model reads: the worker's own words, or a plain sentence (S0-7, bug 33).
func ownersReason(attempts int, failure Failure) string {
	if own := shorten(failure.UserFriendlyReason, maxText); own != "" {
		return own
	}
	times := fmt.Sprintf("%d attempts", attempts)
	if attempts == 1 {
		times = "1 attempt"
	}
	text := "Cannot refresh after " + times
	if reason := shorten(failure.Reason, maxText); reason != "" {
		text += ": " + reason
	}
	return shorten(text, maxText)
}

// maxDeferrals is how many postponed or interrupted attempts in a row are free; the next one is a failure.
const maxDeferrals = 10

// Postpone ends an attempt that the worker asks to try again after a delay; it does not count, but not for ever.
func (m *Model) Postpone(delay time.Duration, now time.Time) Decision {
	why := "postponed by the worker " + delayText(delay)
	return m.deferAttempt(EventPostponed, delay, why, now)
}

// Interrupt ends an attempt whose worker had to stop: due again now, not counted, but not for ever.
func (m *Model) Interrupt(now time.Time) Decision {
	return m.deferAttempt(EventInterrupted, 0, "interrupted: again at once", now)
}

func (m *Model) deferAttempt(event Event, delay time.Duration, why string, now time.Time) Decision {
	if m.Deferrals >= maxDeferrals {
		reason := fmt.Sprintf("%s %d times in a row", event, m.Deferrals+1)
		return m.fail(EventFailure, Failure{Reason: reason, RetryAfter: delay}, now)
	}
	decision := Decision{Event: event, Next: m.State}
	next := &decision.Next
	next.AttemptNo = max(0, next.AttemptNo-1)
	next.Deferrals++
	next.RefreshAt, next.Why = now.Add(delay), why
	if next.Again {
		next.RefreshAt, next.Why = now, whyAgain
	}
	decision.end(&m.State, now, Failure{}, nil)
	return decision
}

// Begin notes that the work really begins: the deadline counts from now (bug 31). Only the first word of an attempt moves
// it; false: it had begun before.
func (m *Model) Begin(now time.Time, worker string) (Decision, bool) {
	decision := Decision{Event: EventStarted, Next: m.State}
	if !m.ProcessingAt.IsZero() {
		return decision, false
	}
	next := &decision.Next
	next.ProcessingAt = now
	next.Worker = shorten(worker, maxWhy)
	next.DeadlineAt = now.Add(m.Policy.Timeout)
	m.expectTimeout(next)
	return decision, true
}
