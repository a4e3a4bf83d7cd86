package chart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
)

func TestAnAttemptLastsFromItsStartToWhatEndsIt(t *testing.T) {
	start := instant("2026-03-02T00:00:00Z")
	at := func(minute int, kind Kind) Event {
		return Event{At: start.Add(time.Duration(minute) * time.Minute), Kind: kind}
	}
	type short struct {
		From, For int
		Outcome   Kind
	}
	tests := []struct {
		name   string
		events []Event
		want   []short
	}{
		{"success", []Event{at(0, Start), at(2, Success), at(2, Finished)}, []short{{0, 2, Success}}},
		{"failure, told three times", []Event{at(0, Start), at(2, Failure), at(2, Exhausted), at(2, Disabled)}, []short{{0, 2, Failure}}},
		{"still running", []Event{at(3, Start)}, []short{{3, 0, ""}}},
		{"disabled while it ran", []Event{at(0, Start), at(4, Disabled)}, []short{{0, 4, Disabled}}},
		{"started twice: the first was superseded", []Event{at(0, Start), at(4, Start), at(5, Success)}, []short{{0, 4, Superseded}, {4, 1, Success}}},
		{"a word of an earlier attempt ends nothing", []Event{at(0, Failure), at(1, Start), at(2, Skipped), at(3, Success)}, []short{{1, 2, Success}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []short
			for _, a := range attemptsOf(test.events) {
				length := 0
				if !a.running() {
					length = int(a.end.Sub(a.start).Minutes())
				}
				got = append(got, short{int(a.start.Sub(start).Minutes()), length, a.outcome})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHistoryOfAModelCanBeDrawn(t *testing.T) {
	next, deadline := "2026-03-02T06:02:00.000Z", "2026-03-02T06:30:00.000Z"
	at := func(minute int) time.Time {
		return instant("2026-03-02T06:00:00Z").Add(time.Duration(minute) * time.Minute)
	}
	newestFirst := []model.Attempt{
		{AttemptNo: 3, StartedAt: at(9), EndedAt: at(10), Outcome: model.EventSuccess, Why: "finished: one-shot"},
		{AttemptNo: 2, StartedAt: at(2), EndedAt: at(5), Outcome: model.EventTimeout, Final: true, Exhausted: true,
			Why: "final: exhausted after 2", Reason: "timeout"},
		{AttemptNo: 1, StartedAt: at(0), EndedAt: at(2), Outcome: model.EventFailure, RefreshAt: &next, DeadlineAt: &deadline,
			Why: "retry 1/1 at once", Reason: "HTTP 503"},
	}
	want := []Event{
		{At: at(0), Kind: Start, AttemptNo: 1, DeadlineAt: at(30)},
		{At: at(2), Kind: Failure, AttemptNo: 1, RefreshAt: at(2), Why: "retry 1/1 at once", Reason: "HTTP 503"},
		{At: at(2), Kind: Retry, AttemptNo: 2},
		{At: at(5), Kind: Timeout, AttemptNo: 2, Why: "final: exhausted after 2", Reason: "timeout"},
		{At: at(5), Kind: Exhausted, AttemptNo: 2, Why: "final: exhausted after 2"},
		{At: at(5), Kind: Disabled, AttemptNo: 2, Why: "final: exhausted after 2"},
		{At: at(9), Kind: Retry, AttemptNo: 3},
		{At: at(10), Kind: Success, AttemptNo: 3, Why: "finished: one-shot"},
		{At: at(10), Kind: Finished, AttemptNo: 3, Why: "finished: one-shot"},
	}
	if diff := cmp.Diff(want, FromHistory(newestFirst)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestARetryThatWaitsForPlannedShowsWhereItWouldHaveRun(t *testing.T) {
	start := instant("2026-03-02T14:00:00Z")
	tests := []struct {
		why   string
		want  time.Duration // after the failure
		found bool
	}{
		{"retry 3/6 +30m, planned first: overlaps", 30 * time.Minute, true},
		{"retry 1/6 at once, planned first: overlaps", 0, true},
		{"retry 2/6 +1h30m as asked, planned first: starts after", 90 * time.Minute, true},
		{"retry 3/6 ~28m12s, planned first: overlaps start", 28*time.Minute + 12*time.Second, true},
		{"retry 3/6 +30m", 0, false},
		{"retry 3/6 +soon, planned first", 0, false},
		{"", 0, false},
	}
	for _, test := range tests {
		a := attempt{start: start, end: start.Add(time.Minute), deadline: start.Add(time.Hour), why: test.why}
		from, to, found := a.wished()
		if found != test.found || found && (from.Sub(a.end) != test.want || to.Sub(from) != time.Hour) {
			t.Errorf("%q: got %v to %v, %v", test.why, from, to, found)
		}
	}
}
