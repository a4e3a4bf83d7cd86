package model

import (
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// consequence is what the failure rule decides: when and why the next attempt starts, or that none does.
type consequence struct {
	at          time.Time
	why         string
	attemptNo   int
	exhausted   bool
	final       bool
	held        bool // a final failure that the brake holds back
	policyError string
	reckoning   *reckoning
}

// reckoning is how the time of a retry came about (S0-47), for those who ask why.
type reckoning struct {
	delay, jitter      time.Duration // of the policy, or of the worker when it asked for more; what jitter added or took
	retryAt, plannedAt time.Time     // when the retry alone would start; the planned refresh that it was joined with
	overlap            policy.Overlap
}

// afterFailure applies the failure rule at now to the attempt in s, failure k of its cycle (DESIGN, rules of time, 4; S0-11, S0-18,
// S0-29, S0-44). A timeout comes through here too.
func (m *Model) afterFailure(s *State, failure policy.Failure, now time.Time) consequence {
	rule := m.judge(s, failure, now)
	if rule.final && m.Brake.Engaged {
		return m.hold(s, rule, now)
	}
	return rule
}

// judge is the failure rule without the brake.
func (m *Model) judge(s *State, failure policy.Failure, now time.Time) consequence {
	k := s.AttemptNo
	if retry, why := m.Policy.Classes.Verdict(failure); !retry {
		return consequence{final: true, attemptNo: k, why: "final: " + why}
	}
	if end := m.giveUpAt(s); !end.IsZero() && !now.Before(end) {
		return consequence{final: true, attemptNo: k, why: m.whyGivenUp()}
	}
	next := m.retry(s, failure, now)
	m.bound(s, &next)
	return next
}

// retry decides between a retry, the planned refresh and exhaustion.
func (m *Model) retry(s *State, failure policy.Failure, now time.Time) consequence {
	delay, retry, policyError := m.delay(s, failure, now)
	if !retry {
		return m.exhausted(s.AttemptNo, failure, now)
	}
	var next consequence
	switch {
	case m.replaced(failure):
		next = consequence{at: now, attemptNo: s.AttemptNo, why: m.whyRetry(s.AttemptNo) + " at once: no answer until planned"}
		if m.Policy.Alignment == policy.BetweenPlanned && !m.OneShot() {
			next.attemptNo = 0
		}
	case delay == policy.UntilPlanned:
		next = m.waitForPlanned(s.AttemptNo, now)
	default:
		timing := m.retryTime(s, delay, failure, now)
		if policyError != "" {
			timing.text += ": policy_error"
		}
		next = m.join(s, timing, now)
	}
	next.policyError = policyError
	return next
}

// safeDelay is the delay of a policy that failed to say one: the model is never lost by it (document 001, rule 7).
const safeDelay = 5 * time.Minute

// delay asks the policy how long to wait; false: there is no retry. policyError is what went wrong in it.
func (m *Model) delay(s *State, failure policy.Failure, now time.Time) (delay time.Duration, retry bool, policyError string) {
	if m.Policy.Retries == nil {
		return 0, false, ""
	}
	delay, retry, err := m.Policy.Retries.Delay(policy.Occasion{
		K: s.AttemptNo, Reason: document.Shorten(failure.Reason, document.MaxText), ErrorType: document.Shorten(failure.ErrorType, document.MaxText), // as the history keeps them
		QueueDepth: m.QueueDepth, SinceSuccess: s.withoutSuccess(now),
	})
	if err != nil {
		return safeDelay, true, document.Shorten(err.Error(), document.MaxText)
	}
	if own, found := m.Policy.Classes.Delay(failure.ErrorType); retry && found {
		delay = own
	}
	return delay, retry, ""
}

// timing is when a retry alone would start, and how that came about.
type timing struct {
	at            time.Time
	delay, jitter time.Duration
	text          string // of the delay, for `why`
}

// retryTime adds jitter, the wish of the worker and the retry window to a delay, in this order. The cap of a backoff holds for
// the jittered delay too (decision 2).
func (m *Model) retryTime(s *State, delay time.Duration, failure policy.Failure, now time.Time) timing {
	delay = m.stretch(delay)
	varied := policy.Vary(delay, m.Policy.Jitter, s.AttemptUID)
	if backoff, ok := m.Policy.Retries.(policy.Backoff); ok && backoff.Cap > 0 && delay <= backoff.Cap {
		varied = min(varied, backoff.Cap)
	}
	t := timing{delay: delay, jitter: varied - delay, text: delayText(varied)}
	if t.jitter != 0 {
		t.text = "~" + document.FormatDuration(max(varied.Round(time.Second), time.Second))
	}
	if failure.RetryAfter > varied {
		t = timing{delay: failure.RetryAfter, text: delayText(failure.RetryAfter) + " as asked"}
	}
	wanted := now.Add(t.delay + t.jitter)
	if t.at = m.Window.Open(wanted); !t.at.Equal(wanted) {
		t.text += " in window"
	}
	return t
}

// join joins a retry with the planned refresh, as the alignment says.
func (m *Model) join(s *State, t timing, now time.Time) consequence {
	next := consequence{at: t.at, attemptNo: s.AttemptNo}
	overlap := policy.NonePlanned
	planned, found := m.planned(now)
	if found {
		overlap = policy.OverlapOf(t.at, planned, m.Policy.Timeout)
	}
	next.reckoning = &reckoning{t.delay, t.jitter, t.at, planned, overlap}
	plannedFirst := m.Policy.Alignment.PrefersPlanned(overlap)
	if plannedFirst {
		next.at = planned
		if m.Policy.Alignment == policy.BetweenPlanned {
			next.attemptNo = 0
		}
	}
	next.why = m.whyRetry(s.AttemptNo) + " " + t.text + policy.WhyJoined(overlap, plannedFirst)
	return next
}

// waitForPlanned is the retry whose delay is `next`. With nothing planned there is nothing to wait for (S0-45).
func (m *Model) waitForPlanned(k int, now time.Time) consequence {
	planned, found := m.planned(now)
	if !found {
		return consequence{final: true, attemptNo: k, why: "final: none planned to wait for"}
	}
	next := consequence{at: planned, attemptNo: k, why: m.whyRetry(k) + " when planned", reckoning: &reckoning{plannedAt: planned}}
	if m.Policy.Alignment == policy.BetweenPlanned {
		next.attemptNo = 0
	}
	return next
}

// exhausted decides the failure after the last retry (S0-30, S0-44, S0-45).
func (m *Model) exhausted(k int, failure policy.Failure, now time.Time) consequence {
	after := "exhausted after " + strconv.Itoa(k)
	if m.Policy.OnExhausted != policy.NextPlanned {
		return consequence{final: true, exhausted: true, attemptNo: k, why: "final: " + after}
	}
	planned, found := m.planned(now)
	switch {
	case m.replaced(failure) && !m.OneShot():
		return consequence{at: now, exhausted: true, why: after + ", planned now"}
	case found:
		return consequence{at: planned, exhausted: true, why: after + ", planned"}
	default:
		return consequence{final: true, exhausted: true, attemptNo: k, why: "final: exhausted, none planned"}
	}
}

// replaced reports whether an attempt without deadline had not ended when the next planned refresh came: that one takes its
// place at once (S0-8).
func (m *Model) replaced(failure policy.Failure) bool {
	return m.Policy.Timeout == 0 && failure.Ours && failure.Reason == policy.ReasonTimeout
}

// whyRetry is how the reason of a retry begins: "retry 2/6", or "retry 2" without a last one.
func (m *Model) whyRetry(k int) string {
	if count := m.Policy.MaxRetries(); count != policy.Unlimited {
		return "retry " + strconv.Itoa(k) + "/" + strconv.Itoa(count)
	}
	return "retry " + strconv.Itoa(k)
}

func delayText(delay time.Duration) string {
	if delay == 0 {
		return "at once"
	}
	return "+" + document.FormatDuration(delay)
}
