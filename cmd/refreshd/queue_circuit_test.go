package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestTheCircuitOfTheQueueIsOffUntilItIsSwitchedOnAndSet(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		want := map[string]any{
			"key": "queue", "open": false, "opened_at": nil, "probe_at": nil, "probe": "", "recent": "", "opened": 0.0, "by": "", "reason": "", "parked": 0.0,
			"on": false, "share": 0.5, "window": "5m", "min": 20.0, "successes": 0.0, "failures": 0.0,
		}
		expect := func(step string, args ...string) {
			t.Helper()
			if diff := cmp.Diff(want, c.object(append([]string{"circuit"}, args...)...)); diff != "" {
				t.Errorf("%s: -want +got\n%s", step, diff)
			}
		}
		expect("before", "show", "queue")
		want["on"], want["share"], want["window"] = true, 0.8, "10m"
		expect("set", "set", "queue", "--on", "--share", "80%", "--window", "10m")
		want["min"] = 5.0
		expect("what is not named stays", "set", "queue", "--min", "5")
		c.do("circuit", "close", "queue")
		expect("closed without being open", "show", "queue")
		expectContains(t, c.do("circuit", "ls"), "queue  closed")
		want["on"] = false
		expect("switched off", "set", "queue", "--off")
		expectContains(t, c.do("circuit", "show", "queue"), "state         off", "when 80% of at least 5 attempts within 10m fail")
		expectContains(t, c.do("circuit", "ls"), "queue  off")
	})
}

func TestTheCircuitOfTheQueueIsOpenedAndClosedByHand(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.do("circuit", "set", "queue", "--on", "--window", "1h")
		expectContains(t, c.do("circuit", "open", "queue", "--by", "ann"), "state         open since ", "by            ann", "next probe")
		expectContains(t, c.do("circuit", "ls"), "queue  open", "ann")
		expectContains(t, c.do("doctor"), "circuit-open")
		c.do("circuit", "close", "queue", "--by", "bob")
		expectContains(t, c.do("circuit", "show", "queue"), "state         closed", "times opened  1")
		c.do("circuit", "open", "queue")
		expectContains(t, c.do("circuit", "set", "queue", "--off"), "state         off")
	})
}

func TestACircuitOfTheQueueOutOfRangeIsWrongUsage(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for want, args := range map[string][]string{
		`--share: expected a share such as 50% or 0.5, found "half"`: {"queue", "--share", "half"},
		"--share: expected 5% to 100%, found 3":                      {"queue", "--share", "300%"},
		"--window: expected 10s to 1d, found 1s":                     {"queue", "--window", "1s"},
		"--min: expected 1 to 1000000 attempts, found -1":            {"queue", "--min", "-1"},
		"expected queue, as the circuits of other keys are set":      {"host=example.com", "--on"},
	} {
		expectContains(t, c.fail(2, append([]string{"circuit", "set"}, args...)...), want)
	}
}
