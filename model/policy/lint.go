package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// Warning is about something allowed that its author seldom means.
type Warning struct {
	Field string // of the policy or model, e.g. "timeout"
	Text  string
}

func (w Warning) String() string { return w.Field + ": " + w.Text }

// Subject is the subject of a lint: a policy with its schedule.
type Subject struct {
	Policy   *Policy
	Schedule *schedule.Schedule // nil: none
	Rule     string             // of the model itself; empty: the rule of the policy
	Timezone string             // in force
}

// Lint warns of settings that are allowed and seldom meant. anchored: the author named a dtstart. It usually takes less than a millisecond.
func (s Subject) Lint(anchored bool, now time.Time) []Warning {
	l, p := linter{Subject: s, now: now}, s.Policy
	if _, endless := p.Retries.(Backoff); endless && p.MaxRetries() == Unlimited && p.GiveUpAfter == 0 {
		l.warn("retries", "have no count and there is no give_up_after: a model that is broken for good is tried for ever")
	}
	l.expressions()
	if p.SilentAfter > 0 && p.SilentAfter < shortSilence {
		l.warn("silent_after", "%s is short: while a poller restarts, the signs of all workers wait, and attempts count as lost", document.FormatDuration(p.SilentAfter))
	}
	l.lintGuard()
	if p.Circuit != nil && p.GiveUpAfter > 0 && p.Circuit.Probe >= p.GiveUpAfter {
		l.warn("circuit.probe", "%s is not shorter than the give_up_after of %s: the circuit waits longer for a probe than a failing model may for a success",
			document.FormatDuration(p.Circuit.Probe), document.FormatDuration(p.GiveUpAfter))
	}
	if s.Schedule == nil {
		return l.warnings
	}
	if _, found := s.Schedule.Next(now); !found {
		l.warn("rrule", "has no occurrence after now")
	} else if last, ends := s.Schedule.Ends(); ends && !last.After(now.Add(endingSoon)) {
		l.warn("rrule", "ends soon: no occurrence after %s", last.Format(time.RFC3339))
	}
	for _, remark := range schedule.Remarks(cmp.Or(s.Rule, p.Rule)) {
		l.warn("rrule", "%s", remark)
	}
	l.gaps()
	l.phase(anchored)
	if notes := s.Schedule.ClockChanges(now, lintedDays); len(notes) > 0 {
		l.warn("rrule", "meets changes of the clocks: %s", strings.Join(notes, "; "))
	}
	return l.warnings
}

type linter struct {
	Subject
	now      time.Time
	warnings []Warning
}

func (l *linter) warn(field, format string, args ...any) {
	l.warnings = append(l.warnings, Warning{field, fmt.Sprintf(format, args...)})
}

const (
	triedFailures = 100
	endingSoon    = 30 * 24 * time.Hour
	lintedDays    = 2 * 366
	shortSilence  = 15 * time.Second
)

func (l *linter) expressions() {
	for _, delay := range []time.Duration{0, time.Minute, 2 * time.Hour} {
		if l.Policy.AlignBy == nil {
			break
		}
		_, err := l.Policy.AlignBy.At(AlignInput{RetryAt: l.now.Add(delay), PlannedAt: l.now.Add(time.Hour), Now: l.now, Timeout: l.Policy.Timeout, K: 1})
		if err != nil {
			l.warn("alignment.expr", "fails for a retry in %s, planned in 1h: %s", document.FormatDuration(delay), err)
			break
		}
	}
	expression, ok := l.Policy.Retries.(*Expression)
	for k := 1; ok && k <= triedFailures; k++ {
		_, retry, err := expression.Delay(RetryInput{K: k, SinceSuccess: time.Duration(k) * time.Hour})
		if err != nil {
			l.warn("retries.expr", "fails for failure %d without reason and error type: %s", k, err)
		}
		ok = retry && err == nil
	}
	if ok && l.Policy.GiveUpAfter == 0 {
		l.warn("retries.expr", "still retries after %d failures and there is no give_up_after", triedFailures)
	}
}

// sampledGaps is how many intervals are looked at: two weeks of hours, a year of days. Of rare ones ten years are enough.
const sampledGaps = 366

func (l *linter) gaps() {
	var shortest, longest time.Duration // between the next occurrences
	at, more := l.Schedule.Next(l.now)
	for i := range sampledGaps {
		next := at
		if more {
			next, more = l.Schedule.Next(at)
		}
		if !more || i > 2 && next.Sub(l.now) > document.MaxDuration {
			break
		}
		gap := next.Sub(at)
		if i == 0 || gap < shortest {
			shortest = gap
		}
		longest, at = max(longest, gap), next
	}
	if longest == 0 { // there are fewer than two
		return
	}
	p := l.Policy
	aligned := p.AlignBy == nil && (p.Alignment == AlignPlanned || p.Alignment == BetweenPlanned)
	switch {
	case !aligned || p.MaxRetries() == 0:
	case p.Timeout >= longest:
		l.warn("timeout", "%s is not shorter than the interval of %s: with %s no retry ever ends before the planned refresh, so none runs; see whichever_first",
			document.FormatDuration(p.Timeout), document.FormatDuration(longest), p.Alignment)
	case p.Timeout >= shortest:
		l.warn("timeout", "%s is not shorter than the shortest interval of %s: no retry runs inside of that", document.FormatDuration(p.Timeout), document.FormatDuration(shortest))
	}
	var total time.Duration
	for k := 1; k <= p.MaxRetries(); k++ {
		delay, _, _ := p.Retries.Delay(RetryInput{K: k})
		total = min(total+max(0, delay), document.MaxDuration)
	}
	if aligned && total > longest {
		l.warn("retries", "the delays add up to %s, more than the interval of %s: the planned refresh takes the place of the last ones", document.FormatDuration(total), document.FormatDuration(longest))
	}
	if p.GiveUpAfter > 0 && p.GiveUpAfter <= longest {
		l.warn("give_up_after", "%s is not longer than the interval of %s: the first failure can be final", document.FormatDuration(p.GiveUpAfter), document.FormatDuration(longest))
	}
	if p.FreshWithin > 0 && p.FreshWithin <= longest {
		l.warn("fresh_within", "%s is not longer than the interval of %s: the model is stale before its next planned refresh has ended",
			document.FormatDuration(p.FreshWithin), document.FormatDuration(longest))
	}
	if p.Spread > shortest {
		l.warn("spread", "%s is longer than the interval of %s, which is then the spread", document.FormatDuration(p.Spread), document.FormatDuration(shortest))
	}
}

// phase warns of a rule that depends on the day of its anchor, if nobody has named one.
func (l *linter) phase(anchored bool) {
	rule := l.Rule
	if rule == "" {
		rule, anchored = l.Policy.Rule, anchored || l.Policy.Dtstart != ""
	}
	if anchored {
		return
	}
	countsFrom := schedule.DefaultDtstart
	if l.Rule != "" {
		countsFrom = "midnight of the day on which the model is created"
	}
	// Days in different halves of each second day, week, month and year: an INTERVAL falls on some of them only.
	anchors := []time.Time{l.now, l.now.AddDate(0, 0, -1), l.now.AddDate(0, 0, -7), l.now.AddDate(0, 0, -l.now.Day()),
		l.now.AddDate(-1, 0, 0)}
	var first []time.Time
	for i, anchor := range anchors {
		schedule, err := schedule.Parse(rule, l.Timezone, anchor.Format(time.DateOnly))
		if err != nil {
			continue
		}
		var times []time.Time
		for next, found := schedule.Next(l.now); found && len(times) < 8; next, found = schedule.Next(next) {
			times = append(times, next)
		}
		if i == 0 {
			first = times
		}
		if !slices.EqualFunc(first, times, time.Time.Equal) {
			l.warn("dtstart", "is missing, and the rule depends on it: it counts from %s", countsFrom)
			return
		}
	}
}
