package main

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestDoctorReportsRepairsAndExits(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.put(`{"uid":"tbl","rrule":"FREQ=HOURLY"}`)
		expectContains(t, c.do("doctor"), "bigtables: 1 model, 0 errors, ")
		server.Client(t).ZRem(t.Context(), "bigtables:due", "tbl")
		server.Client(t).Set(t.Context(), "bigtables:payload:evil\x1b[2J", "{}", 0)
		for range 2 {
			code, stdout, stderr := c.run("doctor")
			failIf(t, code != exitFailed || stderr != "" || strings.Contains(stdout, "\x1b"),
				"expected exit code 1 and plain words, found %d %q %q", code, stdout, stderr)
			expectContains(t, stdout, "error    due-wrong          tbl\n         expected in the due set at its refresh_at ", "\n         found it is not there\n         --repair writes ")
		}
		expectContains(t, c.do("doctor", "--repair"), "mended   due-wrong          tbl\n", "1 model, 0 errors, ", ", 2 mended\n")
		report := c.object("doctor")
		failIf(t, report["errors"] != 0.0 || report["mended"] != 0.0 || report["complete"] != true || report["models"] != 1.0,
			"expected a healthy queue, found %v", report)
		_, list := report["findings"].([]any)
		failIf(t, !list, "expected a list of findings, found %v", report["findings"])
	})
}

func TestDoctorReportsSomeOfManyAndCountsTheRest(t *testing.T) {
	server := testkit.Miniredis(t)
	for _, uid := range []string{"a", "b", "c"} {
		server.Client(t).Set(t.Context(), "bigtables:payload:"+uid, "{}", 0)
	}
	code, stdout, _ := at(t, server).run("doctor", "--limit", "1")
	failIf(t, code != exitFailed || strings.Count(stdout, "payload-orphan ") != 1, "expected one told, found %d\n%s", code, stdout)
	expectContains(t, stdout, "and 2 more of payload-orphan\n", "3 errors")
}

func TestDaemonsWarnOfTheirRedisAndRefuseItWhenTheyAreStrict(t *testing.T) {
	for _, daemon := range []string{"dispatcher", "poller", "up"} {
		t.Run(daemon, func(t *testing.T) {
			t.Parallel()
			forgetful, durable := testkit.Redis(t), testkit.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
			lax := at(t, forgetful).start(daemon, "-o", "json")
			awaitLog(t, lax, `"level":"warn","code":"persistence"`)
			expectContains(t, at(t, forgetful).fail(exitFailed, daemon, "--strict"), "refreshd: --strict: persistence: expected yes, found no append-only file")
			expectContains(t, at(t, durable).fail(exitFailed, daemon, "--strict", "--redis", "redis://127.0.0.1:1"), "--strict: check redis: ")
			strict := at(t, durable).start(daemon, "-o", "json", "--strict")
			c, began := at(t, durable), map[string]model.Event{"dispatcher": "start", "poller": "create", "up": "create"}[daemon]
			if daemon == "dispatcher" {
				c.put("uid: a\n")
			} else {
				fixture.Live(t, durable).Command(`{"type":"put","uid":"a"}`)
			}
			fixture.Live(t, durable).AwaitEvent(began, 1)
			for _, daemon := range []*background{lax, strict} {
				daemon.ends(t)
			}
			text := strict.stderr.String()
			failIf(t, strings.Contains(text, `"warn"`), "expected no word about a durable Redis, found %s", text)
		})
	}
}

func TestTheDoctorFailsOnWarningsIfItIsStrict(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	c.do("doctor", "--strict")
	server.Client(t).RPush(t.Context(), "bigtables:wake", "1", "1")
	expectContains(t, c.do("doctor"), "0 errors, 1 warning, ")
	for _, output := range []string{outputTable, outputJSON} {
		code, stdout, _ := c.run("doctor", "--strict", "-o", output)
		failIf(t, code != exitFailed, "expected exit code 1, found %d\n%s", code, stdout)
	}
	expectContains(t, c.do("doctor", "--strict", "--repair"), "0 warnings, 1 mended")
}
