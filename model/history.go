package model

import (
	"encoding/json"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Attempt is the record of one attempt that has ended, as the history keeps it.
type Attempt struct {
	AttemptUID string    `json:"attempt_uid"`
	AttemptNo  int       `json:"attempt_no"`
	StartedAt  time.Time `json:"started_at"`
	// ProcessingAt is when its worker said that the work began; zero: no worker said so.
	ProcessingAt time.Time
	EndedAt      time.Time     `json:"ended_at"`
	Duration     time.Duration // from StartedAt to EndedAt
	Outcome      Event         `json:"outcome"`
	// Times is how many attempts in a row, with this one, were postponed, interrupted or not begun. They do not count, so one record tells
	// of them all: from the second on it takes the place of the one before. 0: one, or none.
	Times      int
	Final      bool      `json:"final"`
	Changed    *bool     `json:"changed"`
	Exhausted  bool      `json:"retries_exhausted"`
	Reason     string    `json:"reason"`
	ErrorType  string    `json:"error_type"`
	Worker     string    `json:"worker"`
	DeadlineAt time.Time `json:"deadline_at"`
	Ignored    []string  `json:"ignored"` // fields of the worker's last message that could not be used

	// How the time of the retry came about. Overlap is empty where no retry was considered; Delay, Jitter and RetryAt say nothing then.
	Delay     time.Duration  // of the policy, or of the worker if it asked for more
	Jitter    time.Duration  // what jitter added or took
	RetryAt   time.Time      `json:"retry_at"`   // when the retry alone would start
	PlannedAt time.Time      `json:"planned_at"` // the planned refresh that it was aligned with
	Overlap   policy.Overlap `json:"overlap"`

	RefreshAt time.Time `json:"refresh_at"`
	Why       string    `json:"refresh_why"`
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

// earlierEntry is how an Attempt stood in the history before entries left out what follows. A history outlives many versions.
type earlierEntry struct {
	StartedAt  time.Time      `json:"started_at"`
	EndedAt    *time.Time     `json:"ended_at"` // nil: it is no such entry
	AttemptUID string         `json:"attempt_uid"`
	AttemptNo  int            `json:"attempt_no"`
	DurationMS int64          `json:"duration_ms"`
	Outcome    Event          `json:"outcome"`
	Final      bool           `json:"final"`
	Changed    *bool          `json:"changed"`
	Exhausted  bool           `json:"retries_exhausted"`
	Reason     string         `json:"reason"`
	ErrorType  string         `json:"error_type"`
	Worker     string         `json:"worker"`
	DeadlineAt string         `json:"deadline_at"`
	DelayMS    int64          `json:"delay_ms"`
	JitterMS   int64          `json:"jitter_ms"`
	RetryAt    string         `json:"retry_at"`
	PlannedAt  string         `json:"planned_at"`
	Overlap    policy.Overlap `json:"overlap"`
	RefreshAt  string         `json:"refresh_at"`
	Why        string         `json:"refresh_why"`
}

func parseEarlier(text string) (Attempt, bool) {
	var e earlierEntry
	if json.Unmarshal([]byte(text), &e) != nil || e.EndedAt == nil {
		return Attempt{}, false
	}
	return Attempt{
		AttemptUID: e.AttemptUID, AttemptNo: e.AttemptNo, StartedAt: e.StartedAt, EndedAt: *e.EndedAt, Duration: milliseconds(e.DurationMS),
		Outcome: e.Outcome, Final: e.Final, Changed: e.Changed, Exhausted: e.Exhausted, Reason: e.Reason, ErrorType: e.ErrorType, Worker: e.Worker,
		DeadlineAt: readTime(e.DeadlineAt), Delay: milliseconds(e.DelayMS), Jitter: milliseconds(e.JitterMS), RetryAt: readTime(e.RetryAt),
		PlannedAt: readTime(e.PlannedAt), Overlap: e.Overlap, RefreshAt: readTime(e.RefreshAt), Why: e.Why,
	}, true
}

func readTime(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC()
}
