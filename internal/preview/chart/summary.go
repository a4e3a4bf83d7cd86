package chart

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/words"
)

// Summary sums up a run.
type Summary struct {
	Attempts int `json:"attempts"`
	// AttemptsPerDay counts days of 24 hours; 0 for a run without length.
	AttemptsPerDay float64 `json:"attempts_per_day"`
	Successes      int     `json:"successes"`
	Failures       int     `json:"failures"` // reported by a worker; without timeouts
	Timeouts       int     `json:"timeouts"`
	Retries        int     `json:"retries"` // attempts after a failure
	// RetriesThatHelped ended with success.
	RetriesThatHelped int `json:"retries_that_helped"`
	// WorstStaleness is the longest time without a success, including the time before the first and after the last.
	WorstStaleness time.Duration `json:"worst_staleness"`
	// TimeToGiveUp runs from the last success to the last time the model was disabled; without a success, from the first
	// start, as a give-up window does. nil: it never was.
	TimeToGiveUp *time.Duration `json:"time_to_give_up"`
	// Ended is disabled or finished when nothing started after that, else nil.
	Ended *Kind `json:"ended"`
	// CutOff: the run was stopped after so many attempts, and its end is unknown.
	CutOff bool `json:"cut_off"`
}

func (r *run) summary() Summary {
	var sum Summary
	sum.CutOff = r.CutOff
	lastSuccess := r.Start // or the start of the run
	var tryingSince time.Time
	retry := false
	for _, event := range r.Events {
		switch event.Kind {
		case Start, Retry:
			sum.Attempts++
			sum.Ended = nil
			if retry = event.isRetry(); retry {
				sum.Retries++
			}
		case Success:
			sum.Successes++
			if retry {
				sum.RetriesThatHelped++
			}
			sum.WorstStaleness = max(sum.WorstStaleness, event.At.Sub(lastSuccess))
			lastSuccess = event.At
		case Failure:
			sum.Failures++
		case Timeout:
			sum.Timeouts++
		case Disabled:
			sum.TimeToGiveUp, sum.Ended = new(event.At.Sub(cmp.Or(tryingSince, event.At))), &event.Kind
		case Finished:
			sum.Ended = &event.Kind
		}
		if event.Kind == Success || tryingSince.IsZero() && (event.Kind.begins() || event.Kind.failed()) {
			tryingSince = event.At
		}
	}
	sum.WorstStaleness = max(sum.WorstStaleness, r.End.Sub(lastSuccess))
	if days := r.End.Sub(r.Start).Hours() / 24; days > 0 {
		sum.AttemptsPerDay = math.Round(float64(sum.Attempts)/days*100) / 100
	}
	return sum
}

func (s Summary) pairs() [][2]string {
	giveUp, ended := "never", "no"
	if s.Ended != nil {
		ended = string(*s.Ended)
	}
	if s.CutOff {
		count := words.Count(s.Attempts, "attempt", "attempts")
		giveUp, ended = "not within "+count, "cut off after "+count
	}
	if s.TimeToGiveUp != nil {
		giveUp = words.Roughly(*s.TimeToGiveUp)
	}
	return [][2]string{
		{"attempts", strconv.Itoa(s.Attempts)},
		{"attempts a day", strconv.FormatFloat(s.AttemptsPerDay, 'f', -1, 64)},
		{"successes", strconv.Itoa(s.Successes)},
		{"failures", strconv.Itoa(s.Failures)},
		{"timeouts", strconv.Itoa(s.Timeouts)},
		{"retries", strconv.Itoa(s.Retries)},
		{"retries that helped", fmt.Sprintf("%d of %d", s.RetriesThatHelped, s.Retries)},
		{"worst staleness", words.Roughly(s.WorstStaleness)},
		{"time to give up", giveUp},
		{"ended", ended},
	}
}

func (r *run) digest() string {
	sum := r.summary()
	parts := []string{words.Count(sum.Attempts, "attempt", "attempts")}
	if r.End.Sub(r.Start) >= oneDay {
		parts = append(parts, fmt.Sprintf("%g a day", sum.AttemptsPerDay))
	}
	if sum.Retries > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s helped", sum.RetriesThatHelped, words.Count(sum.Retries, "retry", "retries")))
	}
	parts = append(parts, "worst staleness "+words.Roughly(sum.WorstStaleness))
	if sum.TimeToGiveUp != nil {
		parts = append(parts, "gave up after "+words.Roughly(*sum.TimeToGiveUp))
	}
	if sum.CutOff {
		parts = append(parts, "cut off")
	}
	return strings.Join(append(parts, r.Location.String()), "  ·  ")
}
