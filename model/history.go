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
	Attempt
	EndedAt    *time.Time `json:"ended_at"` // nil: it is no such entry
	DurationMS int64      `json:"duration_ms"`
	DelayMS    int64      `json:"delay_ms"`
	JitterMS   int64      `json:"jitter_ms"`
	DeadlineAt string     `json:"deadline_at"` // these may be empty
	RetryAt    string     `json:"retry_at"`
	PlannedAt  string     `json:"planned_at"`
	RefreshAt  string     `json:"refresh_at"`
}

func parseEarlier(text string) (Attempt, bool) {
	var e earlierEntry
	if json.Unmarshal([]byte(text), &e) != nil || e.EndedAt == nil {
		return Attempt{}, false
	}
	a := e.Attempt
	a.EndedAt, a.Duration, a.Delay, a.Jitter = *e.EndedAt, milliseconds(e.DurationMS), milliseconds(e.DelayMS), milliseconds(e.JitterMS)
	a.DeadlineAt, a.RetryAt, a.PlannedAt, a.RefreshAt = readTime(e.DeadlineAt), readTime(e.RetryAt), readTime(e.PlannedAt), readTime(e.RefreshAt)
	return a, true
}

func readTime(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC()
}

// attemptEntry is an Attempt in the history. Lengths are milliseconds, times are lengths from the end, and what follows from the rest is left
// out.
type attemptEntry struct {
	At        string         `json:"at"`        // EndedAt
	Took      int64          `json:"took"`      // since StartedAt; negative when the clock was set back
	Work      *int64         `json:"work"`      // since ProcessingAt; absent: no worker said that it began
	UID       string         `json:"uid"`       // AttemptUID
	No        int            `json:"no"`        // AttemptNo
	Is        Event          `json:"is"`        // Outcome
	Times     int            `json:"times"`     //
	Limit     *int64         `json:"limit"`     // from StartedAt to DeadlineAt
	Final     bool           `json:"final"`     // as in Attempt, like the next seven
	Changed   *bool          `json:"changed"`   //
	Exhausted bool           `json:"exhausted"` //
	Reason    string         `json:"reason"`    //
	Type      string         `json:"type"`      // ErrorType
	Worker    string         `json:"worker"`    //
	Ignored   []string       `json:"ignored"`   //
	Delay     *int64         `json:"delay"`     // where a retry was considered
	Jitter    int64          `json:"jitter"`    // with a delay; absent: none
	Retry     *int64         `json:"retry"`     // to RetryAt; absent: Delay and Jitter
	Planned   *int64         `json:"planned"`   // to PlannedAt
	Overlap   policy.Overlap `json:"overlap"`   // with a delay; absent: what follows from Retry, Planned and Limit
	Next      *int64         `json:"next"`      // to RefreshAt
	Of        int            `json:"of"`        // retries that the policy allows, where Why follows; -1: any number
	Why       string         `json:"why"`       // absent where it says what a retry always says
}

// AppendEntry appends the entry of the history.
func (a *Attempt) AppendEntry(text []byte) []byte {
	w := entryWriter{append(append(text, `{"at":"`...), FormatTime(a.EndedAt)...)}
	w.text = append(w.text, '"')
	w.number("took", a.EndedAt.Sub(a.StartedAt).Milliseconds())
	w.length("work", a.ProcessingAt, a.EndedAt)
	w.string("uid", a.AttemptUID)
	w.number("no", int64(a.AttemptNo))
	w.string("is", string(a.Outcome))
	if a.Times > 1 {
		w.number("times", int64(a.Times))
	}
	w.length("limit", a.StartedAt, a.DeadlineAt)
	w.flag("final", a.Final)
	if a.Changed != nil {
		w.name("changed")
		w.text = strconv.AppendBool(w.text, *a.Changed)
	}
	w.flag("exhausted", a.Exhausted)
	w.string("reason", a.Reason)
	w.string("type", a.ErrorType)
	w.string("worker", a.Worker)
	joint := byte('[')
	for _, field := range a.Ignored {
		if joint == '[' {
			w.name("ignored")
		}
		w.text, joint = document.AppendQuoted(append(w.text, joint), field), ','
	}
	if joint == ',' {
		w.text = append(w.text, ']')
	}
	if a.Overlap != "" {
		w.number("delay", a.Delay.Milliseconds())
	}
	if a.Overlap != "" && a.Jitter != 0 {
		w.number("jitter", a.Jitter.Milliseconds())
	}
	if a.Overlap != "" && !a.RetryAt.Equal(a.delayed()) {
		w.length("retry", a.EndedAt, a.RetryAt)
	}
	w.length("planned", a.EndedAt, a.PlannedAt)
	if a.Overlap != "" && a.Overlap != a.expectedOverlap() {
		w.string("overlap", string(a.Overlap))
	}
	w.length("next", a.EndedAt, a.RefreshAt)
	if retries, follows := a.retries(); follows {
		w.number("of", int64(retries))
	} else {
		w.string("why", a.Why)
	}
	return append(w.text, '}')
}

// ParseAttempt reads an entry of the history, also one of an earlier version. A time that cannot be read stays zero.
func ParseAttempt(text string) (Attempt, error) {
	if earlier, is := parseEarlier(text); is {
		return earlier, nil
	}
	var e attemptEntry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return Attempt{}, err
	}
	at := readTime(e.At)
	a := Attempt{
		AttemptUID: e.UID, AttemptNo: e.No, StartedAt: at.Add(-milliseconds(e.Took)), EndedAt: at, Duration: max(0, milliseconds(e.Took)), Outcome: e.Is, Times: e.Times,
		Final: e.Final, Changed: e.Changed, Exhausted: e.Exhausted, Reason: e.Reason, ErrorType: e.Type, Worker: e.Worker, Ignored: e.Ignored, Why: e.Why,
		PlannedAt: after(at, e.Planned), RefreshAt: after(at, e.Next),
	}
	a.DeadlineAt = after(a.StartedAt, e.Limit)
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
	if e.Why == "" && e.Of != 0 {
		a.Why = a.expectedWhy(e.Of)
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
		basis: retryAfterDelay, k: a.AttemptNo, retries: retries, delay: a.Delay, jitter: a.Jitter,
		overlap: a.Overlap, plannedFirst: a.RefreshAt.Equal(a.PlannedAt) && !a.RefreshAt.Equal(a.RetryAt),
	}.String()
}

// retries reads from Why how many retries the policy allows; false: Why is not the expected text.
func (a *Attempt) retries() (int, bool) {
	if a.Overlap == "" {
		return 0, false
	}
	retries := policy.Unlimited
	if count, is := strings.CutPrefix(a.Why, "retry "+strconv.Itoa(a.AttemptNo)+"/"); is {
		count, _, _ = strings.Cut(count, " ")
		retries, _ = strconv.Atoi(count)
	}
	return retries, retries != 0 && a.expectedWhy(retries) == a.Why
}

type entryWriter struct{ text []byte }

func (w *entryWriter) name(name string) {
	w.text = append(append(append(w.text, `,"`...), name...), `":`...)
}

func (w *entryWriter) number(name string, value int64) {
	w.name(name)
	w.text = strconv.AppendInt(w.text, value, 10)
}

func (w *entryWriter) length(name string, from, to time.Time) {
	if !from.IsZero() && !to.IsZero() {
		w.number(name, to.Sub(from).Milliseconds())
	}
}

func (w *entryWriter) flag(name string, set bool) {
	if set {
		w.name(name)
		w.text = append(w.text, "true"...)
	}
}

func (w *entryWriter) string(name, value string) {
	if value != "" {
		w.name(name)
		w.text = document.AppendQuoted(w.text, value)
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func after(at time.Time, length *int64) time.Time {
	if length == nil {
		return time.Time{}
	}
	return at.Add(milliseconds(*length))
}
