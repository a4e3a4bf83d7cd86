package model

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Wake decides what a due model does at now: it starts an attempt under a new uid, or its give-up window has ended, or the
// planned refresh was missed and its policy skips those. The caller has checked that the model is due.
func (m *Model) Wake(now time.Time, attemptUID string) Decision {
	if m.givenUp() {
		return m.giveUp(now)
	}
	if next, missed := m.missed(now); missed {
		decision := Decision{Event: EventSkipped, Next: m.State}
		decision.Next.RefreshAt = next
		decision.Next.Why = "misfire: skipped, late by " + document.FormatDuration(now.Sub(m.RefreshAt).Truncate(time.Second))
		m.boundWait(&decision.Next, now)
		return decision
	}
	return m.Start(now, attemptUID)
}

// Start hands out an attempt under a new uid (S0-9).
//
// refresh_at becomes what a timeout at the deadline would decide, so it never lies before the deadline; it stays empty
// when that timeout would be final: then the deadline alone wakes the model (bug 21).
func (m *Model) Start(now time.Time, attemptUID string) Decision {
	next := m.State
	next.AttemptNo++
	next.AttemptUID = attemptUID
	next.StartedAt = now
	if next.trying().IsZero() {
		next.TryingSince = now
	}
	next.DeadlineAt = m.deadline(&next, now)
	if m.Policy.QueueTimeout > 0 {
		next.DeadlineAt = now.Add(m.Policy.QueueTimeout)
	}
	next.UserFriendlyStatus, next.Progress = "", 0
	m.expectTimeout(&next)
	return Decision{Event: EventStart, Next: next, Message: m.message(&next)}
}

// deadline is when work that begins at now counts as timed out. Without a timeout that is the next planned refresh, which then
// takes its place (S0-8), or else the end of the give-up window; a one-shot with neither is waited for up to ten years.
func (m *Model) deadline(s *State, now time.Time) time.Time {
	if m.Policy.Timeout > 0 {
		return now.Add(m.Policy.Timeout)
	}
	deadline := now.Add(document.MaxDuration)
	if planned, found := m.planned(now); found {
		deadline = planned
	}
	if end := m.giveUpAt(s); end.After(now) && end.Before(deadline) {
		deadline = end
	}
	return deadline
}

// expectTimeout sets refresh_at to what a timeout at the deadline would decide.
func (m *Model) expectTimeout(next *State) {
	failure, text := policy.TimedOut(), "if lost: "
	switch {
	case next.Again:
		next.RefreshAt, next.Why = next.DeadlineAt, whyAgain
		return
	case m.awaitsBegin(next) && next.Deferrals < maxDeferrals:
		next.RefreshAt, next.Why = next.DeadlineAt, "if not begun: again, not counted"
		return
	case m.awaitsBegin(next):
		failure, text = deferredTooOften(EventQueueTimeout, next.Deferrals+1, 0), "if not begun: "
	}
	lost := m.afterFailure(next, failure, next.DeadlineAt)
	next.RefreshAt = lost.at
	next.Why = document.Shorten(text+lost.why.String(), maxWhy)
}

// awaitsBegin reports whether the deadline of the attempt is that of the queue: no worker has said `started` yet (bug 31).
func (m *Model) awaitsBegin(s *State) bool {
	return m.Policy.QueueTimeout > 0 && s.ProcessingAt.IsZero()
}

// Expire ends an attempt whose deadline has passed: a failure with reason "timeout" (decision 6, bug 4). One that nobody began
// in time is not a failure: it is due again, but not for ever.
func (m *Model) Expire(now time.Time) Decision {
	if m.awaitsBegin(&m.State) {
		return m.deferAttempt(EventQueueTimeout, 0, "not begun in time: again", now)
	}
	return m.fail(EventTimeout, policy.TimedOut(), now)
}

// Withdraw ends an attempt that still stood in the input list at its deadline: nobody took it, so nothing failed. The
// model is due again and nothing is counted.
func (m *Model) Withdraw(now time.Time) Decision {
	decision := Decision{Event: EventWithdrawn, Next: m.State}
	next := &decision.Next
	next.AttemptNo = max(0, next.AttemptNo-1)
	next.RefreshAt, next.Why = now, "withdrawn: no worker took it"
	if since := m.trying(); m.Policy.GiveUpAfter > 0 && !since.IsZero() {
		next.TryingSince = since.Add(now.Sub(m.StartedAt)) // nobody tried while it stood in line
	}
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
		decision.announce(policy.NoticeRecovered, &m.Policy)
	}
	next.AttemptNo, next.Deferrals = 0, 0
	next.LastSuccessAt = now
	next.FailingSince, next.FinalFailureAt, next.TryingSince = time.Time{}, time.Time{}, time.Time{}
	if next.Again {
		next.RefreshAt, next.Why = now, whyAgain
	} else {
		m.plan(next, now)
	}
	decision.end(&m.State, now, policy.Failure{}, changed)
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
func (m *Model) Fail(failure policy.Failure, now time.Time) Decision {
	return m.fail(EventFailure, failure, now)
}

func (m *Model) fail(event Event, failure policy.Failure, now time.Time) Decision {
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
func (m *Model) follow(decision *Decision, failure policy.Failure, now time.Time) {
	next := &decision.Next
	if next.FailingSince.IsZero() {
		next.FailingSince = now
	}
	rule := m.afterFailure(next, failure, now)
	next.AttemptNo, next.RefreshAt, next.Why = rule.attemptNo, rule.at, rule.why.String()
	decision.Exhausted, decision.Held = rule.exhausted, rule.held
	decision.PolicyError, decision.why = rule.policyError, rule.why
	if rule.final {
		m.disable(decision, failure, now)
	}
}

// disable ends the refreshing of a model by a final failure, with a reason for its owner (S0-12).
func (m *Model) disable(decision *Decision, failure policy.Failure, now time.Time) {
	next := &decision.Next
	next.Disabled = true
	next.DisabledReason = m.ownersReason(next.AttemptNo, failure)
	next.FinalFailureAt = now
	decision.Final = true
	decision.announce(policy.NoticeDisabled, &m.Policy)
}

// ownersReason is what the owner of a disabled model reads: the worker's own words, those of the policy, or a plain sentence
// (S0-7, bug 33).
func (m *Model) ownersReason(attempts int, failure policy.Failure) string {
	if own := document.Shorten(failure.UserFriendlyReason, document.MaxText); own != "" {
		return own
	}
	if m.Policy.DisabledReason != "" {
		return m.Policy.DisabledReason
	}
	text := fmt.Sprintf("Cannot refresh after %d attempts", attempts)
	switch attempts {
	case 0: // given up between two cycles
		text = "Cannot refresh"
	case 1:
		text = "Cannot refresh after 1 attempt"
	}
	if reason := document.Shorten(failure.Reason, document.MaxText); reason != "" {
		text += ": " + reason
	}
	return document.Shorten(text, document.MaxText)
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

func deferredTooOften(event Event, times int, delay time.Duration) policy.Failure {
	return policy.Failure{Reason: fmt.Sprintf("%s %d times in a row", event, times), RetryAfter: delay, Ours: true}
}

func (m *Model) deferAttempt(event Event, delay time.Duration, why string, now time.Time) Decision {
	if m.Deferrals >= maxDeferrals {
		return m.fail(EventFailure, deferredTooOften(event, m.Deferrals+1, delay), now)
	}
	decision := Decision{Event: event, Next: m.State}
	next := &decision.Next
	next.AttemptNo = max(0, next.AttemptNo-1)
	next.Deferrals++
	next.RefreshAt, next.Why = now.Add(delay), why
	m.boundWait(next, now)
	if next.Again {
		next.RefreshAt, next.Why = now, whyAgain
	}
	decision.end(&m.State, now, policy.Failure{}, nil)
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
	next.Worker = document.Shorten(worker, maxWhy)
	next.DeadlineAt = m.deadline(next, now)
	m.expectTimeout(next)
	return decision, true
}
