package chart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
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
	at := func(minute int) time.Time {
		return instant("2026-03-02T06:00:00Z").Add(time.Duration(minute) * time.Minute)
	}
	newestFirst := []model.Attempt{
		{AttemptNo: 3, StartedAt: at(9), EndedAt: at(10), Outcome: model.EventSuccess, Why: "finished: one-shot"},
		{AttemptNo: 2, StartedAt: at(2), EndedAt: at(5), Outcome: model.EventTimeout, Final: true, Exhausted: true,
			Why: "final: exhausted after 2", Reason: "timeout"},
		{AttemptNo: 1, StartedAt: at(0), EndedAt: at(2), Outcome: model.EventFailure, RefreshAt: at(2), DeadlineAt: at(30),
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
	planned := start.Add(2 * time.Hour)
	failed := model.Attempt{AttemptNo: 1, StartedAt: start, EndedAt: start.Add(time.Minute), DeadlineAt: start.Add(time.Hour), Outcome: model.EventFailure,
		RetryAt: start.Add(90 * time.Minute), PlannedAt: planned, Overlap: policy.OverlapsStart, RefreshAt: planned}
	for name, test := range map[string]struct {
		change func(*model.Attempt)
		want   time.Duration // after the start
	}{
		"after its delay":                 {func(*model.Attempt) {}, 90 * time.Minute},
		"at once":                         {func(a *model.Attempt) { a.RetryAt = a.EndedAt }, time.Minute},
		"after planned":                   {func(a *model.Attempt) { a.RetryAt, a.Overlap = planned.Add(time.Hour), policy.OverlapsEnd }, 3 * time.Hour},
		"the retry was first":             {func(a *model.Attempt) { a.RefreshAt = a.RetryAt }, 0},
		"exactly when planned":            {func(a *model.Attempt) { a.RetryAt, a.Overlap = planned, policy.Same }, 0},
		"the give-up window ended before": {func(a *model.Attempt) { a.RefreshAt = start.Add(80 * time.Minute) }, 0},
		"none planned": {func(a *model.Attempt) {
			a.PlannedAt, a.RefreshAt, a.Overlap = time.Time{}, a.RetryAt, policy.NonePlanned
		}, 0},
		"waited for planned from the beginning": {func(a *model.Attempt) { a.RetryAt, a.Overlap = time.Time{}, "" }, 0},
		"no retry": {func(a *model.Attempt) {
			*a = model.Attempt{StartedAt: start, EndedAt: start, Outcome: model.EventFailure}
		}, 0},
	} {
		change := failed
		test.change(&change)
		from, to, found := attemptsOf(FromHistory([]model.Attempt{change}))[0].wished()
		if found != (test.want != 0) || found && (from.Sub(start) != test.want || to.Sub(from) != time.Hour) {
			t.Errorf("%s: got %v to %v, %v", name, from, to, found)
		}
	}
}
