package model

import (
	"encoding/json"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

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

// parseEarlier reads an entry of an earlier version; false: it is none.
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

// readTime reads what FormatTime has written. A text that is no time is none.
func readTime(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC()
}
