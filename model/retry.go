package model

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// join places a retry from j.RetryAt on inside its window, and aligns it with the planned refresh of j.PlannedAt, if any. Nothing starts before the
// floor. v gets the result.
func (m *Model) join(v *verdict, j policy.AlignInput, floor time.Time) {
	from, w := j, &v.why
	j.RetryAt = m.opens(from.RetryAt)
	at, plannedFirst, policyError := m.align(j, floor)
	free, _, _ := m.align(from, floor) // without a window
	w.inWindow = !j.RetryAt.Equal(from.RetryAt)
	v.at, v.trigger = at, TriggerPlanned
	if w.ownTime = !plannedFirst && !at.Equal(j.RetryAt); w.ownTime {
		v.at = m.opens(at)
	}
	if !plannedFirst {
		v.trigger = TriggerRetry
	}
	v.waits, v.policyError = max(0, v.at.Sub(free)), cmp.Or(v.policyError, policyError)
	w.retryAt, w.plannedAt, w.overlap = j.RetryAt, j.PlannedAt, policy.OverlapOf(j.RetryAt, j.PlannedAt, m.Policy.Timeout)
	w.plannedFirst, w.policyError = plannedFirst, v.policyError != ""
}

// align decides between a retry and a planned refresh. When the expression of the policy fails, policyError says why, and the named alignment decides.
func (m *Model) align(j policy.AlignInput, floor time.Time) (at time.Time, plannedFirst bool, policyError string) {
	j.Timeout = m.Policy.Timeout
	overlap := policy.OverlapOf(j.RetryAt, j.PlannedAt, j.Timeout)
	if aligner := m.Policy.AlignBy; aligner != nil && overlap != policy.NonePlanned {
		j.ErrorType, j.Reason = document.Shorten(j.ErrorType, document.MaxText), document.Shorten(j.Reason, document.MaxText) // as the history keeps them
		chosen, err := aligner.At(j)
		if err == nil {
			return latest(chosen, floor), chosen.Equal(j.PlannedAt), ""
		}
		policyError = document.Shorten(err.Error(), document.MaxText)
	}
	if m.Policy.Alignment.PrefersPlanned(overlap) {
		return j.PlannedAt, true, policyError
	}
	return j.RetryAt, false, policyError
}

const (
	whyWindow        = "retry window closed: waits until it opens"
	whyWindowPlanned = "retry window closed: waits for planned"
)

// rejoin plans a retry anew that may start from an instant on, as its window is closed then. It makes up for a planned refresh that came while the
// retry was due. The wait for the window does not count towards giving up.
func (m *Model) rejoin(next *State, from, now time.Time) (policyError string) {
	since := m.RefreshAt
	if since.After(now) {
		since = now
	}
	j, v, why := policy.AlignInput{RetryAt: from, Now: now, K: m.AttemptNo}, verdict{}, whyWindow
	planned, found := m.planned(since)
	if found {
		j.PlannedAt = latest(planned, from, m.NotBefore)
	}
	if m.join(&v, j, m.NotBefore); v.why.plannedFirst {
		why = whyWindowPlanned
	}
	m.notTried(next, v.waits)
	next.wait(v.at, v.trigger, why)
	if v.why.plannedFirst && m.Policy.Alignment == policy.BetweenPlanned {
		next.AttemptNo = 0
	}
	if v.why.plannedFirst && planned.Before(from) && m.Policy.Misfire.Limited && !m.Parked() { // parked time is no delay
		next.PlannedFor = planned
	}
	return v.policyError
}
