package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model/policy"
)

func TestTheFrontsOfTheListTellWhenAnAttemptWasTakenAtTheLatest(t *testing.T) {
	start := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	front := func(ticket, first, last int) HeadSample { return HeadSample{ticket, at(first), at(last)} }
	empty := func(ticket, seen int) HeadSample { return HeadSample{Ticket: ticket, FirstSeen: at(seen)} }
	for name, test := range map[string]struct {
		ticket int
		noted  []HeadSample
		want   int // seconds after the start, which was at 10
	}{
		"nothing was noted":                      {7, nil, 10},
		"it has no ticket":                       {0, []HeadSample{front(5, 11, 20)}, 10},
		"it was seen to wait, then passed":       {7, []HeadSample{front(5, 5, 20), front(9, 21, 30), front(10, 31, 40)}, 21},
		"it was the front itself":                {7, []HeadSample{front(7, 12, 20), front(8, 22, 30)}, 22},
		"it was the last, then the list empty":   {7, []HeadSample{front(6, 12, 20), empty(7, 23), front(9, 40, 50)}, 23},
		"it was seen to wait, and not passed":    {7, []HeadSample{front(5, 5, 20)}, 60},
		"the front was seen before it came only": {7, []HeadSample{front(5, 5, 10), front(9, 21, 30)}, 10},
		"the list was empty before it came":      {7, []HeadSample{front(5, 5, 8), empty(6, 9), front(9, 21, 30)}, 10},
		"it was passed when nobody looked":       {7, []HeadSample{front(9, 21, 30)}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			fronts := HeadSamples{Noted: test.noted, At: at(60)}
			if got := fronts.TakenAt(&State{Ticket: test.ticket, StartedAt: at(10)}); !got.Equal(at(test.want)) {
				t.Errorf("want %s, got %s", at(test.want), got)
			}
		})
	}
}

func TestADeadlineThatWasSpentInLineIsMovedOnce(t *testing.T) {
	start := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	seen := func(minutes int) HeadSamples {
		return HeadSamples{At: start.Add(time.Hour), Noted: []HeadSample{
			{Ticket: 1, FirstSeen: start, LastSeen: start.Add(time.Minute)},
			{Ticket: 3, FirstSeen: start.Add(time.Duration(minutes) * time.Minute), LastSeen: start.Add(time.Hour)},
		}}
	}
	for name, test := range map[string]struct {
		change func(m *Model)
		taken  int // minutes after the start
		want   Event
	}{
		"taken in line": {func(*Model) {}, 8, EventTaken}, "taken at once": {func(*Model) {}, 0, EventTimeout},
		"begun":                      {func(m *Model) { m.ProcessingAt = start.Add(time.Minute) }, 8, EventTimeout},
		"moved before":               {func(m *Model) { m.TakenAt = start.Add(time.Minute) }, 8, EventTimeout},
		"no timeout":                 {func(m *Model) { m.Policy.Timeout = 0 }, 8, EventTimeout},
		"a queue timeout of its own": {func(m *Model) { m.Policy.QueueTimeout = time.Minute }, 8, EventQueueTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			m := Model{UID: "m", Policy: policy.Default()}
			m.State = m.Start(start, "a").Next
			m.Ticket = 2
			test.change(&m)
			now := start.Add(10 * time.Minute)
			decision := m.ExpireOrExtend(seen(test.taken), now)
			stopIf(t, decision.Event != test.want, "want %s, got %s", test.want, decision.Event)
			if next := decision.Next; test.want == EventTaken && (!next.DeadlineAt.Equal(start.Add(18*time.Minute)) || !next.TakenAt.Equal(start.Add(8*time.Minute)) || !next.EntryDeadlineAt.Equal(now)) {
				t.Errorf("want a deadline ten minutes after it was taken, got %+v", next)
			}
		})
	}
}

func TestTheRateIsThatOfTheLastMinuteSinceTheListWasEmpty(t *testing.T) {
	start := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	front := func(ticket, first int) HeadSample { return HeadSample{ticket, at(first), at(first)} }
	for name, test := range map[string]struct {
		noted []HeadSample
		want  float64
	}{
		"nothing was noted":           {nil, 0},
		"one front":                   {[]HeadSample{front(5, 90)}, 0},
		"two fronts":                  {[]HeadSample{front(5, 90), front(45, 95)}, 4},
		"the list was empty between":  {[]HeadSample{front(5, 80), {Ticket: 9, FirstSeen: at(85)}, front(10, 90), front(30, 95)}, 2},
		"older than a minute":         {[]HeadSample{front(1, 0), front(5, 60), front(45, 95)}, 1},
		"the front has not moved now": {[]HeadSample{front(5, 60), front(45, 61)}, 1},
	} {
		got := (HeadSamples{Noted: test.noted, At: at(100)}).Rate()
		failIf(t, got != test.want, "%s: want %g a second, got %g", name, test.want, got)
	}
}

// String renders a branch in one line: "06:00: #1, next 06:01: retry 1 of 6 after 1m".
func (b Branch) String() string {
	if !b.Possible() {
		return "-"
	}
	text := fmt.Sprintf("%s: #%d", clockText(b.At), b.AttemptNo)
	if b.Exhausted {
		text += " exhausted"
	}
	if b.Disabled {
		text += fmt.Sprintf(" disabled (%s)", b.Reason)
	}
	return text + fmt.Sprintf(", next %s: %s", clockText(b.RefreshAt), b.Why)
}

func TestAForecastTellsWhatThePolicyInForceWouldDecide(t *testing.T) {
	const byAge = `"policy":{"timeout":"1h","retries":{"by_age":["1h: 5m","2h: 20m"]}}`
	const skips = atSixAnd16 + `"policy":{"timeout":"1h","retries":["1m"],"misfire":"skip"}`
	const none = "-"
	for _, test := range []struct{ definition, steps, now, start, success, failure, lost, giveUp string }{
		// A waiting model is asked about its next attempt; one that never started has no age yet
		{daily, "", "02:00", "06:00", "06:00: #0, next 16:00: planned", "06:00: #1, next 06:00: retry 1 of 6 at once, ends before planned",
			"07:00: #1, next 07:00: retry 1 of 6 at once, ends before planned", none},
		{byAge, "", "05:00", "05:00", "05:00: #0, next never: finished: one-shot", "05:00: #1, next 05:05: retry 1 after 5m",
			"06:00: #1, next 06:05: retry 1 after 5m", none},
		{daily, "06:00 wake | 06:10 failure", "06:10", "06:10", "06:10: #0, next 16:00: planned", "06:10: #2, next 06:11: retry 2 of 6 after 1m, ends before planned",
			"07:10: #2, next 07:11: retry 2 of 6 after 1m, ends before planned", none},
		{daily, "06:00 wake | 06:10 failure | 06:10 wake", "06:30", "never", "06:30: #0, next 16:00: planned", "06:30: #2, next 06:31: retry 2 of 6 after 1m, ends before planned",
			"07:10: #2, next 07:11: retry 2 of 6 after 1m, ends before planned", none},
		// Nobody has noticed yet that its deadline passed
		{byAge, "00:00 wake", "01:30", "never", "01:30: #0, next never: finished: one-shot", "01:30: #1, next 01:50: retry 1 after 20m",
			"01:30: #1, next 01:50: retry 1 after 20m", none},
		// The last retry
		{`"policy":{"timeout":"1m","retries":[],"on_exhausted":"give_up"}`, "", "00:00", "00:00", "00:00: #0, next never: finished: one-shot",
			"00:00: #1 exhausted disabled (Cannot refresh after 1 attempt), next never: disabled after 1 failure, no retry left",
			"00:01: #1 exhausted disabled (Cannot refresh after 1 attempt: timeout), next never: disabled after 1 failure, no retry left", none},
		// The end of the give-up window comes before an attempt
		{anHour, "00:00 wake | 00:30 failure", "00:40", "never", none, none, none,
			"01:00: #1 disabled (Cannot refresh after 1 attempt: no success for 1h), next never: disabled, no success for 1h"},
		// What was missed is skipped
		{skips, "", "09:00", "16:00", "16:00: #0, next 06:00+1: planned", "16:00: #1, next 16:01: retry 1 of 1 after 1m, ends before planned",
			"17:00: #1, next 17:01: retry 1 of 1 after 1m, ends before planned", none},
		// A worker is taken to begin at once
		{queued, "", "00:00", "00:00", "00:00: #0, next never: finished: one-shot", "00:00: #1, next 00:01: retry 1 of 1 after 1m",
			"01:00: #1, next 01:01: retry 1 of 1 after 1m", none},
		{banner, "00:00 wake | 00:00:10 success", "00:01", "never", none, none, none, none},
		{daily, "00:00 disable", "00:01", "never", none, none, none, none},
	} {
		s := tell(t, test.definition, test.steps)
		before := s.m
		got := s.m.Forecast(clock(test.now))
		told := []string{clockText(got.StartAt), got.Success.String(), got.Failure.String(), got.TimedOut.String(), got.GiveUp.String()}
		diff := cmp.Diff([]string{test.start, test.success, test.failure, test.lost, test.giveUp}, told)
		failIf(t, diff != "", "%s (-want +got):\n%s", test.steps, diff)
		failIf(t, s.m.State != before.State || !s.m.Policy.Equal(before.Policy), "%s: to ask has changed the model to %+v", test.steps, s.m.State)
	}
}

// told is a branch without the attempt that it ends, which is another one each time.
func told(b Branch) Branch {
	b.Ended = nil
	return b
}

// Whatever the policy and whatever happened before: what a forecast says of a running attempt comes true.
func TestTheForecastOfARunningAttemptComesTrue(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := walk(t, r)
		for range rapid.IntRange(0, 8).Draw(r, "failures") {
			if w.idle(); !w.m.Due(w.now) {
				break
			}
			if w.do("wake", ""); w.m.Running() {
				w.do("failure", "")
			}
		}
		if w.idle(); !w.m.Due(w.now) {
			return
		}
		foretold := w.m.Forecast(w.now)
		before := w.m
		w.do("wake", "")
		if starts := !foretold.StartAt.IsZero() && foretold.StartAt.Equal(w.now); w.m.Running() != starts {
			r.Fatalf("a start is forecast: %v, %s", starts, w)
		}
		if !w.m.Running() {
			return
		}
		forecast := w.m.Forecast(w.now)
		end := rapid.SampledFrom([]string{"success", "failure", "timeout"}).Draw(r, "end")
		want := told(map[string]Branch{"success": forecast.Success, "failure": forecast.Failure, "timeout": forecast.TimedOut}[end])
		w.now = want.At
		w.do(end, "")
		if got := told(branch(w.now, w.decision)); got != want {
			r.Fatalf("%s: forecast %s, found %s", end, want, got)
		}
		if before.Policy.Jitter == 0 && end != "timeout" {
			if early := told(map[string]Branch{"success": foretold.Success, "failure": foretold.Failure}[end]); early != want {
				r.Fatalf("%s: forecast %s before the start, and %s after it", end, early, want)
			}
		}
	})
}
