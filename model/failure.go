package model

import (
	"fmt"
	"time"
)

// Failure is what is known of a failed attempt.
type Failure struct {
	Reason             string
	ErrorType          string
	UserFriendlyReason string
	Retryable          *bool         // the result's own word; nil: the policy decides (decision 5)
	RetryAfter         time.Duration // at least this long after now; 0: no wish
}

// ReasonTimeout is the reason of an attempt whose deadline passed.
const ReasonTimeout = "timeout"

// consequence is what the failure rule decides: when and why the next attempt starts, or that none does.
type consequence struct {
	at        time.Time
	why       string
	attemptNo int
	exhausted bool
	final     bool
}

// afterFailure applies the failure rule to failure k at now (S0-11, S0-18, S0-29, S0-44). A timeout comes through here too.
func (m *Model) afterFailure(k int, failure Failure, now time.Time) consequence {
	if failure.Retryable != nil && !*failure.Retryable {
		return consequence{final: true, attemptNo: k, why: "final: not retryable"}
	}
	delay, retry := m.Policy.Retries.Delay(k)
	if !retry {
		return m.exhausted(k, now)
	}
	why := fmt.Sprintf("retry %d/%d %s", k, len(m.Policy.Retries), delayText(delay))
	if failure.RetryAfter > delay {
		delay = failure.RetryAfter
		why = fmt.Sprintf("retry %d/%d %s asked by worker", k, len(m.Policy.Retries), delayText(delay))
	}
	return m.align(k, now, delay, why)
}

// exhausted decides the failure after the last retry (S0-30, S0-44, S0-45).
func (m *Model) exhausted(k int, now time.Time) consequence {
	if m.Policy.OnExhausted == NextPlanned {
		if planned, found := m.planned(now); found {
			return consequence{at: planned, exhausted: true, why: fmt.Sprintf("exhausted after %d, planned", k)}
		}
		return consequence{final: true, exhausted: true, attemptNo: k, why: "final: exhausted, none planned"}
	}
	return consequence{final: true, exhausted: true, attemptNo: k, why: fmt.Sprintf("final: exhausted after %d", k)}
}

// align joins a retry of [now+delay, now+delay+timeout) with the planned refresh: it runs only if it ends before planned
// begins; ending exactly then is fine (S0-29, decision 4). Without a planned refresh it runs after its delay (S0-28).
func (m *Model) align(k int, now time.Time, delay time.Duration, why string) consequence {
	retryAt := now.Add(delay)
	planned, found := m.planned(now)
	switch {
	case !found:
		return consequence{at: retryAt, attemptNo: k, why: why}
	case retryAt.After(planned):
		return consequence{at: planned, attemptNo: k, why: why + ", planned first: starts after"}
	case retryAt.Add(m.Policy.Timeout).After(planned):
		return consequence{at: planned, attemptNo: k, why: why + ", planned first: overlaps"}
	default:
		return consequence{at: retryAt, attemptNo: k, why: why}
	}
}

func delayText(delay time.Duration) string {
	if delay == 0 {
		return "at once"
	}
	return "+" + FormatDuration(delay)
}
