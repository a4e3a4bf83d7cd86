package main

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestAMistypedVariableIsToldWithTheNearestAndHarmsNothing(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.env["REFRESHD_MAX_QUEUE"], c.env["REFRESHD_COLOUR"] = "5", "red"
	code, _, stderr := c.run("stats")
	if code != exitDone {
		t.Fatalf("expected exit code 0, found %d\n%s", code, stderr)
	}
	expectContains(t, stderr, `"variable":"REFRESHD_MAX_QUEUE","nearest":"REFRESHD_MAX_QUEUED"`, `"variable":"REFRESHD_COLOUR","time"`)
}

func TestWhatKubernetesAndWorkersPutIntoAnEnvironmentIsNoMistake(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for _, name := range strings.Fields(`SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTP PORT PORT_6379_TCP PORT_6379_TCP_ADDR PORT_6379_TCP_PROTO REDIS_SERVICE_HOST
		REDIS_PORT REDIS_PORT_6379_TCP UID ATTEMPT_UID ATTEMPT_NO DEADLINE_AT PLANNED_AT PAYLOAD_INPUT_URL LONG CONFIG MAX_QUEUED`) {
		c.env["REFRESHD_"+name] = ""
	}
	c.env["REFRESHD_PORT"] = "tcp://10.0.0.1:6379"
	for _, command := range [][]string{{"stats"}, {"up", "--redis", c.env["REDIS_URL"], "--for", "1ms", "--log-level", "warn"}} {
		if code, _, stderr := c.run(command...); code != exitDone || strings.Contains(stderr, "REFRESHD_") {
			t.Errorf("refreshd %s: expected no word of it, found %d %s", command, code, stderr)
		}
	}
}
