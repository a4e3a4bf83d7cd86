package model

import (
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Counters of a queue that no single decision names.
const (
	CounterCircuitOpened = "circuit_opened" // circuits that have opened
	CounterCircuitClosed = "circuit_closed" // circuits that have closed
	CounterBrokenModel   = "broken_model"   // messages about a model whose key holds something else
)

// Events are all transitions that are counted.
var Events = []Event{
	EventStart, EventTimeout, EventWithdrawn, EventTaken, EventQueueTimeout, EventSkipped, EventGiveUp, EventParked, EventLimited, EventReleased,
	EventReplan, EventLevel, EventBecameLate, EventBecameStale, EventWatch, EventSuccess, EventFailure, EventPostponed, EventInterrupted,
	EventOutdated, EventStarted, EventStatus, EventCreate, EventUpdate, EventRun, EventEnable, EventDisable, EventRemove, EventCancel,
	EventImport, EventOrphan,
}

// Refusals are the counters of messages that change no model.
var Refusals = []string{
	string(Stale), string(Duplicate), string(UnknownModel), string(Unchanged), string(Busy), string(Stopped), CounterMalformed, CounterNoUID,
	CounterUnknownType, CounterOversized, CounterForwarded, CounterBrokenModel,
}

// Particulars are the counters of what was particular about a transition.
var Particulars = []string{
	CounterRetry, CounterUnchanged, CounterExhausted, CounterFinalFailure, CounterRecovered, CounterLate, CounterPolicyError, CounterHeld,
	CounterFreshAgain, CounterIgnored, CounterRetries, CounterRetriesHelped, CounterRetriedCycles, CounterCircuitOpened, CounterCircuitClosed,
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
