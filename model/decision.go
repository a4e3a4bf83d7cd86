package model

import (
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// Event names a transition: in the journal, in the counters and in the history.
type Event string

// The transitions, in groups: what time triggers, a changed policy or the levelling of a fleet, a message of a worker, an application or a person.
const (
	EventStart     Event = "start"     // an attempt was handed out
	EventTimeout   Event = "timeout"   // a deadline passed: a failure
	EventWithdrawn Event = "withdrawn" // a deadline passed before any worker took the attempt: not counted

	EventTaken        Event = "taken"         // a deadline passed in line: the attempt gets its full timeout
	EventQueueTimeout Event = "queue_timeout" // taken, but not begun in time: not counted
	EventWorkerDied   Event = "worker_died"   // a worker has died over the attempt: handed out again, or deferred as it has killed several; not counted
	EventSkipped      Event = "skipped"       // a planned refresh was missed and is not made up for, or a retry waits for its window again
	EventGiveUp       Event = "give_up"       // the give-up window ended while the model waited
	EventParked       Event = "parked"        // due, but a blocker stops it
	EventLimited      Event = "limited"       // due, but its key starts as often as it may: it waits for a slot
	EventReleased     Event = "released"      // its blocker has opened
	EventReplan       Event = "replan"        // the rule of its policy, or the zone data, was changed: planned anew
	EventLevel        Event = "level"         // its phase was changed

	EventBecameLate  Event = "became_late"  // for longer than warn_within without a success
	EventBecameStale Event = "became_stale" // for longer than fresh_within without a success
	EventWatch       Event = "watch"        // its policy promises another freshness

	EventSuccess     Event = "success"
	EventFailure     Event = "failure"
	EventPostponed   Event = "postponed"   // the worker asks to try later: not counted
	EventInterrupted Event = "interrupted" // the worker had to stop: not counted
	EventSuspect     Event = "suspect"     // a success that is doubted holds its model: not counted
	EventOutdated    Event = "outdated"    // what an attempt reported whose payload was replaced meanwhile: not counted
	EventLate        Event = "late_answer" // a success of an attempt that has timed out: it changes nothing
	EventStarted     Event = "started"     // the work really begins
	EventStatus      Event = "status"      // a status text for the owner; no transition

	EventCreate  Event = "create"
	EventUpdate  Event = "update"
	EventRun     Event = "run"
	EventEnable  Event = "enable"
	EventDisable Event = "disable"
	EventRemove  Event = "remove"
	EventAccept  Event = "accept" // the doubt about a success that counts already is over
	EventCancel  Event = "cancel" // its attempt was taken back: not counted
	EventImport  Event = "import" // it has come from another queue, with its state
)

// Decision is the result of a transition: the next state, and its records.
type Decision struct {
	Event Event
	Next  State
	Ended *Attempt // the attempt that this transition ended; nil: none
	// Exhausted: the failure came after the last retry. Final: the model was disabled by it.
	Exhausted, Final bool
	// Held: the failure would have been final, but the circuit of the queue holds it back.
	Held bool
	// Fingerprint identifies the failure that the model has from now on; empty: no failure.
	Fingerprint fingerprint.Text
	// PolicyError is the error of the policy's own expression, or of a rule; empty: none.
	PolicyError string
	why         why // of a failure
	// Ignored are the fields of the worker's message that could not be used.
	Ignored []string
	// Late: the result came after the deadline, but before anybody had noticed.
	Late   bool
	Notice policy.Notice
	// Muted: the policy sends no such notice.
	Muted bool
	// PriorFreshness is the freshness before. NotifiesFresh: the owner had a notice of a stale model, and gets one that it is fresh again.
	PriorFreshness Freshness
	NotifiesFresh  bool
	// NotifiesFailing: the owner gets a notice that the model fails.
	NotifiesFailing bool
	// NotifiesSuspect: somebody gets a notice of the doubted success.
	NotifiesSuspect bool
	// Verdict is for the worker that has said `ready`, and Doubt why its numbers are doubted; empty: they are not.
	Verdict Verdict
	Doubt   string
	// Replaces: Ended takes the place of the newest entry of the history, which is about the same attempt.
	Replaces bool
	// Message goes to a worker: one JSON object. A start pushes it; an update replaces the queued one.
	Message string
	// MustBeQueued: the decision holds only if no worker has taken the running attempt. If one has, decide again with Model.Taken.
	MustBeQueued bool
	// Definition replaces the stored one (create, update and import only); nil: unchanged.
	Definition *Model
	// PolicyText is the canonical JSON of the policy that the definition brings along; empty: none.
	PolicyText string
	// Acquires are the slots that a start takes of its limits, or that a waiting model reserves.
	Acquires []Acquire
	// Probe says that the start tries an open circuit.
	Probe bool
	// CircuitOutcome is the effect of the attempt's end on the circuit of its key.
	CircuitOutcome CircuitOutcome
	// ClosedUntil is until when the keys of the attempt that has ended are closed, as its worker asks; zero: they are not.
	ClosedUntil time.Time
	// Recheck is when a dispatcher checks the blocker of the model again.
	Recheck time.Time
	// Past are all entries of the history, newest first, in place of those that there are (import only); nil: they stay.
	Past []string
	// Traceparent is the part of the trace of the attempt that a result names; empty: none.
	Traceparent string
	// Log is the kept part of the log of the ended attempt; empty: none.
	Log string
	// By is who wanted it, as a command says; empty: nobody says.
	By string
}

// maxWhy keeps refresh_why inside the compact encoding of a Redis hash (64 bytes a value).
const maxWhy = 60

func (d *Decision) end(m *Model, now time.Time, failure policy.Failure, changed *bool) {
	before := &m.State
	d.Next.endAttempt()
	d.Next.Why = document.Shorten(d.Next.Why, maxWhy)
	tried := failure.ErrorType != "" || !failure.Ours // else it was deferred too often
	if m.Policy.Circuit != nil && tried && (d.Event == EventSuccess || d.Event == EventSuspect || d.Event == EventFailure || d.Event == EventTimeout) {
		d.CircuitOutcome = CircuitAnswered
		if d.Event != EventSuccess && d.Event != EventSuspect && m.Policy.Circuit.Counts(failure.ErrorType) {
			d.CircuitOutcome = CircuitFailed
		}
	}
	if closed := m.Policy.ClosesKeysFor(failure); closed > 0 {
		d.ClosedUntil = now.Add(closed)
	}
	d.Ended = &Attempt{
		AttemptUID:   before.AttemptUID,
		AttemptNo:    before.AttemptNo,
		StartedAt:    before.StartedAt,
		EndedAt:      now,
		ProcessingAt: before.ProcessingAt,
		Duration:     max(0, now.Sub(before.StartedAt)), // the clock may have been set back
		Outcome:      d.Event,
		Final:        d.Final,
		Changed:      changed,
		Exhausted:    d.Exhausted,
		DeadlineAt:   before.DeadlineAt,
		Reason:       document.Shorten(failure.Reason, document.MaxText),
		ErrorType:    document.Shorten(failure.ErrorType, document.MaxText),
		Worker:       before.Worker,
		RefreshAt:    d.Next.RefreshAt,
		Why:          d.Next.Why,

		Delay:     d.why.delay,
		Jitter:    d.why.jitter,
		RetryAt:   d.why.retryAt,
		PlannedAt: d.why.plannedAt,
		Overlap:   d.why.overlap,
	}
	if no := d.countedAttempt(); no > 1 {
		d.Next.TotalRetries++
		if d.Event == EventSuccess {
			d.Next.SuccessfulRetries++
		}
		if no == 2 {
			d.Next.RetriedCycles++
		}
	}
}

// TakesBack reports whether the entry of the running attempt must leave the input list, or change in its place.
func (d *Decision) TakesBack() bool {
	switch d.Event {
	case EventTimeout, EventWithdrawn, EventOutdated, EventRun, EventCancel, EventDisable, EventRemove, EventImport:
		return true
	case EventUpdate:
		return d.Message != ""
	default:
		return false
	}
}

// countedAttempt is the number in its cycle of an attempt that this decision ended in success or failure; 0: none, or one that does not count.
func (d *Decision) countedAttempt() int {
	if d.Ended != nil && (d.Event == EventSuccess || d.Event == EventFailure || d.Event == EventTimeout) {
		return d.Ended.AttemptNo
	}
	return 0
}

func (d *Decision) addNotice(notice policy.Notice, policy *policy.Policy) {
	d.Notice, d.Muted = notice, !policy.Notifies(notice)
}

// TimeLayout is the form of times in Redis, messages and output: RFC 3339 in UTC with milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// FormatTime renders an instant; a zero time is the empty text.
func FormatTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	at = at.UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 {
		return at.Format(TimeLayout)
	}
	// The same by pairs of digits, in a third of the time: a transition renders ten of them.
	hour, minute, second := at.Clock()
	ms, text := at.Nanosecond()/1_000_000, []byte(TimeLayout)
	pairs := [...]int{year / 100, year % 100, int(month), day, hour, minute, second, ms % 100}
	for i, place := range [...]int{0, 2, 5, 8, 11, 14, 17, 21} {
		text[place], text[place+1] = byte('0'+pairs[i]/10), byte('0'+pairs[i]%10)
	}
	text[20] = byte('0' + ms/100)
	return string(text)
}

// Counters of a queue that no single decision names.
const (
	counterCircuitOpened = "circuit_opened" // circuits that have opened
	counterCircuitClosed = "circuit_closed" // circuits that have closed
	CounterBrokenModel   = "broken_model"   // messages about a model whose key holds something else
)

// Events are all transitions that are counted.
var Events = []Event{
	EventStart, EventTimeout, EventWithdrawn, EventTaken, EventQueueTimeout, EventWorkerDied, EventSkipped, EventGiveUp, EventParked, EventLimited, EventReleased,
	EventReplan, EventLevel, EventBecameLate, EventBecameStale, EventWatch, EventSuccess, EventFailure, EventPostponed, EventInterrupted,
	EventSuspect, EventOutdated, EventLate, EventStarted, EventStatus, EventCreate, EventUpdate, EventRun, EventEnable, EventDisable, EventRemove, EventAccept, EventCancel,
	EventImport, EventOrphan,
}

// Refusals are the counters of messages that change no model.
var Refusals = []string{
	string(Stale), string(Duplicate), string(UnknownModel), string(Unchanged), string(Busy), string(Stopped), CounterMalformed, counterNoUID,
	counterUnknownType, CounterOversized, CounterForwarded, CounterBrokenModel,
}

// Particulars are the counters of a transition's particular traits.
var Particulars = []string{
	counterRetry, counterUnchanged, counterExhausted, counterFinalFailure, counterRecovered, counterLate, counterPolicyError, counterHeld,
	CounterFreshAgain, counterIgnored, counterWithin3s, counterWithin1m, counterLonger, CounterRetries, CounterRetriesHelped, CounterRetriedCycles, counterCircuitOpened, counterCircuitClosed,
}

// The counters that are not named after an event or an outcome.
const (
	counterRetry        = "retry"             // starts that were not the first run of their cycle
	counterUnchanged    = "success_unchanged" // successes that found nothing new
	counterExhausted    = "exhausted"         // failures after the last retry
	counterFinalFailure = "final_failure"     // models disabled by a failure
	counterRecovered    = "recovered"         // successes after a final failure
	counterLate         = "late"              // results after the deadline, before anybody had noticed; and successes after that
	counterPolicyError  = "policy_error"      // decisions whose policy or rule could not say when
	counterHeld         = "held"              // final failures that the circuit of the queue held back
	CounterFreshAgain   = "fresh_again"       // models that were late or stale and are no longer
	counterIgnored      = "ignored_fields"    // fields of workers' messages that could not be used

	CounterRetries       = "total_retries"      // retries that have ended
	CounterRetriesHelped = "successful_retries" // retries that succeeded
	CounterRetriedCycles = "retried_cycles"     // cycles that needed a retry
)

// Counters names the counters that a decision at now adds one to.
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
	no := d.countedAttempt()
	success := d.Event == EventSuccess
	add(counterRetry, d.Event == EventStart && d.Next.AttemptNo > 1)
	add(counterUnchanged, success && d.Ended != nil && d.Ended.Changed != nil && !*d.Ended.Changed)
	add(counterExhausted, d.Exhausted)
	add(counterFinalFailure, d.Final)
	add(counterRecovered, d.Notice == policy.NoticeRecovered)
	add(counterLate, d.Late || d.Event == EventLate)
	add(d.lateWithin(), d.Event == EventLate)
	add(counterPolicyError, d.PolicyError != "")
	add(CounterRetries, no > 1)
	add(CounterRetriesHelped, no > 1 && success)
	add(CounterRetriedCycles, no == 2)
	add(counterHeld, d.Held)
	add(CounterFreshAgain, d.Next.Freshness.kept() && (d.PriorFreshness == FreshnessLate || d.PriorFreshness == FreshnessStale))
	for range d.Ignored {
		add(counterIgnored, true)
	}
	if no > 0 && circuit.On {
		names = append(names, circuit.Counter(success, now))
	}
	return names
}

// lateWithin are the counters of successes that came too late, by how late they came at most.
var lateWithin = []struct {
	counter, words string
	most           time.Duration
}{{counterWithin3s, "up to 3 s", 3 * time.Second}, {counterWithin1m, "up to a minute", time.Minute}, {counterLonger, "more than a minute", document.MaxDuration}}

const (
	counterWithin3s = "late_within_3s"
	counterWithin1m = "late_within_1m"
	counterLonger   = "late_longer"
)

// LateAnswers says how many successes came too late, and how late, by the counters of a queue; empty: none did.
func LateAnswers(counters map[string]int64) string {
	count, by := 0, ""
	for _, within := range lateWithin {
		if n := int(counters[within.counter]); n > 0 {
			count, by = count+n, within.words
		}
	}
	if count == 0 {
		return ""
	}
	return words.Count(count, "answer came ", "answers came ") + by + " after their deadline, and did not count"
}

func (d *Decision) lateWithin() string {
	i := 0
	for d.Ended != nil && i < len(lateWithin)-1 && d.Ended.Late > lateWithin[i].most {
		i++
	}
	return lateWithin[i].counter
}

// The circuit of the queue counts ended attempts in tenths of its window: a prefix, and the begin of the tenth in Unix ms. So counters expire by
// themselves, also after a change of the window. QueueCircuitPrefix begins both and no counter for people.
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
