package chart

import (
	"strings"
	"testing"
	"time"

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
		{"a failure of three events", []Event{at(0, Start), at(2, Failure), at(2, Exhausted), at(2, Disabled)}, []short{{0, 2, Failure}}},
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
					length = int(a.end.At.Sub(a.begin.At).Minutes())
				}
				got = append(got, short{int(a.begin.At.Sub(start).Minutes()), length, a.end.Kind})
			}
			equal(t, test.want, got)
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
	equal(t, want, FromHistory(newestFirst))
}

func TestARetryThatWaitsForPlannedShowsWhereItWouldHaveRun(t *testing.T) {
	end := instant("2026-03-02T14:00:00Z")
	at := func(minutes int) time.Time { return end.Add(time.Duration(minutes) * time.Minute) }
	tests := []struct {
		name    string
		attempt model.Attempt
		want    time.Duration // after the failure; 0: nowhere else than where it runs
	}{
		{"planned comes in its place", model.Attempt{RetryAt: at(30), PlannedAt: at(79), RefreshAt: at(79)}, 30 * time.Minute},
		{"even before it", model.Attempt{RetryAt: at(90), PlannedAt: at(79), RefreshAt: at(79)}, 90 * time.Minute},
		{"the retry comes first", model.Attempt{RetryAt: at(30), PlannedAt: at(79), RefreshAt: at(30)}, 0},
		{"both at once", model.Attempt{RetryAt: at(79), PlannedAt: at(79), RefreshAt: at(79)}, 0},
		{"the give-up window ends before", model.Attempt{RetryAt: at(30), PlannedAt: at(79), RefreshAt: at(20)}, 0},
		{"nothing planned", model.Attempt{RetryAt: at(30), RefreshAt: at(30)}, 0},
		{"the retry is to wait for planned", model.Attempt{PlannedAt: at(79), RefreshAt: at(79)}, 0},
		{"it gave up", model.Attempt{RetryAt: at(30), PlannedAt: at(79), Final: true}, 0},
		{"it gave up, nothing planned", model.Attempt{RetryAt: at(30), Final: true}, 0},
		{"a success", model.Attempt{RefreshAt: at(79)}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.attempt.EndedAt = end
			var want time.Time
			if test.want > 0 {
				want = end.Add(test.want)
			}
			events := EndOf(test.attempt)
			got := events[0].RetryAt
			failIf(t, !got.Equal(want), "retry at %v, want %v", got, want)
			for _, event := range events[1:] {
				failIf(t, !event.RetryAt.IsZero(), "%s has the retry again", event.Kind)
			}
		})
	}
}

func TestARetryThatWaitedIsDrawnForAsLongAsItsTimeout(t *testing.T) {
	s := eventsFrom("2026-03-02T14:00:00Z")
	s.start(time.Hour).after(time.Minute).fail(Failure, 79*time.Minute, "retry 1/6 +30m, planned first: overlaps", "HTTP 503").gaveWay(30 * time.Minute)
	s.start(time.Hour).after(time.Minute).succeed(time.Time{})
	picture := render(t, SVG, []Chart{{Events: s.events}})
	failIf(t, !strings.Contains(picture, ">would run 14:31 – 15:31<"), "expected the hour from 14:31 on in\n%s", picture)
}

func TestTheWaitInLineIsDrawnApartFromTheWork(t *testing.T) {
	at := func(second int) time.Time {
		return instant("2026-03-02T06:00:00Z").Add(time.Duration(second) * time.Second)
	}
	for begun, want := range map[int]bool{0: false, 37: true} {
		attempt := model.Attempt{AttemptNo: 1, StartedAt: at(0), EndedAt: at(40), Outcome: model.EventFailure}
		if begun > 0 {
			attempt.ProcessingAt = at(begun)
		}
		var picture strings.Builder
		must(t, SVG(&picture, Chart{Title: "a", Location: time.UTC, Start: at(0), End: at(40), Events: FromHistory([]model.Attempt{attempt})}))
		drawn := strings.Contains(picture.String(), `class="queued"`)
		if told := strings.Contains(picture.String(), "in line for 37s of that"); drawn != want || told != want || !strings.Contains(picture.String(), `class="failure"`) {
			t.Errorf("begun after %d s: expected the wait drawn and told: %t, found %t and %t", begun, want, drawn, told)
		}
	}
}
