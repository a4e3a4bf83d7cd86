package main

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestAFleetMovesToAnotherRedisWhileDaemonsRunOnBothSides(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		old, here := at(t, testkit.Miniredis(t)), at(t, server)
		old.policy("name: nightly\ntimeout: 2h\nrrule: FREQ=YEARLY\n")
		old.put("uid: due\nlabels: {tenant: t1}\n---\nuid: planned\npolicy: nightly\n---\nuid: stopped\n")
		old.do("model", "disable", "stopped", "--reason", "has not paid")
		old.in = "name: new-year\nrrule: FREQ=YEARLY\nfor: 2h\n"
		old.do("calendar", "put", "-")
		old.do("limit", "set", "host=example.com", "--running", "4")
		lines := old.do("model", "export", "--state")

		here.do("queue", "create", "--parts", "1")
		here.start("dispatcher")
		here.start("poller")
		here.start("worker", "--exec", "true")
		here.in = lines
		told := here.do("model", "import", "-")
		expectContains(t, told, "3 models: 3 created, 0 replaced, 0 unchanged, 0 refused; 2 policies: 1 created, 0 replaced, 1 unchanged, 0 refused; "+
			"1 calendar: 1 created, 0 replaced, 0 unchanged, 0 refused; 1 limit: 1 created, 0 replaced, 0 unchanged, 0 refused; ", " models/s\n")
		q := fixture.Live(t, server)
		q.AwaitEvent(model.EventSuccess, 1)
		stats := q.Stats()
		failIf(t, stats["import"] != 3 || stats["start"] != 1 || stats["success"] != 1,
			"expected three imported and the due one started once, found %v", stats)
		moved := here.objects(here.do("model", "export", "--state", "-l", "uid!=due"))
		equal(t, old.objects(old.do("model", "export", "--state", "-l", "uid!=due")), moved)
		got := here.object("model", "get", "stopped")
		failIf(t, got["refresh_disabled_user_friendly_reason"] != "has not paid" || got["refresh_disabled_by"] != "hand",
			"expected a model that is disabled by hand, found %v", got)
		code, stdout, stderr := here.run("model", "import", "-", "-o", "json") // what was refreshed since is another model now
		failIf(t, code != exitFailed || !strings.Contains(stderr, "standard input line 5: uid: expected a model that is not stored yet"),
			"expected one refused, found code %d, %s", code, stderr)
		told = here.objects(stdout)[0]["error"].(string)
		expectContains(t, told, "standard input line 5: uid: ")
		equal(t, map[string]any{"created": 0.0, "replaced": 0.0, "unchanged": 2.0, "refused": 1.0}, here.objects(stdout)[1]["models"])
	})
}

func TestAModelThatCannotBeReadIsNamedByTheExportAndLeftOut(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.put("uid: a\n---\nuid: b\n---\nuid: c\n")
		client := server.Client(t)
		client.Del(t.Context(), "bigtables:model:b")
		client.LPush(t.Context(), "bigtables:model:b", "x")
		client.HSet(t.Context(), "bigtables:model:c", "refresh_at", "soon")
		code, stdout, stderr := c.run("model", "export", "--state")
		failIf(t, code != exitFailed || strings.Contains(stdout, `"uid":"b"`), "expected exit code 1 and no line of b, found %d and\n%s", code, stdout)
		expectContains(t, stdout, `"uid":"a"`, `"uid":"c"`)
		expectContains(t, stderr, "b: WRONGTYPE", `c: refresh_at: expected an RFC 3339 time, found "soon"`)
		expectContains(t, c.fail(exitUsage, "model", "export", "-l", "status=busy"), "status: expected one of")
		expectContains(t, c.fail(exitUsage, "model", "import"), "expected one file, or - for standard input, found 0")
	})
}

func TestOfManyBadLinesTheFirstOfEachKindAreToldAndTheOthersCounted(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	bad := strings.Repeat("no json\n", 2000) + strings.Repeat(`{"kind":"model","uid":"a b"}`+"\n", 30)
	for name, args := range map[string][]string{
		"model import": {"model", "import", file(t, "bad.jsonl", bad)},
		"model put":    {"model", "put", file(t, "bad.jsonl", bad)},
		"apply":        {"apply", "--owner", "ann", "-f", file(t, "bad.jsonl", bad)},
	} {
		code, _, stderr := c.run(args...)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		failIf(t, code != exitFailed || len(lines) != 2*(maxProblems+1), "%s: expected code 1 and 22 lines, found %d and\n%.3000s", name, code, stderr)
		expectContains(t, stderr, "bad.jsonl line 10: ", "bad.jsonl line 2001: ", "\nrefreshd: and 1990 more: expected a JSON object", "\nrefreshd: and 20 more: ")
	}
}

func TestHoweverManyKindsOfProblemsThereAreFewLinesTellOfThem(t *testing.T) {
	var stderr strings.Builder
	a := &app{stderr: &stderr, problems: map[string]int{}}
	for i := range 5000 {
		a.printProblem("", "problem "+strings.Repeat("y", i%110)+strings.Repeat("z", i/110))
	}
	a.printProblemCounts()
	failIf(t, strings.Count(stderr.String(), "\n") > 1100, "expected few lines, found\n%.3000s", stderr.String())
	expectContains(t, stderr.String(), " more: other problems\n")
}
