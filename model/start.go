package model

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// StartOrSkip decides for a due model at now: it starts an attempt, gives up, skips a missed planned refresh, or lets a retry wait for its window
// again.
func (m *Model) StartOrSkip(now time.Time, attemptUID string) Decision {
	if decision, skips := m.skip(now); skips {
		return decision
	}
	return m.Start(now, attemptUID)
}

// skip decides about a due model at now that starts no attempt; false: it starts one.
func (m *Model) skip(now time.Time) (decision Decision, skips bool) {
	if m.endsWindow() && !m.QueueCircuit.Open { // a start promised before the end of the window is made, however late
		decision := Decision{Event: EventGiveUp, Next: m.State}
		failure := policy.Failure{Reason: noSuccessText(m.Policy.GiveUpAfter)}
		decision.Next.wait(time.Time{}, TriggerPlanned, disabledBecause+failure.Reason)
		m.disable(&decision, failure, now)
		return decision, true
	}
	if m.endsWindow() && m.NotBefore.After(now) { // the circuit of the queue holds giving up back, and the worker has asked to wait
		decision := Decision{Event: EventSkipped, Next: m.State}
		decision.Next.wait(m.NotBefore, TriggerRetry, "queue circuit open: waits as the worker asked")
		return decision, true
	}
	if m.Trigger.started() == TriggerRetry && m.opens(now).After(now) {
		decision := Decision{Event: EventSkipped, Next: m.State}
		m.notTried(&decision.Next, now.Sub(m.RefreshAt))
		decision.PolicyError = m.rejoin(&decision.Next, now, now)
		m.boundWait(&decision.Next, now)
		return decision, true
	}
	// A planned refresh that is too old for the policy is skipped, if there is another one to wait for.
	rule, at := m.Policy.Misfire, m.plannedFor()
	if !rule.Limited || at.IsZero() || now.Sub(at) <= rule.Younger || !m.isPlanned() {
		return decision, false
	}
	next, found := m.planned(now.Add(-rule.Younger - time.Millisecond))
	if !found || !next.After(now) {
		return decision, false
	}
	decision = Decision{Event: EventSkipped, Next: m.State}
	decision.Next.wait(next, TriggerPlanned, WhySkipped+words.Roughly(now.Sub(at).Truncate(time.Second))+": waits for planned")
	m.boundWait(&decision.Next, now)
	return decision, true
}

func (m *Model) isPlanned() bool {
	if m.Trigger != TriggerPlanned {
		return false
	}
	planned, found := m.planned(m.RefreshAt.Add(-time.Millisecond))
	return !m.PlannedFor.IsZero() || found && (planned.Equal(m.RefreshAt) || m.RefreshAt.Equal(m.NotBefore))
}

func (s *State) plannedFor() time.Time { return cmp.Or(s.PlannedFor, s.RefreshAt) }

// Start begins an attempt under a new uid. refresh_at becomes the result of a timeout at the deadline; empty if that would be final.
func (m *Model) Start(now time.Time, attemptUID string) Decision {
	next := m.State
	next.AttemptNo++
	next.AttemptUID, next.Traced, next.Guarded = attemptUID, m.Traces, m.Policy.Withholds()
	next.StartedAt, next.NotBefore = now, time.Time{}
	next.PlannedFor, next.Reserved = time.Time{}, ""
	if next.Trigger = m.Trigger.started(); m.Policy.Misfire.Limited && m.isPlanned() {
		next.PlannedFor = m.plannedFor()
	}
	if next.failingSince().IsZero() || next.TryingSince.After(now) { // a wait that did not count was cut short
		next.TryingSince = now
	}
	next.UserFriendlyStatus, next.Progress = "", 0
	next.SilentAfter, next.HeardAt = 0, time.Time{} // an import may have brought them
	m.offer(&next, now)
	next.EntryDeadlineAt = next.DeadlineAt
	next.EntryPlannedAt, _ = m.planned(now)
	next.EntryDueAt, next.Fence = cmp.Or(m.RefreshAt, now), max(m.Fence+1, now.UnixMilli())
	return Decision{Event: EventStart, Next: next, Message: m.entry(&next)}
}

// offer sets the deadline of an attempt that enters the input list now.
func (m *Model) offer(next *State, now time.Time) {
	next.DeadlineAt = m.deadline(next, now)
	if m.Policy.QueueTimeout > 0 {
		next.DeadlineAt = now.Add(m.Policy.QueueTimeout)
	}
	m.expectTimeout(next)
}

// Begin notes that a worker really begins: the deadline counts from now. false: the attempt had begun before, and nothing changes.
func (m *Model) Begin(now time.Time, worker string) (Decision, bool) {
	decision := Decision{Event: EventStarted, Next: m.State}
	if !m.ProcessingAt.IsZero() {
		return decision, false
	}
	next := &decision.Next
	next.ProcessingAt, next.PlannedFor = now, time.Time{}
	next.Worker = document.Shorten(worker, maxWhy)
	next.DeadlineAt = m.deadline(next, now)
	m.expectTimeout(next)
	return decision, true
}

// deadline without a timeout is the next planned refresh, the end of the give-up window, or ten years from now.
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

// The conditions of the expected end while an attempt runs.
const (
	onTimeout  = "on timeout: "
	ifNotBegun = "if not begun: "
)

func (m *Model) expectTimeout(next *State) {
	failure, condition := policy.TimedOut(), onTimeout
	switch {
	case next.Again:
		next.RefreshAt, next.Why = next.DeadlineAt, whyAgain
		return
	case next.Outdated:
		next.RefreshAt, _ = m.planned(next.DeadlineAt)
		next.Why = onTimeout + "waits for planned, payload was replaced"
		return
	case m.awaitsBegin(next) && next.Deferrals < maxDeferrals:
		next.RefreshAt, next.Why = next.DeadlineAt, ifNotBegun+"again, not counted"
		return
	case m.awaitsBegin(next):
		failure, condition = deferredTooOften(EventQueueTimeout, next.Deferrals+1, 0), ifNotBegun
	}
	lost := m.afterFailure(next, failure, next.DeadlineAt)
	next.RefreshAt = lost.at
	next.Why = lost.why.behind(condition)
}

// awaitsBegin reports whether the queue timeout counts: no worker has said `started`.
func (m *Model) awaitsBegin(s *State) bool {
	return m.Policy.QueueTimeout > 0 && s.ProcessingAt.IsZero()
}
