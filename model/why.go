package model

import (
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// why holds the facts behind a decision of the failure rule. String renders refresh_why.
type why struct {
	basis      basis
	k, retries int           // failures in this cycle; retries that the policy allows, or policy.Unlimited
	class      string        // notRetryable: what made it so
	window     time.Duration // the length of the give-up window
	held       time.Duration // by the circuit of the queue; 0: not held
	moved      bool          // the planned refresh comes when the worker has asked for, not earlier

	// These are set only after a delay. plannedAt is set by retryWhenPlanned too.
	delay, jitter      time.Duration // of the policy, or of the worker if it asked for more; what jitter added or took
	asked              bool          // the delay is that of the worker
	inWindow           bool          // the retry waits for the retry window
	policyError        bool
	retryAt, plannedAt time.Time // when the retry alone would start; the planned refresh that it was aligned with
	overlap            policy.Overlap
	plannedFirst       bool
	ownTime            bool // the expression of the alignment names a time that is neither
}

type basis int

const (
	retryAfterDelay basis = iota
	retryWhenPlanned
	retryReplaced // the planned refresh came before the answer
	exhaustedPlanned
	exhaustedReplaced
	windowEnds

	// These are final.
	notRetryable
	windowEnded
	exhausted
	exhaustedNonePlanned
	retryNeverPlanned
)

func (w why) String() string {
	count, moved, held := strconv.Itoa(w.k), "", ""
	retry := "retry " + count
	if w.retries != policy.Unlimited {
		retry += "/" + strconv.Itoa(w.retries)
	}
	if w.moved {
		moved = whyMoved
	}
	if w.held > 0 {
		held = "held by the circuit " + delayText(w.held.Round(time.Second)) + ", "
	}
	switch w.basis {
	case retryWhenPlanned:
		return held + retry + " when planned" + moved
	case retryReplaced:
		return held + retry + " at once: no answer until planned"
	case exhaustedPlanned:
		return held + "exhausted after " + count + ", planned" + moved
	case exhaustedReplaced:
		return held + "exhausted after " + count + ", planned now"
	case windowEnds:
		return held + givesUpText(w.window)
	case notRetryable:
		return held + "final: " + w.class
	case windowEnded:
		return held + "final: " + noSuccessText(w.window)
	case exhausted:
		return held + "final: exhausted after " + count
	case exhaustedNonePlanned:
		return held + "final: exhausted, none planned"
	case retryNeverPlanned:
		return held + "final: none planned to wait for"
	default:
		return held + retry + " " + w.timing(delayText(w.delay), moved)
	}
}

// timing says when a retry starts, and why then and not when it is planned.
func (w why) timing(text, moved string) string {
	if w.jitter != 0 {
		text = "~" + document.FormatDuration(max((w.delay+w.jitter).Round(time.Second), time.Second))
	}
	if w.asked {
		text += " as asked"
	}
	if w.inWindow {
		text += " in window"
	}
	if w.policyError {
		text += ": policy_error"
	}
	switch {
	case w.overlap == policy.NonePlanned:
		return text + ", none planned"
	case w.ownTime:
		return text + ", as the alignment says: " + string(w.overlap)
	case w.plannedFirst && w.overlap == policy.Same:
		return text + ", planned first: same"
	case w.plannedFirst:
		return text + ", planned first: " + string(w.overlap) + moved
	case w.overlap == policy.Before:
		return text + ", before planned"
	default:
		return text + ", retry first: " + string(w.overlap)
	}
}

func delayText(delay time.Duration) string {
	if delay == 0 {
		return "at once"
	}
	return "+" + document.FormatDuration(delay)
}

func noSuccessText(window time.Duration) string {
	return "no success for " + document.FormatDuration(window)
}

func givesUpText(window time.Duration) string {
	return givesUpWords + noSuccessText(window)
}

const givesUpWords = "gives up then: "

// align joins a retry with the schedule. When the expression of the policy fails, policyError says why, and the named alignment decides.
func (m *Model) align(j policy.AlignInput, overlap policy.Overlap, asked time.Duration) (at time.Time, plannedFirst bool, policyError string) {
	if aligner := m.Policy.AlignBy; aligner != nil && overlap != policy.NonePlanned {
		j.ErrorType, j.Reason = document.Shorten(j.ErrorType, document.MaxText), document.Shorten(j.Reason, document.MaxText) // as the history keeps them
		chosen, err := aligner.At(j)
		switch floor := j.Now.Add(asked); {
		case err != nil:
			policyError = document.Shorten(err.Error(), document.MaxText)
		case chosen.Equal(j.PlannedAt):
			return j.PlannedAt, true, ""
		case chosen.Equal(j.RetryAt):
			return j.RetryAt, false, ""
		case chosen.Before(floor):
			return m.opens(floor), false, ""
		default:
			return m.opens(chosen), false, ""
		}
	}
	if m.Policy.Alignment.PrefersPlanned(overlap) {
		return j.PlannedAt, true, policyError
	}
	return j.RetryAt, false, policyError
}
