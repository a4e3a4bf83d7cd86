package chart

import (
	"testing"
	"time"
)

func TestASummaryCountsWhatHappened(t *testing.T) {
	start := instant("2026-03-02T00:00:00Z")
	at := func(hour int, kind Kind, no int) Event {
		return Event{At: start.Add(time.Duration(hour) * time.Hour), Kind: kind, AttemptNo: no}
	}
	tests := []struct {
		name   string
		events []Event
		want   Summary
	}{
		{"nothing happened", nil, Summary{WorstStaleness: 48 * time.Hour}},
		{"stale before the first success", []Event{at(30, Start, 1), at(31, Success, 1)},
			Summary{Attempts: 1, AttemptsPerDay: 0.5, Successes: 1, WorstStaleness: 31 * time.Hour}},
		{"stale between two successes", []Event{at(1, Start, 1), at(2, Success, 1), at(40, Start, 1), at(41, Success, 1)},
			Summary{Attempts: 2, AttemptsPerDay: 1, Successes: 2, WorstStaleness: 39 * time.Hour}},
		{"stale after the last success", []Event{at(1, Start, 1), at(2, Success, 1)},
			Summary{Attempts: 1, AttemptsPerDay: 0.5, Successes: 1, WorstStaleness: 46 * time.Hour}},
		{"a retry helps when it succeeds", []Event{at(1, Start, 1), at(2, Failure, 1), at(3, Retry, 2), at(4, Success, 2)},
			Summary{Attempts: 2, AttemptsPerDay: 1, Successes: 1, Failures: 1, Retries: 1, RetriesThatHelped: 1, WorstStaleness: 44 * time.Hour}},
		{"a timeout is no reported failure", []Event{at(1, Start, 1), at(2, Timeout, 1)},
			Summary{Attempts: 1, AttemptsPerDay: 0.5, Timeouts: 1, WorstStaleness: 48 * time.Hour}},
		{"giving up counts from the last success", []Event{at(1, Start, 1), at(2, Success, 1), at(5, Start, 1), at(6, Failure, 1), at(6, Disabled, 1)},
			Summary{Attempts: 2, AttemptsPerDay: 1, Successes: 1, Failures: 1, WorstStaleness: 46 * time.Hour,
				TimeToGiveUp: new(4 * time.Hour), Ended: new(Disabled)}},
		{"giving up without a success counts from the first start, as a window does",
			[]Event{at(1, Start, 1), at(2, Failure, 1), at(3, Retry, 2), at(9, Timeout, 2), at(9, Exhausted, 2), at(9, Disabled, 2)},
			Summary{Attempts: 2, AttemptsPerDay: 1, Failures: 1, Timeouts: 1, Retries: 1, WorstStaleness: 48 * time.Hour,
				TimeToGiveUp: new(8 * time.Hour), Ended: new(Disabled)}},
		{"a start after the end takes the end back", []Event{at(1, Start, 1), at(2, Failure, 1), at(2, Disabled, 1), at(5, Start, 1)},
			Summary{Attempts: 2, AttemptsPerDay: 1, Failures: 1, WorstStaleness: 48 * time.Hour, TimeToGiveUp: new(time.Hour)}},
		{"a schedule ends", []Event{at(1, Start, 1), at(2, Success, 1), at(2, Finished, 0)},
			Summary{Attempts: 1, AttemptsPerDay: 0.5, Successes: 1, WorstStaleness: 46 * time.Hour, Ended: new(Finished)}},
		{"what does not count as a failure is none", []Event{at(1, Start, 1), at(2, Postponed, 1), at(3, Start, 1), at(4, Withdrawn, 1)},
			Summary{Attempts: 2, AttemptsPerDay: 1, WorstStaleness: 48 * time.Hour}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			chart := Chart{Events: test.events, Start: start, End: start.Add(48 * time.Hour)}
			got := chart.Summary()
			equal(t, test.want, got)
		})
	}
}

func TestARunThatWasCutOffDoesNotSayNever(t *testing.T) {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	cut := Chart{CutOff: true, Start: start, End: start.Add(time.Hour), Events: []Event{{At: start, Kind: Start, AttemptNo: 1}, {At: start.Add(time.Hour), Kind: Failure, AttemptNo: 1}}}
	summary := cut.Summary()
	pairs := make(map[string]string)
	for _, pair := range summary.pairs() {
		pairs[pair[0]] = pair[1]
	}
	failIf(t, !summary.CutOff || pairs["time to give up"] != "not within 1 attempt" || pairs["ended"] != "cut off after 1 attempt", "found %v", pairs)
}
