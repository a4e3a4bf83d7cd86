package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// whatTold runs a command that must end well, and returns what it prints on both streams.
func (c *console) whatTold(args ...string) string {
	c.t.Helper()
	code, stdout, stderr := c.run(args...)
	stopIf(c.t, code != exitDone, "%q: expected exit code 0, found %d\n%s", args, code, stderr)
	return stdout + stderr
}

func TestASelectorThatPicksNothingSaysSoWithTheNearestLabel(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.withPoller(server)
		c.fleet()
		for selector, near := range map[string]string{
			"tennant=t1": "; did you mean tenant?", "tenant=t11": "; did you mean tenant=t1?", "tenant=acme": "", "uid=x*": "",
		} {
			want := selector + " matches 0 models now" + near + "\n"
			for _, command := range []string{"model ls", "model run --dry-run", "model run", "hold --reason x"} {
				expectContains(t, c.whatTold(append(strings.Fields(command), "-l", selector)...), want)
			}
		}
		refused := c.fail(exitUsage, "hold", "--reason", "x", "-l", "waits=limit")
		failIf(t, !strings.Contains(refused, "selector: expected no waits") || strings.Contains(refused, "matches 0"), "expected a refusal alone, found\n%s", refused)
		expectContains(t, c.whatTold("model", "ls", "-l", "waits=hold"), "waits=hold matches 0 models now\n")
		for _, command := range []string{"model ls -l tenant=t1", "model ls --status failing -l tenant=t1", "model run -l tenant=t1", "hold --reason x -l tenant=t2", "model ls --status failing", "hold --reason x"} {
			told := c.whatTold(strings.Fields(command)...)
			failIf(t, strings.Contains(told, "matches 0"), "%s: expected no hint, found\n%s", command, told)
		}
	})
}

func TestNothingIsDoneToMoreModelsThanExpected(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		queue := c.withPoller(server)
		c.fleet()
		for _, command := range []string{"model run", "model disable", "model rm --yes", "hold --reason x"} {
			few := append(strings.Fields(command), "-l", "tenant=t1", "--expect", "9")
			expectContains(t, c.fail(exitUsage, few...), "selector: expected 9 models, found 10 models")
		}
		expectContains(t, c.fail(exitUsage, "hold", "--reason", "x", "-l", "tennant=t1", "--expect", "10"), "found tennant=t1 matches 0 models now; did you mean tenant?")
		expectContains(t, c.fail(exitUsage, "model", "run", "m00", "--expect", "1"), "--expect: expected -l with it")
		stats, holds := queue.Stats(), c.do("hold", "ls", "-o", "json")
		failIf(t, stats["run"]+stats["disable"]+stats["remove"] != 0 || holds != "", "expected nothing done, found %v, holds %q", stats, holds)
		expectContains(t, c.do("model", "run", "-l", "tenant=t1", "--expect", "10"), "10 picked, 10 done")
		c.do("hold", "--reason", "x", "-l", "tenant=t1", "--expect", "10")
	})
}

func TestModelsArePickedByTheKeyThatThePagesShow(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.put(`{"uid":"a","payload":{"input_url":"https://one.example/feed.csv"}}
{"uid":"b","payload":{"input_url":"https://two.example/feed.csv"}}
{"uid":"c","payload":{"feed":"https://one.example/feed.csv"},"policy":{"timeout":"1m","retries":[],"limits":[{"key":"{host(feed)}","running":1}]}}
`)
		got := c.pages("-l", "key=host=one.example")
		slices.Sort(got)
		if want := []string{"a", "c"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for key, want := range map[string]string{"host=one.example": "", "host=on.example": "key=host=on.example matches 0 models now\n", "{host(feed)}": ""} {
			told := c.whatTold("limit", "set", key, "--running", "1")
			failIf(t, strings.Contains(told, "matches 0") != (want != "") || !strings.Contains(told, want), "%s: expected %q, found\n%s", key, want, told)
		}
		c.do("hold", "--reason", "their proxy", "-l", "key=host=one.example", "--expect", "2")
		if got := c.pages("-l", "host=one.example"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("by the host of the input_url: got %v, want a", got)
		}
		expectContains(t, c.whatTold("model", "ls", "-l", "host=one.exampel"), "matches 0 models now; did you mean host=one.example?")
	})
}
