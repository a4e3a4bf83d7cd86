package model

import (
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Attempt is the record of one attempt that has ended, as the history keeps it.
type Attempt struct {
	AttemptUID string
	AttemptNo  int
	StartedAt  time.Time
	// ProcessingAt is when its worker said that the work began; zero: no worker said so.
	ProcessingAt time.Time
	EndedAt      time.Time
	Duration     time.Duration // from StartedAt to EndedAt
	Outcome      Event
	// Times is how many attempts in a row, with this one, were postponed, interrupted or not begun. They do not count, so one record tells
	// of them all: from the second on it takes the place of the one before. 0: one, or none.
	Times      int
	Final      bool
	Changed    *bool
	Exhausted  bool
	Reason     string
	ErrorType  string
	Worker     string
	DeadlineAt time.Time
	Ignored    []string // fields of the worker's last message that could not be used

	// How the time of the retry came about. Overlap is empty where no retry was considered; Delay, Jitter and RetryAt say nothing then.
	Delay     time.Duration // of the policy, or of the worker if it asked for more
	Jitter    time.Duration // what jitter added or took
	RetryAt   time.Time     // when the retry alone would start
	PlannedAt time.Time     // the planned refresh that it was aligned with
	Overlap   policy.Overlap

	RefreshAt time.Time
	Why       string
}

// Lengths returns how long the attempt waited for its worker, and how long the work took: the whole where no worker told that it began.
func (a *Attempt) Lengths() (wait, took time.Duration, told bool) {
	if a.ProcessingAt.IsZero() {
		return 0, a.Duration, false
	}
	return max(0, a.ProcessingAt.Sub(a.StartedAt)), max(0, a.EndedAt.Sub(a.ProcessingAt)), true
}

// DisplacedRetry is when the retry would have started, had the planned refresh not come first; zero: it did not.
func (a *Attempt) DisplacedRetry() time.Time {
	if a.PlannedAt.IsZero() || !a.RefreshAt.Equal(a.PlannedAt) || a.RetryAt.Equal(a.PlannedAt) {
		return time.Time{}
	}
	return a.RetryAt
}
