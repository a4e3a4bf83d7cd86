package model

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

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
