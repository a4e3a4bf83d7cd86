package main

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestDoctorTellsMendsAndExits(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = `{"uid":"tbl","rrule":"FREQ=HOURLY"}`
		c.do("model", "put", "-")
		expectContains(t, c.do("doctor"), "bigtables: 1 models, 0 errors, ")
		server.Client(t).ZRem(t.Context(), "bigtables:due", "tbl")
		server.Client(t).Set(t.Context(), "bigtables:payload:evil\x1b[2J", "{}", 0)
		for range 2 {
			code, stdout, stderr := c.run("doctor")
			if code != exitFailed || stderr != "" || strings.Contains(stdout, "\x1b") {
				t.Errorf("expected exit code 1 and plain words, found %d %q %q", code, stdout, stderr)
			}
			expectContains(t, stdout, "error    due-wrong          tbl\n         expected in the due set at its refresh_at ", "\n         found it is not there\n         --repair writes ")
		}
		expectContains(t, c.do("doctor", "--repair"), "mended   due-wrong          tbl\n", "1 models, 0 errors, ", ", 2 mended\n")
		report := c.object("doctor")
		if report["errors"] != 0.0 || report["mended"] != 0.0 || report["complete"] != true || report["models"] != 1.0 {
			t.Errorf("expected a healthy queue, found %v", report)
		}
		if _, list := report["findings"].([]any); !list {
			t.Errorf("expected a list of findings, found %v", report["findings"])
		}
	})
}

func TestDoctorTellsSomeOfManyAndCountsTheRest(t *testing.T) {
	server := testkit.Miniredis(t)
	for _, uid := range []string{"a", "b", "c"} {
		server.Client(t).Set(t.Context(), "bigtables:payload:"+uid, "{}", 0)
	}
	code, stdout, _ := at(t, server).run("doctor", "--limit", "1")
	if code != exitFailed || strings.Count(stdout, "payload-orphan ") != 1 {
		t.Errorf("expected one told, found %d\n%s", code, stdout)
	}
	expectContains(t, stdout, "and 2 more of payload-orphan\n", "3 errors")
	at(t, server).fail(exitUsage, "doctor", "--limit", "0")
	at(t, server).fail(exitUsage, "doctor", "extra")
	expectContains(t, at(t, server).fail(exitFailed, "doctor", "--redis", "redis://127.0.0.1:1"), "reach redis")
}

func TestDaemonsWarnOfTheirRedisAndRefuseItWhenTheyAreStrict(t *testing.T) {
	forgetful, lasting := testkit.Redis(t), testkit.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	for _, daemon := range []string{"dispatcher", "poller", "up"} {
		code, _, stderr := at(t, forgetful).run(daemon, "--for", "200ms")
		if code != exitDone || !strings.Contains(stderr, `"level":"warn","code":"persistence"`) {
			t.Errorf("%s: expected a warning, found %d %s", daemon, code, stderr)
		}
		expectContains(t, at(t, forgetful).fail(exitFailed, daemon, "--for", "200ms", "--strict"), "refreshd: --strict: persistence: expected yes, found neither")
		if code, _, stderr := at(t, lasting).run(daemon, "--for", "200ms", "--strict"); code != exitDone || strings.Contains(stderr, `"warn"`) {
			t.Errorf("%s: expected no word about a lasting Redis, found %d %s", daemon, code, stderr)
		}
		expectContains(t, at(t, lasting).fail(exitFailed, daemon, "--strict", "--for", "1s", "--redis", "redis://127.0.0.1:1"), "--strict: check redis: ")
	}
}
