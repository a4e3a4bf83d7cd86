package scripts

import (
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// journalEntry lists the fields of one entry of <queue>:journal; empty for what is no transition.
func (t *Transition) journalEntry(now time.Time) []string {
	d := &t.decision
	if d.Event == model.EventStatus || d.Event == eventMend {
		return nil
	}
	entry := []string{"uid", t.uid, "event", string(d.Event), "at", model.FormatTime(now)}
	add := func(name, value string) {
		if value != "" {
			entry = append(entry, name, value)
		}
	}
	attemptUID, attemptNo := d.Next.AttemptUID, d.Next.AttemptNo
	if d.Ended != nil {
		attemptUID, attemptNo = d.Ended.AttemptUID, d.Ended.AttemptNo
	}
	if d.Event == model.EventWithdrawn {
		attemptUID, attemptNo = d.Next.LastAttemptUID, d.Next.AttemptNo+1
	}
	add("attempt_uid", attemptUID)
	if attemptNo > 0 {
		add("attempt_no", strconv.Itoa(attemptNo))
	}
	add("refresh_at", model.FormatTime(d.Next.RefreshAt))
	add("deadline_at", model.FormatTime(d.Next.DeadlineAt))
	add("refresh_why", d.Next.Why)
	if d.Ended != nil {
		add("reason", d.Ended.Reason)
		add("error_type", d.Ended.ErrorType)
		add("changed", changed(d.Ended.Changed))
	}
	add("policy_error", d.PolicyError)
	if d.Held {
		add("held", "1")
	}
	if d.Final {
		add("final", "1")
		add("disabled_reason", d.Next.DisabledReason)
	}
	return entry
}

// changed renders what a worker said about its success; empty: it said nothing.
func changed(told *bool) string {
	if told == nil {
		return ""
	}
	return strconv.FormatBool(*told)
}

// notice lists the fields of one entry of <queue>:outbox; empty: nobody is told.
func (t *Transition) notice(now time.Time) []string {
	d := &t.decision
	if d.Notice == policy.NoticeNone || d.Muted {
		return nil
	}
	attemptNo := d.Next.AttemptNo
	if d.Ended != nil {
		attemptNo = d.Ended.AttemptNo
	}
	entry := []string{"event", string(d.Notice), "uid", t.uid, "at", model.FormatTime(now), "attempt_no", strconv.Itoa(attemptNo)}
	if d.Notice == policy.NoticeDisabled {
		entry = append(entry, "reason", d.Next.DisabledReason, "refresh_why", d.Next.Why)
	}
	return entry
}

// The counters that are not named after an event or an outcome.
const (
	counterRetry        = "retry"             // starts that were not the first run of their cycle
	counterUnchanged    = "success_unchanged" // successes that found nothing new
	counterExhausted    = "exhausted"         // failures after the last retry
	counterFinalFailure = "final_failure"     // models disabled by a failure
	counterRecovered    = "recovered"         // successes after a final failure
	counterLate         = "late"              // results after the deadline, before anybody had noticed
	counterPolicyError  = "policy_error"      // failures whose policy could not say when to retry

	counterHeld = "held" // final failures that the brake held back

	// The counts of document 004, rule 13: ended retries, those of them that succeeded, and cycles that needed one.
	counterRetries       = "total_retries"
	counterRetriesHelped = "successful_retries"
	counterRetriedCycles = "retried_cycles"
)

// counters names what the transition adds one to in <queue>:stats.
func (t *Transition) counters(now time.Time) []string {
	d := &t.decision
	if d.Event == eventMend {
		return nil
	}
	names := []string{string(d.Event)}
	add := func(name string, counts bool) {
		if counts {
			names = append(names, name)
		}
	}
	add(counterRetry, d.Event == model.EventStart && d.Next.AttemptNo > 1)
	add(counterUnchanged, d.Ended != nil && d.Ended.Changed != nil && !*d.Ended.Changed)
	add(counterExhausted, d.Exhausted)
	add(counterFinalFailure, d.Final)
	add(counterRecovered, d.Notice == policy.NoticeRecovered)
	add(counterLate, d.Late)
	add(counterPolicyError, d.PolicyError != "")
	no := d.CountedAttempt()
	add(counterRetries, no > 1)
	add(counterRetriesHelped, no > 1 && d.Event == model.EventSuccess)
	add(counterRetriedCycles, no == 2)
	add(counterHeld, d.Held)
	if no > 0 {
		bucket := brakeBucket(t.brake, d.Event == model.EventSuccess, now)
		add(bucket, bucket != "")
	}
	return names
}
