package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/zones"
)

func TestStatsCountsWhatTheQueueHolds(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		c.put(twoModels + "---\nuid: taken\n")
		c.do("model", "disable", "once")
		start(t, q)
		c.do("model", "run", "daily")
		c.do("model", "enable", "once")
		c.do("model", "disable", "daily")
		q.Say("{}", "{}", "{}")
		must(t, check.Only(q.Store.Claim(t.Context(), "me", store.Holding{}, 2, time.Minute)))
		q.Command("{}")
		got := c.object("stats")
		must(t, check.Only(time.Parse(time.RFC3339, fmt.Sprint(got["at"]))))
		living, _ := got["living"].(map[string]any)
		if pollers, _ := living["pollers"].([]any); len(pollers) != 1 { // the one of the claim
			t.Errorf("expected a poller that lives, found %v", living)
		}
		delete(got, "at")
		delete(got, "living")
		want := map[string]any{
			"queue": "bigtables", "causes": 0.0, "failing": 0.0, "due": 1.0, "urgent": 0.0, "waiting": 0.0, "running": 1.0, "input": 1.0, "output": 1.0, "control": 1.0, "claimed": 2.0,
			"rejected": 0.0, "journal": 8.0, "outbox": 0.0, "zone_data": map[string]any{"release": zones.Own().Release, "source": zones.SourceOwn},
			"total_retries": 0.0, "successful_retries": 0.0, "retried_cycles": 0.0, "retry_success_rate": nil, "replanning": []any{},
			"freshness": map[string]any{"watched": 0.0, "fresh": 0.0, "never": 0.0, "late": 0.0, "stale": 0.0, "share_fresh": nil},
			"findings": []any{
				map[string]any{"code": "dispatcher-missing", "text": "No dispatcher is running.", "do": "Start one: until then no attempt starts.", "command": "refreshd doctor"},
				map[string]any{"code": "disabled", "text": "1 model is disabled.", "do": "Mend the cause, then save or enable what is disabled.", "command": "refreshd model ls -l status=disabled"},
			},
			"counters": map[string]any{"create": 3.0, "disable": 2.0, "enable": 1.0, "run": 1.0, "start": 1.0},
		}
		equal(t, want, got)
		expectContains(t, c.do("stats"), "claimed", "counted create", "3")
	})
}

// A cycle is saved when its last retry succeeds; the one that succeeds at once needed none.
func TestTheRetrySuccessRateIsTheShareOfCyclesThatARetrySaved(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	for _, uid := range []string{"well", "saved", "saved-late", "lost", "lost-too"} {
		s.put("uid: " + uid + "\npolicy: {timeout: 1h, retries: [0, 0], on_exhausted: give_up}\n")
	}
	for _, answers := range []map[string]string{
		{"well": "success", "saved": "failure", "saved-late": "failure", "lost": "failure", "lost-too": "failure"},
		{"saved": "success", "saved-late": "failure", "lost": "failure", "lost-too": "failure"},
		{"saved-late": "success", "lost": "failure", "lost-too": "failure"},
	} {
		s.dispatch("05:00:00")
		for uid, answer := range answers {
			s.answer("05:00:00", answer, uid)
		}
	}
	got, want := map[string]any{}, map[string]any{"total_retries": 7.0, "successful_retries": 2.0, "retried_cycles": 4.0, "retry_success_rate": 0.5}
	for name, value := range s.object("stats") {
		if _, asked := want[name]; asked {
			got[name] = value
		}
	}
	equal(t, want, got)
	expectContains(t, s.do("stats"), "retries", "7, 2 of 4 cycles that needed one were saved (50%)")
}

func TestAQueueInWhichNothingWasEverStoredIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.in = `{"uid":"a","payload":{}}`
		c.do("model", "put", "-") // where to begin is no question
		for _, command := range []string{"model ls", "stats", "doctor", "policy ls", "model get a", "explain a", "history a", "model run a"} {
			words := strings.Fields(command)
			if _, _, stderr := c.run(words...); strings.Contains(stderr, "nothing was ever stored") {
				t.Errorf("%s: expected no word of it, found %s", command, stderr)
			}
			_, stdout, stderr := c.run(append(words, "--queue", "bigtable")...)
			expectContains(t, stderr, "refreshd: queue bigtable: nothing was ever stored in it; others here: bigtables\n")
			failIf(t, strings.Contains(stdout, "nothing was"), "%s: expected it on stderr only, found %s", command, stdout)
		}
		server.Flush(t)
		_, _, stderr := c.run("stats")
		expectContains(t, stderr, "no other queue was found in this Redis")
	})
}
