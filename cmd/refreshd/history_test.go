package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func TestTheHistoryTellsHowAttemptsEndedAndWhatFollowed(t *testing.T) {
	s := failing(t)
	s.dispatch("08:00:00")
	s.answer("08:20:00", "started", "a", `"worker":"w"`)
	s.answer("08:30:00", "success", "a", `"changed":"true"`)
	expectContains(t, s.do("explain", "a", "--trace"), "success of attempt 3 at 09:30", "ignored changed")
	s.do("model", "run", "a")
	s.dispatch("08:40:00")
	s.do("model", "disable", "a", "--reason", "by\x1b[2J hand")
	history := s.objects(s.do("model", "history", "a", "-o", "json"))
	stopIf(t, len(history) != 5, "expected five attempts, found %v", history)
	fields := []string{"accepted", "attempt_no", "attempt_uid", "changed", "deadline_at", "delay_ms", "duration_ms", "ended_at", "error_type", "final", "ignored",
		"jitter_ms", "log_bytes", "log_url", "metrics", "outcome", "overlap", "planned_at", "reason", "refresh_at", "refresh_why", "retries_exhausted", "retry_at", "started_at", "suspect", "times", "unpublished", "wait_ms", "work_ms", "worker"}
	equal(t, fields, slices.Sorted(maps.Keys(history[0])))
	for i, want := range []map[string]any{
		{"outcome": "disable", "delay_ms": nil, "retry_at": nil, "refresh_at": nil, "refresh_why": "disabled by hand", "times": 1.0},
		{"outcome": "success", "ignored": []any{"changed"}, "wait_ms": 1_200_000.0, "work_ms": 600_000.0, "worker": "w", "overlap": "", "delay_ms": nil},
		// 08:01 and 10 minutes: the retry would run until 09:11, past the planned refresh at 09:00 in Berlin
		{"outcome": "timeout", "ignored": []any{}, "wait_ms": nil, "work_ms": nil, "deadline_at": "2026-01-05T07:01:00.000Z", "delay_ms": 600_000.0, "jitter_ms": 0.0,
			"retry_at": "2026-01-05T07:11:00.000Z", "planned_at": "2026-01-05T08:00:00.000Z", "overlap": "overlaps start", "refresh_at": "2026-01-05T08:00:00.000Z",
			"refresh_why": "retry 2 of 3 waits for planned, would overlap", "retries_exhausted": false},
	} {
		for field, value := range want {
			diff := cmp.Diff(value, history[i][field])
			failIf(t, diff != "", "%d, %s: %s", i, field, diff)
		}
	}
	expectContains(t, s.do("model", "history", "a"), "ENDED AT", "Initial", "Retry #1", "superseded: disabled by hand", "success  20m0s  10m0s", fmt.Sprintf("timeout  %-5s  1h0m0s", "-"))
}

func TestTheHistoryShowsWhatAnAttemptHasSaid(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("uid: a\nrrule: FREQ=HOURLY\npolicy: {retries: [1m]}\n")
	s.dispatch("06:00:00")
	expectContains(t, s.fail(2, "history", "a", "--log", "1"), "log: expected an attempt in the history of a, found none")
	s.answer("06:00:10", "failure", "a", `"log":"line 1\u001b[2J\nPASSWORD=hunter2\n"`)
	s.dispatch("06:01:10")
	s.answer("06:01:20", "success", "a", `"log_url":"https://ci.example.com/7"`)
	equal(t, "The log is at https://ci.example.com/7\n", s.do("history", "a", "--log", "1"))
	equal(t, "line 1\nPASSWORD=***\n", s.do("history", "a", "--log", "2"))
	expectContains(t, s.do("history", "a", "--log", "2", "-o", "json"), `"log": "line 1\nPASSWORD=***"`, `"outcome": "failure"`)
	expectContains(t, s.fail(2, "history", "a", "--log", "3"), "log: expected 1 to 2, for the attempts that the history of a has, found 3")
}

func TestTheHistoryIsDrawn(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("uid: a\nrrule: FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0\npolicy: {timeout: 1h, retries: [0, 30m], on_exhausted: give_up}\n")
	got := s.do("model", "history", "a", "-o", "json")
	failIf(t, got != "", "expected no attempts, found %s", got)
	expectContains(t, s.do("model", "history", "a", "-o", "svg"), "<svg ", ">a</text>")
	s.dispatch("06:00:00")
	s.answer("06:05:00", "failure", "a", `"reason":"HTTP <503>\u001b[2J"`)
	s.dispatch("06:05:00")
	expectContains(t, s.do("history", "a", "-o", "svg"), "Refresh from Mon 5 Jan 06:00:00 for 5m, failure: HTTP &lt;503&gt;", "Retry 1 from Mon 5 Jan 06:05:00, running")
	s.answer("06:15:00", "success", "a")
	expectContains(t, s.do("model", "history", "a", "-o", "svg"), "<svg ", "06:05", "Retry 1 from Mon 5 Jan 06:05:00 for 10m, success")

	s.put("uid: b\nrrule: FREQ=DAILY;BYHOUR=7;BYMINUTE=0;BYSECOND=0\npolicy: {timeout: 1h, retries: [], give_up_after: 3h}\n")
	s.dispatch("07:00:00")
	s.answer("07:05:00", "failure", "b")
	s.dispatch("10:00:00")
	expectContains(t, s.do("model", "history", "b", "-o", "svg"), "Refresh from Mon 5 Jan 07:00:00 for 5m, failure", ">Disabled</text>", ">10:00</text>")
}

func TestHistoryShowsHowTheTimeOfARetryCameAbout(t *testing.T) {
	six := time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)
	p, err := policy.Parse(map[string]any{"rrule": "FREQ=HOURLY", "timeout": "50m", "retries": []any{"20m"}, "on_exhausted": "give_up"})
	m := model.Model{UID: "a", State: model.State{RefreshAt: six}}
	stopIf(t, err != nil || m.Resolve(p, schedule.Parse) != nil, "%v", err)
	m.State = m.Start(six, "a1").Next
	failed := m.Fail(policy.Failure{Reason: "HTTP 503"}, six.Add(10*time.Minute))
	m.State = failed.Next
	m.State = m.Start(six.Add(time.Hour), "a2").Next
	exhausted := m.Fail(policy.Failure{}, six.Add(70*time.Minute))
	for name, test := range map[string]struct {
		attempt *model.Attempt
		want    string
	}{
		// 06:10 and 20 minutes: the retry would run until 07:20, past the planned refresh at 07:00
		"a retry": {failed.Ended, `"deadline_at":"2026-01-05T06:50:00.000Z","delay_ms":1200000,"jitter_ms":0,"retry_at":"2026-01-05T06:30:00.000Z",` +
			`"planned_at":"2026-01-05T07:00:00.000Z","overlap":"overlaps start","refresh_at":"2026-01-05T07:00:00.000Z",` +
			`"refresh_why":"retry 1 of 1 waits for planned, would overlap"`},
		"no retry": {exhausted.Ended, `"deadline_at":"2026-01-05T07:50:00.000Z","delay_ms":null,"jitter_ms":0,"retry_at":null,"planned_at":null,"overlap":"",` +
			`"refresh_at":null,"refresh_why":"disabled after 2 failures, no retry left"`},
	} {
		var shown strings.Builder
		must(t, print.JSONLine(&shown, operate.NewAttempts([]model.Attempt{*test.attempt})[0]))
		for field := range strings.SplitSeq(test.want+fmt.Sprintf(`,"retries_exhausted":%v`, name == "no retry"), `,"`) {
			failIf(t, !strings.Contains(shown.String(), strings.TrimPrefix(field, `"`)), "%s: expected %s in %s", name, field, shown.String())
		}
	}
}

func TestTheHistoryTellsTheWaitInLineFromTheWork(t *testing.T) {
	started := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	attempt := model.Attempt{AttemptUID: "a1", AttemptNo: 1, StartedAt: started, EndedAt: started.Add(time.Hour), Duration: time.Hour, Outcome: model.EventSuccess}
	for name, test := range map[string]struct {
		processing time.Time
		cells      []string
		wait, work *int64
	}{
		"its worker said that it began":  {started.Add(40 * time.Minute), []string{"success", "40m0s", "20m0s"}, new(int64(40 * 60_000)), new(int64(20 * 60_000))},
		"its worker said nothing":        {time.Time{}, []string{"success", "-", "1h0m0s"}, nil, nil},
		"the clock was set back by then": {started.Add(-time.Minute), []string{"success", "0s", "1h1m0s"}, new(int64(0)), new(int64(61 * 60_000))},
	} {
		t.Run(name, func(t *testing.T) {
			attempt := attempt
			attempt.ProcessingAt = test.processing
			var table strings.Builder
			must(t, (&app{stdout: &table, output: outputTable}).printAttempts([]model.Attempt{attempt}))
			if cells := strings.Join(strings.Fields(table.String()), " "); !strings.Contains(cells, strings.Join(test.cells, " ")) {
				t.Errorf("expected %q, found\n%s", test.cells, table.String())
			}
			view := operate.NewAttempts([]model.Attempt{attempt})[0]
			equal(t, []*int64{test.wait, test.work}, []*int64{view.WaitMS, view.WorkMS})
		})
	}
}
