package model

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
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
	// Times is the number of attempts in a row that were postponed, interrupted or not begun: one record covers them all. 0: one, or none.
	Times      int
	Final      bool      `json:"final"`
	Changed    *bool     `json:"changed"`
	Exhausted  bool      `json:"retries_exhausted"`
	Reason     string    `json:"reason"`
	ErrorType  string    `json:"error_type"`
	Worker     string    `json:"worker"`
	DeadlineAt time.Time `json:"deadline_at"`
	Ignored    []string  `json:"ignored"`   // fields of the worker's last message that could not be used
	LogBytes   int       `json:"log_bytes"` // of its log, as long as that is kept; 0: it has said nothing
	LogURL     string    `json:"log_url"`   // the address of a log, by its worker
	// Late is how long after it had timed out a success came, which did not count; 0: none came.
	Late time.Duration

	Metrics  map[string]float64 `json:"metrics"`  // the counts of a success
	Suspect  string             `json:"suspect"`  // why a success is doubted; empty: it is not
	Accepted bool               `json:"accepted"` // somebody has ended the doubt
	// Unpublished: the worker has published nothing, as the verdict was.
	Unpublished bool `json:"unpublished"`

	// How the time of the retry came about. Overlap is empty where no retry was considered; Delay, Jitter and RetryAt say nothing then.
	Delay     time.Duration  // of the policy, or of the worker if it asked for more
	Jitter    time.Duration  // that jitter added or took
	RetryAt   time.Time      `json:"retry_at"`   // when the retry alone would start
	PlannedAt time.Time      `json:"planned_at"` // the planned refresh that it was aligned with
	Overlap   policy.Overlap `json:"overlap"`

	RefreshAt time.Time `json:"refresh_at"`
	Why       string    `json:"refresh_why"`
}

// Lengths returns how long the attempt waited for its worker and how long the work took; known: the worker reported its begin.
func (a *Attempt) Lengths() (wait, took time.Duration, known bool) {
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

func readTime(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC()
}

// attemptEntry is an Attempt in the history: lengths in milliseconds, times as lengths from the end, without derivable fields.
type attemptEntry struct {
	At        string             `json:"at"`                  // EndedAt
	Took      int64              `json:"took"`                // since StartedAt; negative when the clock was set back
	Work      *int64             `json:"work,omitempty"`      // since ProcessingAt; absent: no worker said that it began
	UID       string             `json:"uid,omitempty"`       // AttemptUID
	No        *int               `json:"no,omitempty"`        // AttemptNo; absent: 1
	Is        Event              `json:"is,omitempty"`        // Outcome; absent: success
	Times     int                `json:"times,omitempty"`     // absent: one, or none
	Limit     *int64             `json:"limit,omitempty"`     // from StartedAt to DeadlineAt
	Final     bool               `json:"final,omitempty"`     // as in Attempt, like the next seven
	Changed   *bool              `json:"changed,omitempty"`   //
	Exhausted bool               `json:"exhausted,omitempty"` //
	Reason    string             `json:"reason,omitempty"`    //
	Type      string             `json:"type,omitempty"`      // ErrorType
	Worker    string             `json:"worker,omitempty"`    //
	Ignored   []string           `json:"ignored,omitempty"`   //
	Log       int                `json:"log,omitempty"`       // LogBytes
	LogURL    string             `json:"log_url,omitempty"`   //
	Late      int64              `json:"late,omitempty"`      // absent: no success came late
	Metrics   map[string]float64 `json:"metrics,omitempty"`   // of a success, like the next two
	Suspect   string             `json:"suspect,omitempty"`   //
	Accepted  bool               `json:"accepted,omitempty"`  //
	Published *bool              `json:"published,omitempty"` // false: Unpublished; absent: it is not
	Delay     *int64             `json:"delay,omitempty"`     // where a retry was considered
	Jitter    int64              `json:"jitter,omitempty"`    // with a delay; absent: none
	Retry     *int64             `json:"retry,omitempty"`     // to RetryAt; absent: Delay and Jitter
	Planned   *int64             `json:"planned,omitempty"`   // to PlannedAt
	Overlap   policy.Overlap     `json:"overlap,omitempty"`   // with a delay; absent: it follows from Retry, Planned and Limit
	Next      *int64             `json:"next,omitempty"`      // to RefreshAt
	Of        int                `json:"of,omitempty"`        // retries that the policy allows, where Why follows; -1: any number
	Why       string             `json:"why,omitempty"`       // absent for the usual reason of a retry, or of a planned success
}

// Entry renders the entry of the history.
func (a *Attempt) Entry() string {
	e := attemptEntry{
		At: FormatTime(a.EndedAt), Took: a.EndedAt.Sub(a.StartedAt).Milliseconds(), Work: length(a.ProcessingAt, a.EndedAt), UID: a.AttemptUID,
		Is: a.Outcome, Limit: length(a.StartedAt, a.DeadlineAt), Final: a.Final, Changed: a.Changed, Exhausted: a.Exhausted, Reason: a.Reason, Type: a.ErrorType,
		Worker: a.Worker, Ignored: a.Ignored, Log: a.LogBytes, LogURL: a.LogURL, Late: a.Late.Milliseconds(), Metrics: a.Metrics, Suspect: a.Suspect, Accepted: a.Accepted, Planned: length(a.EndedAt, a.PlannedAt), Next: length(a.EndedAt, a.RefreshAt), Why: a.Why,
	}
	if a.Times > 1 {
		e.Times = a.Times
	}
	if a.Unpublished {
		e.Published = new(bool)
	}
	if a.AttemptNo != 1 {
		e.No = &a.AttemptNo
	}
	if e.Is == EventSuccess && e.Why == whyPlanned {
		e.Why = ""
	}
	if e.Is == EventSuccess {
		e.Is = ""
	}
	if a.Overlap != "" {
		e.Delay, e.Jitter = new(a.Delay.Milliseconds()), a.Jitter.Milliseconds()
		if !a.RetryAt.Equal(a.delayed()) {
			e.Retry = length(a.EndedAt, a.RetryAt)
		}
		if a.Overlap != a.expectedOverlap() {
			e.Overlap = a.Overlap
		}
	}
	if retries, follows := a.retries(); follows {
		e.Of, e.Why = retries, ""
	}
	text, _ := json.Marshal(e) // texts and numbers only
	return string(text)
}

// ParseAttempt reads an entry of the history. A time that cannot be read stays zero.
func ParseAttempt(text string) (Attempt, error) {
	var e attemptEntry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return Attempt{}, err
	}
	if e.At == "" {
		return Attempt{}, document.Refuse("at", "when the attempt ended", "nothing")
	}
	at := readTime(e.At)
	a := Attempt{
		AttemptUID: e.UID, AttemptNo: 1, StartedAt: at.Add(-milliseconds(e.Took)), EndedAt: at, Duration: max(0, milliseconds(e.Took)), Outcome: cmp.Or(e.Is, EventSuccess), Times: e.Times,
		Final: e.Final, Changed: e.Changed, Exhausted: e.Exhausted, Reason: e.Reason, ErrorType: e.Type, Worker: e.Worker, Ignored: e.Ignored, LogBytes: e.Log, LogURL: e.LogURL, Late: milliseconds(e.Late), Why: e.Why,
		Metrics: e.Metrics, Suspect: e.Suspect, Accepted: e.Accepted, Unpublished: e.Published != nil && !*e.Published,
		PlannedAt: after(at, e.Planned), RefreshAt: after(at, e.Next),
	}
	a.DeadlineAt = after(a.StartedAt, e.Limit)
	if e.No != nil {
		a.AttemptNo = *e.No
	}
	if e.Work != nil {
		a.ProcessingAt = at.Add(-milliseconds(*e.Work))
	}
	if e.Delay != nil {
		a.Delay, a.Jitter = milliseconds(*e.Delay), milliseconds(e.Jitter)
		if a.RetryAt = after(at, e.Retry); e.Retry == nil {
			a.RetryAt = a.delayed()
		}
		a.Overlap = cmp.Or(e.Overlap, a.expectedOverlap())
	}
	switch {
	case e.Why != "":
	case e.Of != 0:
		a.Why = a.expectedWhy(e.Of)
	case e.Is == "":
		a.Why = whyPlanned
	}
	return a, nil
}

func (a *Attempt) delayed() time.Time { return a.EndedAt.Add(a.Delay + a.Jitter) }

func (a *Attempt) expectedOverlap() policy.Overlap {
	switch {
	case a.PlannedAt.IsZero():
		return policy.NonePlanned
	case a.DeadlineAt.IsZero():
		return policy.OverlapOf(a.RetryAt, a.PlannedAt, 0)
	default:
		return policy.OverlapOf(a.RetryAt, a.PlannedAt, a.DeadlineAt.Sub(a.StartedAt))
	}
}

// expectedWhy is the text of a plain retry, which need not be stored.
func (a *Attempt) expectedWhy(retries int) string {
	return why{
		reason: retryAfterDelay, k: a.AttemptNo, retries: retries, delay: a.Delay, jitter: a.Jitter,
		overlap: a.Overlap, plannedFirst: a.RefreshAt.Equal(a.PlannedAt) && !a.RefreshAt.Equal(a.RetryAt),
	}.behind("")
}

// retries reads from Why how many retries the policy allows; false: Why is not the expected text.
func (a *Attempt) retries() (int, bool) {
	if a.Overlap == "" {
		return 0, false
	}
	retries := policy.Unlimited
	if count, is := strings.CutPrefix(a.Why, "retry "+strconv.Itoa(a.AttemptNo)+ofRetries); is {
		count, _, _ = strings.Cut(count, " ")
		retries, _ = strconv.Atoi(count)
	}
	return retries, retries != 0 && a.expectedWhy(retries) == a.Why
}

// length is in milliseconds; nil: one of both is not known.
func length(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	return new(to.Sub(from).Milliseconds())
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func after(at time.Time, length *int64) time.Time {
	if length == nil {
		return time.Time{}
	}
	return at.Add(milliseconds(*length))
}
