package model

import (
	"cmp"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Two events that no model takes part in.
const (
	// EventOrphan ends a uid that stood in the due or running set without a model.
	EventOrphan Event = "orphan"
	// EventMend writes the due and running sets anew from a model: neither journaled nor counted.
	EventMend Event = "mend"
)

// Mend decides that the due and running sets are to be written anew from the state as it is.
func (m *Model) Mend() Decision { return Decision{Event: EventMend, Next: m.State} }

// JournalEntry is one transition as the journal keeps it. A zero value is a field that the transition does not have, or of the model a
// field that it leaves as it was.
type JournalEntry struct {
	UID            string
	Event          Event
	At             time.Time
	AttemptUID     string // of the attempt that was started, ended or withdrawn
	AttemptNo      int
	EndedNo        int    // AttemptNo of an attempt that has ended
	EndedUID       string // AttemptUID of one that was superseded: no field of the model tells it
	RefreshAt      time.Time
	DeadlineAt     time.Time
	Why            string
	Reason         string // of a failure
	ErrorType      string
	Changed        *bool // what the worker said of its success; nil: nothing
	PolicyError    string
	Held           bool // the circuit of the queue held a final failure back
	Final          bool // the failure disabled the model
	DisabledReason string
	By             string // who wanted it, as a command says
	// Freshness is what the model has become, FreshnessWas what it was before. Both empty: that is as it was.
	Freshness, FreshnessWas Freshness
}

// ChangesFreshness reports whether another freshness is told than before, or none.
func (e *JournalEntry) ChangesFreshness() bool { return e.Freshness != e.FreshnessWas }

// Journal returns the journal entry of a decision about a model at now; false: it is no transition.
func (d *Decision) Journal(uid string, now time.Time) (JournalEntry, bool) {
	if d.Event == EventStatus || d.Event == EventMend {
		return JournalEntry{}, false
	}
	e := JournalEntry{
		UID: uid, Event: d.Event, At: now, AttemptUID: d.Next.AttemptUID, AttemptNo: d.Next.AttemptNo,
		RefreshAt: d.Next.RefreshAt, DeadlineAt: d.Next.DeadlineAt, Why: d.Next.Why,
		PolicyError: d.PolicyError, Held: d.Held, Final: d.Final, By: d.By,
	}
	if d.WasFreshness != d.Next.Freshness {
		e.Freshness, e.FreshnessWas = d.Next.Freshness, d.WasFreshness
	}
	if d.Event == EventWithdrawn { // the attempt ended without a record of it
		e.AttemptUID, e.EndedNo = d.Next.LastAttemptUID, d.Next.AttemptNo+1
	}
	if d.Ended != nil {
		e.AttemptUID, e.EndedNo = d.Ended.AttemptUID, d.Ended.AttemptNo
		e.Reason, e.ErrorType, e.Changed = d.Ended.Reason, d.Ended.ErrorType, d.Ended.Changed
		if d.Next.LastAttemptUID != d.Ended.AttemptUID {
			e.EndedUID = d.Ended.AttemptUID
		}
	}
	if d.Final {
		e.DisabledReason = d.Next.DisabledReason
	}
	e.AttemptNo = cmp.Or(e.EndedNo, e.AttemptNo)
	return e, true
}

// Notification is what the owner of a model is told, as the outbox keeps it until it is delivered.
type Notification struct {
	UID       string
	Notice    policy.Notice
	At        time.Time
	AttemptNo int
	Reason    string // of a disabled model, or of the last failure of a failing one
	ErrorType string // of a failing one
	Why       string // of both
	// LastSuccessAt is that of a stale model; zero: it never succeeded.
	LastSuccessAt time.Time
}

// Notifications returns what the owner of a model is told of a decision at now, mostly nothing.
func (d *Decision) Notifications(uid string, now time.Time) (all []Notification) {
	if d.Notice != policy.NoticeNone && !d.Muted {
		all = append(all, d.notification(d.Notice, uid, now))
	}
	if d.TellsFresh {
		all = append(all, d.notification(policy.NoticeFresh, uid, now))
	}
	if d.TellsFailing {
		all = append(all, d.notification(policy.NoticeFailing, uid, now))
	}
	return all
}

func (d *Decision) notification(notice policy.Notice, uid string, now time.Time) Notification {
	n := Notification{UID: uid, Notice: notice, At: now, AttemptNo: d.Next.AttemptNo}
	if d.Ended != nil {
		n.AttemptNo = d.Ended.AttemptNo
	}
	switch notice {
	case policy.NoticeDisabled:
		n.Reason, n.Why = d.Next.DisabledReason, d.Next.Why
	case policy.NoticeFailing:
		n.Reason, n.ErrorType, n.Why = d.Ended.Reason, d.Ended.ErrorType, d.Next.Why
	case policy.NoticeStale:
		n.LastSuccessAt = d.Next.LastSuccessAt
	}
	return n
}

// wakeWithin is how soon something must happen for a sleeping dispatcher to be woken: it looks by itself once a second.
const wakeWithin = time.Second

// NotifiesDispatcher reports whether a decision at now brings a start or a deadline that a sleeping dispatcher would meet too late.
func (d *Decision) NotifiesDispatcher(now time.Time) bool {
	next := d.Next.DeadlineAt
	if d.Next.Waiting() && !d.Next.Parked() {
		next = d.Next.RefreshAt
	}
	return !next.IsZero() && next.Before(now.Add(wakeWithin)) && d.Event != EventStart
}

// DueAt is the score in the due set: when the next attempt starts; zero: the model does not stand there.
func (s *State) DueAt() time.Time {
	if !s.Waiting() || s.Urgent() || s.Parked() {
		return time.Time{}
	}
	return s.RefreshAt
}

// ParkedAt is the score among the parked, likewise.
func (s *State) ParkedAt() time.Time {
	if !s.Parked() {
		return time.Time{}
	}
	return s.RefreshAt
}

// RunAhead is by how much the score of a run is below its refresh_at: negative until the year 2070, and so before whatever else is urgent.
const RunAhead = 100 * 365 * 24 * time.Hour

// UrgentAt is the score in the urgent set, likewise. Who was run stands before the others.
func (s *State) UrgentAt() time.Time {
	switch {
	case !s.Urgent():
		return time.Time{}
	case s.Trigger == TriggerRun:
		return s.RefreshAt.Add(-RunAhead)
	default:
		return s.RefreshAt
	}
}

// The counters that are not named after an event or an outcome.
const (
	CounterRetry        = "retry"             // starts that were not the first run of their cycle
	CounterUnchanged    = "success_unchanged" // successes that found nothing new
	CounterExhausted    = "exhausted"         // failures after the last retry
	CounterFinalFailure = "final_failure"     // models disabled by a failure
	CounterRecovered    = "recovered"         // successes after a final failure
	CounterLate         = "late"              // results after the deadline, before anybody had noticed
	CounterPolicyError  = "policy_error"      // decisions whose policy or rule could not say when
	CounterHeld         = "held"              // final failures that the circuit of the queue held back
	CounterFreshAgain   = "fresh_again"       // models that were late or stale and are no longer
	CounterIgnored      = "ignored_fields"    // fields of workers' messages that could not be used

	CounterRetries       = "total_retries"      // retries that have ended
	CounterRetriesHelped = "successful_retries" // those of them that succeeded
	CounterRetriedCycles = "retried_cycles"     // cycles that needed a retry
)

// Counters names what a decision at now adds one to.
func (d *Decision) Counters(circuit QueueCircuit, now time.Time) []string {
	if d.Event == EventMend {
		return nil
	}
	names := []string{string(d.Event)}
	add := func(name string, counts bool) {
		if counts {
			names = append(names, name)
		}
	}
	no := d.CountedAttempt()
	success := d.Event == EventSuccess
	add(CounterRetry, d.Event == EventStart && d.Next.AttemptNo > 1)
	add(CounterUnchanged, success && d.Ended != nil && d.Ended.Changed != nil && !*d.Ended.Changed)
	add(CounterExhausted, d.Exhausted)
	add(CounterFinalFailure, d.Final)
	add(CounterRecovered, d.Notice == policy.NoticeRecovered)
	add(CounterLate, d.Late)
	add(CounterPolicyError, d.PolicyError != "")
	add(CounterRetries, no > 1)
	add(CounterRetriesHelped, no > 1 && success)
	add(CounterRetriedCycles, no == 2)
	add(CounterHeld, d.Held)
	add(CounterFreshAgain, d.Next.Freshness.Kept() && (d.WasFreshness == FreshnessLate || d.WasFreshness == FreshnessStale))
	for range d.Ignored {
		add(CounterIgnored, true)
	}
	add(circuit.Counter(success, now), no > 0 && circuit.On)
	return names
}

// Attempts that have ended are counted for the circuit of the queue in tenths of its window: QueueCircuitSucceeded and QueueCircuitFailed, each
// followed by when the tenth began, in Unix ms. So a counter grows old by itself, also when the window was another one then. QueueCircuitPrefix
// begins both, and no counter that is meant for people.
const (
	QueueCircuitPrefix    = "@"
	QueueCircuitSucceeded = "@ok."
	QueueCircuitFailed    = "@failed."
)

// Counter names the counter of an attempt that ended at now. The circuit has a window.
func (c QueueCircuit) Counter(success bool, now time.Time) string {
	if c.Window <= 0 {
		return ""
	}
	prefix := QueueCircuitFailed
	if success {
		prefix = QueueCircuitSucceeded
	}
	return prefix + strconv.FormatInt(now.Truncate(c.Window/10).UnixMilli(), 10)
}
