package model

import (
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// verdict is the result of the failure rule: when the next attempt starts, or that none does.
type verdict struct {
	at          time.Time // of the next attempt; zero: final
	trigger     Trigger
	notBefore   time.Time // the floor that the worker has set; zero: none
	attemptNo   int
	final       bool          // no further attempt
	exhausted   bool          // the failure came after the last retry
	policyError string        // of the expression of the policy
	waits       time.Duration // by how much the retry window delays it: that does not count towards giving up
	why         why
}

// afterFailure is the failure rule. It decides at now about the failure of the attempt in s; a timeout is a failure too.
func (m *Model) afterFailure(s *State, failure policy.Failure, now time.Time) verdict {
	p, k := &m.Policy, s.AttemptNo
	v := verdict{attemptNo: k, why: why{k: k, retries: p.MaxRetries(), window: p.GiveUpAfter}}
	retryable, class := p.Classes.Verdict(failure)
	windowEnd := m.giveUpAt(s)
	delay, retry, policyError := m.policyDelay(s, failure, now)
	// A worker's wish is a floor for any start that comes by itself: a planned refresh before it moves to it.
	var floor time.Time
	if failure.RetryAfter > 0 {
		floor = now.Add(failure.RetryAfter)
	}
	planned, anyPlanned, moved := m.plannedFrom(now, floor)
	v.why.moved = moved
	j := policy.AlignInput{PlannedAt: planned, Now: now, K: k, ErrorType: failure.ErrorType, Reason: failure.Reason}
	// Without a timeout the deadline is the planned refresh, which then takes the place of the attempt.
	replaced := p.Timeout == 0 && failure.Ours && failure.Reason == policy.ReasonTimeout
	takesPlanned := false // the planned refresh comes in place of a retry

	switch {
	case !retryable:
		v.final, v.why.reason, v.why.class = true, notRetryable, class
	case !windowEnd.IsZero() && !now.Before(windowEnd):
		v.final, v.why.reason = true, windowEnded

	// More failures than delays: exhausted
	case !retry && p.OnExhausted != policy.NextPlanned:
		v.final, v.exhausted, v.why.reason = true, true, exhausted
	case !retry && replaced && !m.OneShot():
		v.at, v.attemptNo, v.exhausted, v.why.reason = now, 0, true, exhaustedReplaced
	case !retry && !anyPlanned:
		v.final, v.exhausted, v.why.reason = true, true, exhaustedNonePlanned
	case !retry:
		v.at, v.attemptNo, v.exhausted, v.why.reason = planned, 0, true, exhaustedPlanned

	// The planned refresh is the retry
	case replaced:
		v.at, v.policyError, v.why.reason = now, policyError, retryReplaced
		takesPlanned = !m.OneShot()
	case delay == policy.UntilPlanned && !anyPlanned:
		v.final, v.why.reason = true, retryNeverPlanned
	case delay == policy.UntilPlanned:
		v.at, v.why.reason, v.why.plannedAt = planned, retryWhenPlanned, planned
		takesPlanned = true

	default:
		v.policyError = policyError
		v.why.serverAsked = failure.Asked
		takesPlanned = m.retryAfter(&v, s, j, delay, failure.RetryAfter)
	}

	if takesPlanned && p.Alignment == policy.BetweenPlanned {
		v.attemptNo = 0
	}
	// StartOrSkip at the end of the give-up window, not at the next failure.
	if !v.final && !windowEnd.IsZero() && !v.at.Before(windowEnd.Add(v.waits)) {
		v.at, v.trigger, v.waits, v.why.reason = windowEnd, TriggerGiveUp, 0, windowEnds
		if !v.exhausted {
			v.attemptNo = k
		}
	}
	// The circuit of the queue turns a final failure into one more attempt. The failure is not counted, so that the first one after the circuit has
	// closed is final if it still would be.
	if v.final && m.QueueCircuit.Open {
		v.why.held = max(policy.Vary(heldDelay, heldSpread, s.AttemptUID), failure.RetryAfter)
		v.attemptNo, v.final = max(0, k-1), false
		j.RetryAt = now.Add(v.why.held)
		m.join(&v, j, floor)
		v.why.retryAt, v.why.plannedAt, v.why.overlap = time.Time{}, time.Time{}, "" // the circuit says when, not the retries
	}
	if !v.final { // also while it waits for the end of its window: a save may plan it anew
		v.notBefore = floor
	}
	return v
}

// retryAfter lets a retry follow after a delay, or after its worker's wish. It reports whether the planned refresh takes its place.
func (m *Model) retryAfter(v *verdict, s *State, j policy.AlignInput, delay, wish time.Duration) (takesPlanned bool) {
	p := &m.Policy
	if m.QueueCircuit.Open {
		delay = max(delay, heldDelay)
	}
	// Jittered, to avoid a thundering herd. The cap of a backoff holds for the jittered delay too.
	varied := policy.Vary(delay, p.Jitter, s.AttemptUID)
	if backoff, ok := p.Retries.(policy.Backoff); ok && backoff.Cap > 0 && delay <= backoff.Cap {
		varied = min(varied, backoff.Cap)
	}
	asked := wish > varied
	if asked {
		delay, varied = wish, wish
	}
	v.why.reason, v.why.delay, v.why.jitter, v.why.asked = retryAfterDelay, delay, varied-delay, asked
	j.RetryAt = j.Now.Add(varied)
	m.join(v, j, j.Now.Add(wish))
	return v.why.plannedFirst
}

// safeDelay is the delay of a policy that failed to say one, so that the model is never lost by it.
const safeDelay = 5 * time.Minute

// policyDelay asks the policy how long to wait; false: there is no retry. policyError is the error of its expression.
func (m *Model) policyDelay(s *State, failure policy.Failure, now time.Time) (delay time.Duration, retry bool, policyError string) {
	if m.Policy.Retries == nil {
		return 0, false, ""
	}
	since := time.Duration(0)
	if from := s.failingSince(); !from.IsZero() {
		since = max(0, now.Sub(from))
	}
	delay, retry, err := m.Policy.Retries.Delay(policy.RetryInput{
		K: s.AttemptNo, Reason: document.Shorten(failure.Reason, document.MaxText), ErrorType: document.Shorten(failure.ErrorType, document.MaxText), // as the history keeps them
		QueueDepth: m.QueueDepth, SinceSuccess: since,
	})
	if err != nil {
		return safeDelay, true, document.Shorten(err.Error(), document.MaxText)
	}
	if own, found := m.Policy.Classes.Delay(failure.ErrorType); retry && found {
		delay = own
	}
	return delay, retry, ""
}
