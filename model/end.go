package model

import (
	"cmp"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

const whyAgain = "saved while running: again"

// Succeed ends the running attempt well: the next refresh is planned after now.
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

// plan sets refresh_at to the next planned refresh after now; if none is left, the model is finished.
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
	case m.RuleError != "":
		next.Why = "rule takes too many steps: look again later"
	default:
		next.Why = "planned"
	}
}

// Fail ends the running attempt as the failure rule decides.
func (m *Model) Fail(failure policy.Failure, now time.Time) Decision {
	return m.fail(EventFailure, failure, now)
}

// Expire ends an attempt whose deadline has passed: a failure like any other. Only one that no worker began in time is deferred.
func (m *Model) Expire(now time.Time) Decision {
	if m.awaitsBegin(&m.State) {
		return m.deferAttempt(EventQueueTimeout, 0, "not begun in time: again", now)
	}
	return m.fail(EventTimeout, policy.TimedOut(), now)
}

func (m *Model) fail(event Event, failure policy.Failure, now time.Time) Decision {
	decision := Decision{Event: event, Next: m.State}
	next := &decision.Next
	next.Deferrals = 0
	if next.Again {
		// The failure belongs to a definition that is no longer in force: it must not count against the new one.
		next.AttemptNo, next.RefreshAt, next.Why = 0, now, whyAgain
		decision.end(&m.State, now, failure, nil)
		return decision
	}
	if next.FailingSince.IsZero() {
		next.FailingSince = now
	}
	v := m.afterFailure(next, failure, now)
	next.AttemptNo, next.RefreshAt, next.Why = v.attemptNo, v.at, v.why.String()
	decision.Exhausted, decision.Held, decision.PolicyError = v.exhausted, v.why.held > 0, v.policyError
	decision.why = v.why
	if v.final {
		m.disable(&decision, failure, now)
	}
	decision.end(&m.State, now, failure, nil)
	return decision
}

// disable ends the refreshing of a model by a final failure, with a reason for its owner.
func (m *Model) disable(decision *Decision, failure policy.Failure, now time.Time) {
	next := &decision.Next
	next.Disabled = true
	next.DisabledReason = m.ownersReason(next.AttemptNo, failure)
	next.FinalFailureAt = now
	decision.Final = true
	decision.announce(policy.NoticeDisabled, &m.Policy)
}

// ownersReason is what the owner of a disabled model reads: the worker's own words, those of the policy, or a plain sentence.
func (m *Model) ownersReason(attempts int, failure policy.Failure) string {
	workers := document.Shorten(failure.UserFriendlyReason, document.MaxText)
	if own := cmp.Or(workers, m.Policy.DisabledReason); own != "" {
		return own
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

// maxDeferrals is how many postponed, interrupted or not begun attempts in a row are free; the next one is a failure.
const maxDeferrals = 10

// Postpone ends an attempt that the worker asks to try again after a delay.
func (m *Model) Postpone(delay time.Duration, now time.Time) Decision {
	return m.deferAttempt(EventPostponed, delay, "postponed by the worker "+delayText(delay), now)
}

// Interrupt ends an attempt whose worker had to stop: due again now.
func (m *Model) Interrupt(now time.Time) Decision {
	return m.deferAttempt(EventInterrupted, 0, "interrupted: again at once", now)
}

// deferAttempt ends an attempt that does not count, unless too many before it did not count either.
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

func deferredTooOften(event Event, times int, delay time.Duration) policy.Failure {
	return policy.Failure{Reason: fmt.Sprintf("%s %d times in a row", event, times), RetryAfter: delay, Ours: true}
}

// Withdraw ends an attempt that still stood in the input list at its deadline. Nobody took it, so nothing failed: the model is due
// again and nothing is counted.
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
