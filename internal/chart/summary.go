package chart

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Summary is what a run comes to.
type Summary struct {
	Attempts  int
	Successes int
	Failures  int // that a worker reported; without timeouts
	Timeouts  int
	Retries   int // attempts after a failure
	// RetriesThatHelped ended with success.
	RetriesThatHelped int
	// AttemptsPerDay counts days of 24 hours; 0 for a run without length.
	AttemptsPerDay float64
	// WorstStaleness is the longest time without a success, including the time before the first and after the last.
	WorstStaleness time.Duration
	// TimeToGiveUp runs from the last success to the last time the model was disabled; without a success, from the first
	// failure. It counts only if GaveUp.
	TimeToGiveUp time.Duration
	GaveUp       bool
	// Ended is disabled or finished when nothing started after that, else empty.
	Ended Kind
}

// Summarize sums up the events of a run between start and end.
func Summarize(events []Event, start, end time.Time) Summary {
	t := tally{lastSuccess: start}
	for _, event := range ordered(events) {
		t.count(event)
	}
	t.stale(end)
	if days := end.Sub(start).Hours() / 24; days > 0 {
		t.sum.AttemptsPerDay = math.Round(float64(t.sum.Attempts)/days*100) / 100
	}
	return t.sum
}

// tally counts while it reads the events in the order of time.
type tally struct {
	sum           Summary
	lastSuccess   time.Time // or the start of the run
	failingSince  time.Time // the first failure, if there was no success before it
	everSucceeded bool
}

func (t *tally) count(event Event) {
	switch event.Kind {
	case Start, Retry:
		t.begin(event)
	case Success:
		t.succeed(event)
	case Failure:
		t.sum.Failures++
		t.fail(event.At)
	case Timeout:
		t.sum.Timeouts++
		t.fail(event.At)
	case Disabled:
		t.giveUp(event.At)
	case Finished:
		t.sum.Ended = Finished
	}
}

func (t *tally) begin(event Event) {
	t.sum.Attempts++
	t.sum.Ended = ""
	if event.isRetry() {
		t.sum.Retries++
	}
}

func (t *tally) succeed(event Event) {
	t.sum.Successes++
	if event.AttemptNo > 1 {
		t.sum.RetriesThatHelped++
	}
	t.stale(event.At)
	t.lastSuccess, t.everSucceeded = event.At, true
}

func (t *tally) fail(at time.Time) {
	if t.failingSince.IsZero() {
		t.failingSince = at
	}
}

func (t *tally) giveUp(at time.Time) {
	since := at
	switch {
	case t.everSucceeded:
		since = t.lastSuccess
	case !t.failingSince.IsZero():
		since = t.failingSince
	}
	t.sum.GaveUp, t.sum.TimeToGiveUp, t.sum.Ended = true, at.Sub(since), Disabled
}

func (t *tally) stale(until time.Time) {
	t.sum.WorstStaleness = max(t.sum.WorstStaleness, until.Sub(t.lastSuccess))
}

// MarshalJSON writes durations in the short form of model.FormatDuration; null: it never gave up, it did not end.
func (s Summary) MarshalJSON() ([]byte, error) {
	var giveUp *string
	if s.GaveUp {
		text := document.FormatDuration(s.TimeToGiveUp)
		giveUp = &text
	}
	var ended *Kind
	if s.Ended != "" {
		ended = &s.Ended
	}
	return json.Marshal(struct {
		Attempts          int     `json:"attempts"`
		AttemptsPerDay    float64 `json:"attempts_per_day"`
		Successes         int     `json:"successes"`
		Failures          int     `json:"failures"`
		Timeouts          int     `json:"timeouts"`
		Retries           int     `json:"retries"`
		RetriesThatHelped int     `json:"retries_that_helped"`
		WorstStaleness    string  `json:"worst_staleness"`
		TimeToGiveUp      *string `json:"time_to_give_up"`
		Ended             *Kind   `json:"ended"`
	}{s.Attempts, s.AttemptsPerDay, s.Successes, s.Failures, s.Timeouts, s.Retries, s.RetriesThatHelped,
		document.FormatDuration(s.WorstStaleness), giveUp, ended})
}

// pairs are the lines for people: a name and its value.
func (s Summary) pairs() [][2]string {
	giveUp, ended := "never", "no"
	if s.GaveUp {
		giveUp = rounded(s.TimeToGiveUp)
	}
	if s.Ended != "" {
		ended = string(s.Ended)
	}
	return [][2]string{
		{"attempts", strconv.Itoa(s.Attempts)},
		{"attempts a day", strconv.FormatFloat(s.AttemptsPerDay, 'f', -1, 64)},
		{"successes", strconv.Itoa(s.Successes)},
		{"failures", strconv.Itoa(s.Failures)},
		{"timeouts", strconv.Itoa(s.Timeouts)},
		{"retries", strconv.Itoa(s.Retries)},
		{"retries that helped", fmt.Sprintf("%d of %d", s.RetriesThatHelped, s.Retries)},
		{"worst staleness", rounded(s.WorstStaleness)},
		{"time to give up", giveUp},
		{"ended", ended},
	}
}

// rounded leaves out what nobody reads: milliseconds of seconds, seconds of days.
func rounded(d time.Duration) string {
	switch {
	case d.Abs() >= 24*time.Hour:
		d = d.Truncate(time.Minute)
	case d.Abs() >= time.Minute:
		d = d.Truncate(time.Second)
	}
	return document.FormatDuration(d)
}
