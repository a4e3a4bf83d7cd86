package model

import (
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// align joins a retry with the schedule: it returns when the next attempt starts, and whether that is the planned refresh in place of the
// retry. A time of its own that an expression names is moved into the retry window, and behind what the worker asked for; when the
// expression fails, policyError says why, and the named alignment serves.
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
