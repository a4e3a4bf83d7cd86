package model

import (
	"cmp"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

const whyAgain = "saved while running: again"

// Succeed ends the running attempt well: the next refresh is planned after now.
func (m *Model) Succeed(now time.Time, changed *bool) Decision {
	if m.Outdated {
		return m.outdated(policy.Failure{}, changed, now)
	}
	decision := Decision{Event: EventSuccess, Next: m.State}
	next := &decision.Next
	if !next.FinalFailureAt.IsZero() {
		decision.addNotice(policy.NoticeRecovered, &m.Policy)
	}
	next.AttemptNo, next.Deferrals, next.Deaths = 0, 0, 0
	next.LastSuccessAt, next.FingerprintID, next.Unpublished = now, "", false
	next.Fence = max(next.Fence, now.UnixMilli()) // last_success_at then equals it, and the hash needs no field for it
	next.FailingSince, next.FinalFailureAt, next.TryingSince = time.Time{}, time.Time{}, time.Time{}
	m.continueAttempt(next, now)
	decision.end(m, now, policy.Failure{}, changed)
	return decision
}

func (m *Model) continueAttempt(next *State, now time.Time) {
	if next.Again {
		next.dueNow(now, whyAgain)
	} else {
		m.plan(next, now)
	}
}

// plan sets refresh_at to the next planned refresh after now, not before NotBefore. Without one the model is finished.
func (m *Model) plan(next *State, now time.Time) {
	planned, found, moved := m.plannedFrom(now, next.NotBefore)
	why := whyPlanned
	switch {
	case m.OneShot():
		why = "finished: one-shot"
	case !found:
		why = "finished: no planned refresh left"
	case m.Schedule == nil:
		why = "schedule unreadable: checked again then"
	case m.RuleError != "":
		why = "rule takes too many steps: checked again then"
	case moved:
		why = whyPlanned + whyMoved
	}
	next.wait(planned, TriggerPlanned, why)
}

const (
	whyPlanned = "planned"
	whyMoved   = ", delayed by the worker"
)

// plannedFrom is the next planned refresh strictly after now, moved to the floor if it would come before it.
func (m *Model) plannedFrom(now, floor time.Time) (at time.Time, found, moved bool) {
	planned, found := m.planned(now)
	if found && planned.Before(floor) {
		return floor, true, true
	}
	return planned, found, false
}

// Fail ends the running attempt as the failure rule decides.
func (m *Model) Fail(failure policy.Failure, now time.Time) Decision {
	return m.fail(EventFailure, failure, now)
}

// Expire ends an attempt after its deadline, or whose worker is silent: a failure. An attempt that no worker began in time is deferred.
func (m *Model) Expire(now time.Time) Decision {
	if m.awaitsBegin(&m.State) {
		return m.deferAttempt(EventQueueTimeout, 0, "not begun in time: again", now)
	}
	failure := policy.TimedOut()
	if m.ExpiresAt().Before(m.DeadlineAt) {
		failure = policy.Silent(m.SilentAfter)
	}
	return m.fail(EventTimeout, failure, now)
}

func (m *Model) fail(event Event, failure policy.Failure, now time.Time) Decision {
	if m.Outdated {
		return m.outdated(failure, nil, now)
	}
	decision := Decision{Event: event, Next: m.State}
	next := &decision.Next
	next.Deferrals, next.Deaths = 0, 0
	if next.Again {
		// Somebody wants a fresh one: this one's result must not count against it.
		next.AttemptNo = 0
		next.dueNow(now, whyAgain)
		decision.end(m, now, failure, nil)
		return decision
	}
	if next.FailingSince.IsZero() {
		next.FailingSince = now
	}
	decision.Fingerprint = fingerprint.Of(m.UID, failure.ErrorType, failure.Reason)
	next.FingerprintID = decision.Fingerprint.ID()
	v := m.afterFailure(next, failure, now)
	next.AttemptNo, next.NotBefore = v.attemptNo, v.notBefore
	m.notTried(next, v.waits)
	next.wait(v.at, v.trigger, v.why.behind(""))
	decision.Exhausted, decision.Held, decision.PolicyError = v.exhausted, v.why.held > 0, v.policyError
	decision.why = v.why
	if v.final {
		m.disable(&decision, failure, now)
	}
	decision.NotifiesFailing = !v.final && m.Policy.FailingFrom > 0 && m.AttemptNo == m.Policy.FailingFrom
	decision.end(m, now, failure, nil)
	return decision
}

// outdated ends an attempt whose payload was replaced meanwhile. It is recorded and does not count.
func (m *Model) outdated(failure policy.Failure, changed *bool, now time.Time) Decision {
	decision := Decision{Event: EventOutdated, Next: m.State}
	next := &decision.Next
	next.AttemptNo, next.Deferrals, next.Deaths = 0, 0, 0
	m.continueAttempt(next, now)
	decision.end(m, now, failure, changed)
	return decision
}

func (m *Model) disable(decision *Decision, failure policy.Failure, now time.Time) {
	next := &decision.Next
	next.Disabled, next.DisabledAt, next.DisabledBy = true, now, StoppedByPolicy
	next.NotBefore = time.Time{}
	next.FinalFailureAt, decision.Final = now, true
	decision.addNotice(policy.NoticeDisabled, &m.Policy)
	// The worker's own words precede the policy's.
	workers := document.Shorten(failure.UserFriendlyReason, document.MaxText)
	if next.DisabledReason = cmp.Or(workers, m.Policy.DisabledReason); next.DisabledReason != "" {
		return
	}
	text := "Cannot refresh"
	if next.AttemptNo > 0 { // 0: given up between two cycles
		text += " after " + words.Count(next.AttemptNo, "attempt", "attempts")
	}
	if reason := document.Shorten(failure.Reason, document.MaxText); reason != "" {
		text += ": " + reason
	}
	next.DisabledReason = document.Shorten(text, document.MaxText)
}

// maxDeferrals is how many deferred attempts in a row are free; the next one is a failure.
const maxDeferrals = 10

// Postpone ends an attempt that the worker asks to try again after a delay.
func (m *Model) Postpone(delay time.Duration, now time.Time) Decision {
	return m.deferAttempt(EventPostponed, delay, "postponed by the worker: again"+afterText(delay), now)
}

func (m *Model) deferAttempt(event Event, delay time.Duration, why string, now time.Time) Decision {
	if m.Outdated {
		return m.outdated(policy.Failure{}, nil, now)
	}
	if m.Deferrals >= maxDeferrals && event != EventWorkerDied {
		return m.fail(EventFailure, deferredTooOften(event, m.Deferrals+1, delay), now)
	}
	decision := Decision{Event: event, Next: m.State}
	next := &decision.Next
	next.AttemptNo = max(0, next.AttemptNo-1)
	if event != EventWorkerDied {
		next.Deferrals++
	}
	trigger := TriggerDeferred
	if event == EventInterrupted && m.Trigger.ByHand() {
		trigger = m.Trigger
	}
	next.wait(now.Add(delay), trigger, why)
	if event == EventPostponed {
		next.NotBefore = next.RefreshAt
	}
	if event == EventQueueTimeout { // nobody has begun it: it may have missed its refresh
		next.Trigger, next.PlannedFor = m.Trigger, m.PlannedFor
	}
	m.boundWait(next, now)
	if next.Again {
		next.dueNow(now, whyAgain)
	}
	decision.end(m, now, policy.Failure{}, nil)
	if next.Deferrals > 1 && event != EventWorkerDied {
		decision.Ended.Times = next.Deferrals
	}
	return decision
}

func deferredTooOften(event Event, times int, delay time.Duration) policy.Failure {
	return policy.Failure{Reason: fmt.Sprintf("%s %d times in a row; %d are allowed", event, times, maxDeferrals), RetryAfter: delay, Ours: true}
}

// Withdraw ends an attempt that was still in the input list at its deadline: no failure, not counted, and due again.
func (m *Model) Withdraw(now time.Time) Decision {
	decision := Decision{Event: EventWithdrawn, Next: m.State}
	next := &decision.Next
	next.AttemptNo = max(0, next.AttemptNo-1)
	next.RefreshAt, next.Why = now, WhyWithdrawn // Trigger and PlannedFor stay as they were for the start that did not come about
	m.notTried(next, now.Sub(m.StartedAt))       // while it was queued
	if next.Again {
		next.dueNow(now, whyAgain)
	}
	next.endAttempt()
	return decision
}

// failingSince is from when the time without a success counts: the last success, the first start, or the last update. Zero: never started.
func (s *State) failingSince() time.Time {
	return cmp.Or(s.TryingSince, s.LastSuccessAt)
}

func (m *Model) giveUpAt(s *State) time.Time {
	since := s.failingSince()
	if m.Policy.GiveUpAfter == 0 || since.IsZero() {
		return time.Time{}
	}
	return since.Add(m.Policy.GiveUpAfter)
}

// GivesUpAt is when a failing model is disabled if it does not succeed before; zero: never, or it is not failing.
func (m *Model) GivesUpAt() time.Time {
	if m.FailingSince.IsZero() {
		return time.Time{}
	}
	return m.giveUpAt(&m.State)
}

func (m *Model) windowEnded(s *State, now time.Time) bool {
	end := m.giveUpAt(s)
	return !end.IsZero() && !now.Before(end)
}

// notTried extends the give-up window by a time in which nobody could try.
func (m *Model) notTried(next *State, length time.Duration) {
	if since := next.failingSince(); m.Policy.GiveUpAfter > 0 && !since.IsZero() && length > 0 {
		next.TryingSince = since.Add(length)
	}
}

// boundWait lets a failing model wait no longer than its give-up window, where no failure began the wait.
func (m *Model) boundWait(next *State, now time.Time) {
	end := m.giveUpAt(next)
	if end.IsZero() || next.FailingSince.IsZero() || !next.RefreshAt.After(now) || next.RefreshAt.Before(end) {
		return
	}
	next.wait(end, TriggerGiveUp, givesUpText(m.Policy.GiveUpAfter))
}
