package main

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestAHoldIsListedUntilItIsReleased(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		expectContains(t, c.do("hold", "--id", "night", "--reason", "backup", "--for", "2h", "--by", "ann"), "night", "all", "backup", "ann")
		c.do("hold", "--id", "tenant", "-l", "tenant=t1", "--reason", "moves")
		if listed := c.do("hold", "ls"); strings.Count(listed, "\n") != 3 {
			t.Errorf("want a header and two holds, got\n%s", listed)
		}
		expectContains(t, c.fail(1, "hold", "--id", "night", "-l", "tenant=t2", "--reason", "x"), "selector: expected that of the hold night as it is")
		expectContains(t, c.do("release"), "released", "night")
		expectContains(t, c.fail(1, "release", "night"), "expected the id of a hold, found none of that name")
		c.do("hold", "--id", "feeds", "-l", "kind=feed", "--reason", "moves too")
		expectContains(t, c.fail(2, "release"), "expected the id of one of the holds tenant, feeds")
		c.do("release", "feeds")
		expectContains(t, c.do("release", "--within", "10m"), "tenant", "within 10m")
		expectContains(t, c.fail(1, "release"), "expected a hold, found none")
	})
}

func TestWrongUseOfAHoldSaysWhatWasExpected(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for want, args := range map[string][]string{
		"--reason: expected why":                                    {},
		"--until: expected it or --for, found both":                 {"--reason", "x", "--until", "2030-01-01T00:00:00Z", "--for", "2h"},
		"--until: expected an RFC 3339 time after":                  {"--reason", "x", "--until", "2020-01-01T00:00:00Z"},
		`--for: expected a length of time such as 2h, found "soon"`: {"--reason", "x", "--for", "soon"},
		"--within: expected 0s to 1d":                               {"--reason", "x", "--within", "3d"},
		"selector: expected status=failing, or no status":           {"--reason", "x", "-l", "status=due"},
		"id: expected 1-200 letters, digits or _.:@/+=~-":           {"--reason", "x", "--id", "a b"},
		`selector: expected terms such as "tenant=t1"`:              {"--reason", "x", "-l", "tenant"},
	} {
		expectContains(t, c.fail(2, append([]string{"hold"}, args...)...), want)
	}
}

func TestALimitIsSetListedAndForgotten(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		expectContains(t, c.do("limit", "set", "host=example.com", "--running", "1", "--rate", "6/m", "--for", "1h", "--by", "ann", "--reason", "slow"),
			"host=example.com", "1 running 6/m", "ann", "slow")
		c.do("limit", "set", "{label.tenant}", "--running", "50")
		views := c.objects(c.do("limit", "ls", "-o", "json"))
		if len(views) != 2 || views[0]["key"] != "host=example.com" || views[0]["most"] != 1.0 || views[1]["key"] != "{label.tenant}" {
			t.Errorf("the limits are %v", views)
		}
		c.do("limit", "rm", "host=example.com")
		expectContains(t, c.fail(1, "limit", "rm", "host=example.com"), "expected a limit that was set, found none of that name")
		for want, args := range map[string][]string{
			"key: expected a key such as host=example.com, or a template": {"example.com", "--running", "1"},
			"expected running or rate, or both, found neither":            {"host=a"},
			"--rate: expected a number from 1 to 1000000":                 {"host=a", "--rate", "often"},
		} {
			expectContains(t, c.fail(2, append([]string{"limit", "set"}, args...)...), want)
		}
	})
}

func TestACircuitIsOpenedAndClosedByHand(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		expectContains(t, c.do("circuit", "open", "host=example.com", "--by", "ann", "--probe", "1h", "--reason", "their\nproxy"), "host=example.com", "open", "by            ann\nreason        their proxy\n")
		expectContains(t, c.do("circuit", "ls"), "ann  their proxy\n")
		if views := c.objects(c.do("circuit", "ls", "-o", "json")); len(views) != 1 || views[0]["open"] != true || views[0]["opened"] != 1.0 || views[0]["reason"] != "their proxy" {
			t.Errorf("the circuits are %v", views)
		}
		c.do("circuit", "close", "host=example.com")
		expectContains(t, c.fail(1, "circuit", "close", "host=example.com"), "expected the key of an open circuit")
		for _, wrong := range []string{"example.com", "host=a b", "{host(input_url)}"} {
			expectContains(t, c.fail(2, "circuit", "open", wrong), "expected a key such as host=example.com")
		}
		c.do("circuit", "set", "queue", "--on")
		expectContains(t, c.do("circuit", "ls"), "queue", "closed")
		c.do("circuit", "close", "queue")
	})
}

func TestACalendarIsStoredListedAndForgotten(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.do("calendar", "put", file(t, "c.yaml", "name: nightly\nrrule: FREQ=DAILY;BYHOUR=2\nfor: 2h\n---\nname: new-year\nrrule: FREQ=YEARLY\nfor: 1d\n"))
		expectContains(t, c.do("calendar", "ls"), "nightly: closed ", "new-year: closed ")
		expectContains(t, c.fail(1, "calendar", "put", file(t, "bad.yaml", "name: x\nrrule: FREQ=DAILY\nfor: 2 fortnights\n")), "bad.yaml line 3: for: ")
		c.do("calendar", "rm", "nightly")
		expectContains(t, c.fail(1, "calendar", "rm", "nightly"), "expected the name of a calendar, found none of that name")
	})
}
