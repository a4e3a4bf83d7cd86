package model

import (
	"encoding/json"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Attempt is the record of one attempt that has ended, as the history keeps it.
type Attempt struct {
	AttemptUID string
	AttemptNo  int
	StartedAt  time.Time
	EndedAt    time.Time
	Duration   time.Duration
	Outcome    Event
	Final      bool
	Changed    *bool
	Exhausted  bool
	Reason     string
	ErrorType  string
	Worker     string
	DeadlineAt time.Time

	// How the time of the retry came about. Overlap is empty where no retry was considered; Delay, Jitter and RetryAt say nothing then.
	Delay     time.Duration // of the policy, or of the worker if it asked for more
	Jitter    time.Duration // what jitter added or took
	RetryAt   time.Time     // when the retry alone would start
	PlannedAt time.Time     // the planned refresh that it was aligned with
	Overlap   policy.Overlap

	RefreshAt time.Time
	Why       string
}

// DisplacedRetry is when the retry would have started, had the planned refresh not come first; zero: it did not.
func (a *Attempt) DisplacedRetry() time.Time {
	if a.PlannedAt.IsZero() || !a.RefreshAt.Equal(a.PlannedAt) || a.RetryAt.Equal(a.PlannedAt) {
		return time.Time{}
	}
	return a.RetryAt
}

// attemptJSON is how an Attempt stands in the history. The order of its fields is part of the format.
type attemptJSON struct {
	StartedAt  writtenTime    `json:"started_at"`
	EndedAt    writtenTime    `json:"ended_at"`
	AttemptUID string         `json:"attempt_uid"`
	AttemptNo  int            `json:"attempt_no"`
	DurationMS int64          `json:"duration_ms"`
	Outcome    Event          `json:"outcome"`
	Final      bool           `json:"final,omitempty"`
	Changed    *bool          `json:"changed,omitempty"`
	Exhausted  bool           `json:"retries_exhausted,omitempty"`
	Reason     string         `json:"reason,omitempty"`
	ErrorType  string         `json:"error_type,omitempty"`
	Worker     string         `json:"worker,omitempty"`
	DeadlineAt string         `json:"deadline_at,omitempty"`
	DelayMS    *int64         `json:"delay_ms,omitempty"`
	JitterMS   int64          `json:"jitter_ms,omitempty"`
	RetryAt    string         `json:"retry_at,omitempty"`
	PlannedAt  string         `json:"planned_at,omitempty"`
	Overlap    policy.Overlap `json:"overlap,omitempty"`
	RefreshAt  *string        `json:"refresh_at"`
	Why        string         `json:"refresh_why"`
}

// MarshalJSON writes times as FormatTime does, and lengths in milliseconds.
func (a Attempt) MarshalJSON() ([]byte, error) {
	entry := attemptJSON{
		StartedAt: writtenTime{a.StartedAt}, EndedAt: writtenTime{a.EndedAt}, AttemptUID: a.AttemptUID, AttemptNo: a.AttemptNo,
		DurationMS: a.Duration.Milliseconds(), Outcome: a.Outcome, Final: a.Final, Changed: a.Changed, Exhausted: a.Exhausted,
		Reason: a.Reason, ErrorType: a.ErrorType, Worker: a.Worker, DeadlineAt: FormatTime(a.DeadlineAt),
		RetryAt: FormatTime(a.RetryAt), PlannedAt: FormatTime(a.PlannedAt), Overlap: a.Overlap, Why: a.Why,
	}
	if a.Overlap != "" {
		delay := a.Delay.Milliseconds()
		entry.DelayMS, entry.JitterMS = &delay, a.Jitter.Milliseconds()
	}
	if refreshAt := FormatTime(a.RefreshAt); refreshAt != "" {
		entry.RefreshAt = &refreshAt
	}
	return json.Marshal(entry)
}

// UnmarshalJSON reads an entry of the history. A field that an entry of an older version lacks stays zero.
func (a *Attempt) UnmarshalJSON(text []byte) error {
	var entry attemptJSON
	if err := json.Unmarshal(text, &entry); err != nil {
		return err
	}
	*a = Attempt{
		AttemptUID: entry.AttemptUID, AttemptNo: entry.AttemptNo, StartedAt: entry.StartedAt.Time, EndedAt: entry.EndedAt.Time,
		Duration: milliseconds(entry.DurationMS), Outcome: entry.Outcome, Final: entry.Final, Changed: entry.Changed, Exhausted: entry.Exhausted,
		Reason: entry.Reason, ErrorType: entry.ErrorType, Worker: entry.Worker, DeadlineAt: readTime(entry.DeadlineAt),
		Jitter: milliseconds(entry.JitterMS), RetryAt: readTime(entry.RetryAt), PlannedAt: readTime(entry.PlannedAt), Overlap: entry.Overlap, Why: entry.Why,
	}
	if entry.DelayMS != nil {
		a.Delay = milliseconds(*entry.DelayMS)
	}
	if entry.RefreshAt != nil {
		a.RefreshAt = readTime(*entry.RefreshAt)
	}
	return nil
}

// writtenTime is a time that is written as FormatTime does: time.Time would drop the zeros of its milliseconds.
type writtenTime struct{ time.Time }

func (t writtenTime) MarshalJSON() ([]byte, error) { return json.Marshal(FormatTime(t.Time)) }

// readTime reads what FormatTime has written. A text that is no time is none.
func readTime(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC()
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
