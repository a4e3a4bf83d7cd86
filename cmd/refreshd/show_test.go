package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestModelsAreListed(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.env["REFRESHD_QUEUE"] = "{shop:1}"
		var text strings.Builder
		for i := range 450 {
			fmt.Fprintf(&text, "{\"uid\":\"tbl_%d\"}\n", i)
		}
		c.in = text.String() + "{\"uid\":\"a\"}\n{\"uid\":\"once\"}\n"
		c.do("model", "put", "-")
		c.do("model", "disable", "a", "--reason", "No feed")
		other := at(t, server)
		other.in = "uid: of-another-queue\n"
		other.do("model", "put", "-")

		list := func(args ...string) []string {
			t.Helper()
			var uids []string
			for _, object := range c.objects(c.do(append([]string{"model", "ls", "-o", "json"}, args...)...)) {
				uids = append(uids, fmt.Sprint(object["uid"]))
			}
			slices.Sort(uids)
			return uids
		}
		if all := list(); len(all) != 452 || len(slices.Compact(all)) != 452 {
			t.Errorf("expected 452 models, each once, found %d", len(all))
		}
		for name, test := range map[string]struct{ got, want []string }{
			"by status":                 {list("--status", "disabled"), []string{"a"}},
			"by prefix":                 {list("--prefix", "o"), []string{"once"}},
			"a prefix is no pattern":    {list("--prefix", "*"), nil},
			"nor a set of characters":   {list("--prefix", "[ao]"), nil},
			"by both":                   {list("--prefix", "o", "--status", "disabled"), nil},
			"in a queue with no models": {list("--queue", "shop"), nil},
		} {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if got := list("--limit", "250"); len(got) != 250 {
			t.Errorf("expected 250 models, found %d", len(got))
		}
		expectContains(t, c.do("model", "ls", "--status", "disabled"), "UID  ", "a  ", "disabled", "No feed")
	})
}

func TestHistoryShowsHowTheTimeOfARetryCameAbout(t *testing.T) {
	six := time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)
	p, err := policy.Parse(map[string]any{"rrule": "FREQ=HOURLY", "timeout": "50m", "retries": []any{"20m"}, "on_exhausted": "give_up"})
	m := model.Model{UID: "a", State: model.State{RefreshAt: six}}
	if err != nil || m.Resolve(p, schedule.Parse) != nil {
		t.Fatal(err)
	}
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
			`"refresh_why":"retry 1/1 +20m, planned first: overlaps start"`},
		"no retry": {exhausted.Ended, `"deadline_at":"2026-01-05T07:50:00.000Z","delay_ms":null,"jitter_ms":0,"retry_at":null,"planned_at":null,"overlap":"",` +
			`"refresh_at":null,"refresh_why":"final: exhausted after 2"`},
	} {
		var shown strings.Builder
		if err := print.JSONLine(&shown, operate.NewAttempts([]model.Attempt{*test.attempt})[0]); err != nil {
			t.Error(err)
		}
		for field := range strings.SplitSeq(test.want+fmt.Sprintf(`,"retries_exhausted":%v`, name == "no retry"), `,"`) {
			if !strings.Contains(shown.String(), strings.TrimPrefix(field, `"`)) {
				t.Errorf("%s: expected %s in %s", name, field, shown.String())
			}
		}
	}
}

func TestHistoryShowsWhatEnded(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		c.in = "uid: a\n"
		c.do("model", "put", "-")
		if got := c.do("model", "history", "a", "-o", "json"); got != "" {
			t.Errorf("expected no attempts, found %s", got)
		}
		start(t, q)
		c.do("model", "disable", "a", "--reason", "by\x1b[2J hand")
		got := c.objects(c.do("model", "history", "a", "-o", "json"))
		if len(got) != 1 || got[0]["outcome"] != "disable" || got[0]["attempt_uid"] != "attempt-of-a" {
			t.Fatalf("expected the superseded attempt, found %v", got)
		}
		want := []string{"attempt_no", "attempt_uid", "changed", "deadline_at", "delay_ms", "duration_ms", "ended_at", "error_type", "final", "ignored",
			"jitter_ms", "outcome", "overlap", "planned_at", "reason", "refresh_at", "refresh_why", "retries_exhausted", "retry_at", "started_at", "times", "wait_ms", "work_ms", "worker"}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got[0]))); diff != "" {
			t.Error(diff)
		}
		expectContains(t, c.do("model", "history", "a"), "ENDED AT", "Initial", "disable", "superseded: disabled by hand")
	})
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
			if err := (&app{stdout: &table, output: outputTable}).printAttempts([]model.Attempt{attempt}); err != nil {
				t.Fatal(err)
			}
			if cells := strings.Join(strings.Fields(table.String()), " "); !strings.Contains(cells, strings.Join(test.cells, " ")) {
				t.Errorf("expected %q, found\n%s", test.cells, table.String())
			}
			view := operate.NewAttempts([]model.Attempt{attempt})[0]
			if diff := cmp.Diff([]*int64{test.wait, test.work}, []*int64{view.WaitMS, view.WorkMS}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTextsFromOutsideCannotSteerATerminal(t *testing.T) {
	server := testkit.Miniredis(t)
	c, q := at(t, server), fixture.Live(t, server)
	c.in = "uid: a\n"
	c.do("model", "put", "-")
	q.Redis.HSet(t.Context(), q.Store.Keys.Model("a"), "refresh_why", "x\x1b[2Jy\nz", "user_friendly_status", "\u202Ework")
	for _, command := range []string{"get a", "ls"} {
		if text := c.do(strings.Fields("model " + command)...); strings.ContainsAny(text, "\x1b\u202E") || strings.Contains(text, "y\nz") {
			t.Errorf("expected no control characters, found %q", text)
		}
	}
}

func TestAModelWithAFaultIsShown(t *testing.T) {
	server := testkit.Miniredis(t)
	c, q := at(t, server), fixture.Live(t, server)
	c.in = twoModels
	c.do("model", "put", "-")
	q.Redis.HSet(t.Context(), q.Store.Keys.Model("daily"), "rrule", "FREQ=NEVER", "rev", "x")
	q.Redis.Set(t.Context(), q.Store.Keys.Payload("daily"), "{", 0)
	q.Redis.Set(t.Context(), q.Store.Keys.Model("list"), "no hash", 0)
	got := c.object("model", "get", "daily")
	if fault := fmt.Sprint(got["fault"]); !strings.Contains(fault, "FREQ") || got["payload"] != nil {
		t.Errorf("expected the fault told and no payload, found %v", got)
	}
	expectContains(t, c.do("model", "get", "list"), "fault", "expected a hash, found a string")
	expectContains(t, c.do("model", "ls"), "daily", "list", "once")
	expectContains(t, c.fail(exitFailed, "model", "run", "list"), "bigtables:model:list holds a string, expected a hash")
}

func TestStatsCountsWhatTheQueueHolds(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		c.in = twoModels + "---\nuid: taken\n"
		c.do("model", "put", "-")
		c.do("model", "disable", "once")
		start(t, q)
		c.do("model", "run", "daily")
		c.do("model", "enable", "once")
		c.do("model", "disable", "daily")
		q.Say("{}", "{}", "{}")
		if _, err := q.Store.Claim(t.Context(), "me", 2, time.Minute); err != nil {
			t.Fatal(err)
		}
		q.Command("{}")
		got := c.object("stats")
		if _, err := time.Parse(time.RFC3339, fmt.Sprint(got["at"])); err != nil {
			t.Error(err)
		}
		living, _ := got["living"].(map[string]any)
		if pollers, _ := living["pollers"].([]any); len(pollers) != 1 { // that of the claim
			t.Errorf("expected a poller that lives, found %v", living)
		}
		delete(got, "at")
		delete(got, "living")
		want := map[string]any{
			"queue": "bigtables", "causes": 0.0, "failing": 0.0, "due": 1.0, "urgent": 0.0, "waiting": 0.0, "running": 1.0, "input": 1.0, "output": 1.0, "control": 1.0, "claimed": 2.0,
			"rejected": 0.0, "journal": 8.0, "outbox": 0.0,
			"total_retries": 0.0, "successful_retries": 0.0, "retried_cycles": 0.0, "retry_success_rate": nil, "replanning": []any{},
			"freshness": map[string]any{"watched": 0.0, "fresh": 0.0, "never": 0.0, "late": 0.0, "stale": 0.0, "share_fresh": nil},
			"findings": []any{
				map[string]any{"code": "dispatcher-missing", "text": "No dispatcher lives.", "command": "refreshd doctor"},
				map[string]any{"code": "disabled", "text": "1 model is disabled.", "command": "refreshd model ls -l status=disabled"},
			},
			"counters": map[string]any{"create": 3.0, "disable": 2.0, "enable": 1.0, "run": 1.0, "start": 1.0},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		expectContains(t, c.do("stats"), "claimed", "counted create", "3")
	})
}
