package model

import (
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// why holds the facts behind a decision of the failure rule. behind renders refresh_why.
type why struct {
	reason     reason
	k, retries int           // failures in this cycle; retries that the policy allows, or policy.Unlimited
	class      string        // notRetryable: its reason
	window     time.Duration // the length of the give-up window
	held       time.Duration // by the circuit of the queue; 0: not held
	moved      bool          // the planned refresh comes when the worker has asked for, not earlier

	// These are set only after a delay. plannedAt is set by retryWhenPlanned too.
	delay, jitter      time.Duration // of the policy, or of the worker if it asked for more; the part that jitter added or took
	asked              bool          // the worker has set the delay
	serverAsked        time.Duration // the wish of a server, if that is more than its policy allows
	inWindow           bool          // the retry waits for the retry window
	policyError        bool
	retryAt, plannedAt time.Time // when the retry alone would start; the planned refresh that it was aligned with
	overlap            policy.Overlap
	plannedFirst       bool
	ownTime            bool // the expression of the alignment names a time that is neither
}

type reason int

const (
	retryAfterDelay reason = iota
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

// The refresh_why, or its beginning, where programs read it.
const (
	WhySkipped   = "skipped, late by "            // a missed planned refresh was skipped; how late it was follows
	WhyDisabled  = "disabled"                     // by a failure or by hand; why follows
	WhyWithdrawn = "withdrawn: no worker took it" // until its deadline: it goes back in line
	// WhyServerAsked is part of a sentence: its server has asked for more than its policy allows; for how much follows.
	WhyServerAsked = ", a server asked for "
)

// behind is refresh_why, behind the condition under which it comes so. It is read in Redis by people who may know nothing else of refreshd. Of a
// long one it leaves out the least important part.
func (w why) behind(condition string) string {
	if w.held > 0 {
		return addFitting(condition+"queue circuit open: "+w.heldUntil(), ", not disabled")
	}
	retry, after, moved := "retry "+strconv.Itoa(w.k), afterText(w.delay), ""
	if w.jitter != 0 {
		after = " after about " + words.Roughly(max((w.delay+w.jitter).Round(time.Second), time.Second))
	}
	if w.retries != policy.Unlimited {
		retry += ofRetries + strconv.Itoa(w.retries)
	}
	if w.moved {
		moved = whyMoved
	}
	switch w.reason {
	case retryWhenPlanned:
		return addFitting(condition+retry+" waits for planned", moved)
	case retryReplaced:
		return addFitting(condition+retry+" at once", ", no answer until planned")
	case exhaustedPlanned:
		return addFitting(condition+"waits for planned"+w.failures(), moved)
	case exhaustedReplaced:
		return condition + "planned is due now" + w.failures()
	case windowEnds:
		return condition + givesUpText(w.window)
	case notRetryable:
		return addFitting(condition + disabledBecause + w.class)
	case windowEnded:
		return condition + disabledBecause + noSuccessText(w.window)
	case exhausted:
		return addFitting(condition+WhyDisabled+w.failures(), ", no retry left")
	case exhaustedNonePlanned:
		return addFitting(condition+WhyDisabled+w.failures(), ", nothing planned")
	case retryNeverPlanned:
		return condition + disabledBecause + "nothing planned to wait for"
	default:
		return addFitting(condition+retry, w.timing(after, moved)...)
	}
}

func (w why) heldUntil() string {
	switch {
	case w.plannedFirst:
		return "waits for planned"
	case w.inWindow:
		return "retry in its window"
	default:
		return "retry after " + words.Roughly(w.held.Round(time.Second))
	}
}

func (w why) failures() string { return " after " + words.Count(w.k, "failure", "failures") }

// timing says when a retry starts, and in clauses why then and not when it is planned.
func (w why) timing(after, moved string) []string {
	asked, failed, reason := "", "", ", in place of planned"
	switch {
	case w.asked && w.serverAsked > 0:
		asked = WhyServerAsked + words.Roughly(w.serverAsked)
	case w.asked:
		asked = ", as the worker asked"
	}
	if w.policyError {
		failed = ", policy_error"
	}
	switch {
	case w.plannedFirst:
		return []string{" waits for planned", failed, moved, plannedFirst[w.overlap]}
	case w.ownTime:
		after = " when the policy says"
	case w.inWindow:
		after = " when its window opens"
	}
	switch {
	case w.overlap == policy.NonePlanned, w.ownTime:
		reason = ""
	case w.overlap == policy.Before:
		reason = ", ends before planned"
	case w.overlap == policy.OverlapsStart:
		reason = ", may overlap planned"
	}
	return []string{after, failed, asked, reason}
}

// plannedFirst says why the planned refresh goes before the retry.
var plannedFirst = map[policy.Overlap]string{
	policy.Before: ", as the policy says", policy.OverlapsStart: ", would overlap", policy.Same: ", at the same time",
	policy.OverlapsEnd: ", which comes first", policy.After: ", which comes first",
}

const (
	ofRetries       = " of "
	disabledBecause = WhyDisabled + ", "
)

// addFitting adds as much to a text as there is room for.
func addFitting(text string, more ...string) string {
	for _, clause := range more {
		if len(text)+len(clause) <= maxWhy {
			text += clause
		}
	}
	return document.Shorten(text, maxWhy)
}

func afterText(delay time.Duration) string {
	if delay <= 0 {
		return " at once"
	}
	return " after " + words.Roughly(delay)
}

func noSuccessText(window time.Duration) string {
	return "no success for " + words.Roughly(window)
}

func givesUpText(window time.Duration) string {
	return givesUpWords + noSuccessText(window)
}

const givesUpWords = "gives up then: "
