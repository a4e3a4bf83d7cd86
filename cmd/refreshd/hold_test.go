package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func TestAHoldIsListedUntilItIsReleased(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		expectContains(t, c.do("hold", "--id", "night", "--reason", "backup", "--for", "2h", "--by", "ann"), "night", "all", "backup", "ann")
		c.do("hold", "--id", "tenant", "-l", "tenant=t1", "--reason", "moves")
		listed := c.do("hold", "ls")
		failIf(t, strings.Count(listed, "\n") != 3, "want a header and two holds, got\n%s", listed)
		expectContains(t, c.fail(1, "hold", "--id", "night", "-l", "tenant=t2", "--reason", "x"), "selector: expected that of the hold night as it is")
		expectContains(t, c.do("release"), "released", "night")
		c.do("hold", "--id", "feeds", "-l", "kind=feed", "--reason", "moves too")
		expectContains(t, c.fail(2, "release"), "expected the id of one of the holds tenant, feeds")
		c.do("release", "feeds")
		expectContains(t, c.do("release", "--within", "10m"), "tenant", "within 10m")
	})
}

func TestALimitIsSetListedAndForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		expectContains(t, c.do("limit", "set", "host=example.com", "--running", "1", "--rate", "6/m", "--for", "1h", "--by", "ann", "--reason", "slow"),
			"host=example.com", "1 running 6/m", "ann", "slow")
		c.do("limit", "set", "{label.tenant}", "--running", "50")
		views := c.objects(c.do("limit", "ls", "-o", "json"))
		failIf(t, len(views) != 2 || views[0]["key"] != "host=example.com" || views[0]["most"] != 1.0 || views[1]["key"] != "{label.tenant}",
			"the limits are %v", views)
		c.do("limit", "rm", "host=example.com")
		left := c.do("limit", "ls")
		failIf(t, strings.Contains(left, "example.com"), "expected it forgotten, found %s", left)
	})
}

func TestAKeyThatAnAnswerHasClosedIsListedAndOpened(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		expectContains(t, c.fail(1, "limit", "open", "host=a"), "host=a: expected a key that an answer has closed, found none of that name")
		until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		slots := model.Slots{Free: until, Closed: until, By: "tbl_1 (http_429)"}
		must(t, server.Client(t).Set(t.Context(), "bigtables:rate:host=a", slots.String(), time.Hour).Err())
		expectContains(t, c.do("limit", "ls"), "CLOSED UNTIL", "tbl_1 (http_429)", until.UTC().Format("15:04:05"))
		views := c.objects(c.do("limit", "ls", "-o", "json"))
		failIf(t, len(views) != 1 || views[0]["closed_by"] != "tbl_1 (http_429)" || views[0]["closed_until"] != model.FormatTime(until), "the limits are %v", views)
		c.do("limit", "open", "host=a")
		views = c.objects(c.do("limit", "ls", "-o", "json"))
		failIf(t, len(views) > 0 && (views[0]["closed_by"] != "" || views[0]["closed_until"] != nil), "the limits are %v", views)
	})
}

func TestACircuitIsOpenedAndClosedByHand(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		expectContains(t, c.do("circuit", "open", "host=example.com", "--by", "ann", "--probe", "1h", "--reason", "their\nproxy"), "host=example.com", "open", "by            ann\nreason        their proxy\n")
		expectContains(t, c.do("circuit", "ls"), "ann  their proxy\n")
		views := c.objects(c.do("circuit", "ls", "-o", "json"))
		failIf(t, len(views) != 1 || views[0]["open"] != true || views[0]["opened"] != 1.0 || views[0]["reason"] != "their proxy",
			"the circuits are %v", views)
		c.do("circuit", "close", "host=example.com")
	})
}

func TestACircuitOfNoModelIsOpenedWithAHint(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.put(`{"uid":"a","payload":{"input_url":"https://a.example/x"},"policy":{"timeout":"1m","retries":[],"circuit":{"key":"{host(input_url)}","open_after":"2 of 2"}}}` + "\n" +
			`{"uid":"b","payload":{"input_url":"https://b.example/x"}}` + "\n")
		for key, want := range map[string]bool{"host=a.example": false, "host=b.example": true, "host=a.exmple": true, "queue": false} {
			if got := strings.Contains(c.whatTold("circuit", "open", key), "circuit="+key+" matches 0 models now"); got != want {
				t.Errorf("%s: a hint: got %t, want %t", key, got, want)
			}
		}
	})
}

func TestACalendarIsStoredListedAndForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.do("calendar", "put", file(t, "c.yaml", "name: nightly\nrrule: FREQ=DAILY;BYHOUR=2\nfor: 2h\n---\nname: new-year\nrrule: FREQ=YEARLY\nfor: 1d\n"))
		expectContains(t, c.do("calendar", "ls"), "nightly: closed ", "new-year: closed ")
		expectContains(t, c.fail(1, "calendar", "put", file(t, "bad.yaml", "name: x\nrrule: FREQ=DAILY\nfor: 2 fortnights\n")), "bad.yaml line 3: for: ")
		c.do("calendar", "rm", "nightly")
		left := c.do("calendar", "ls")
		failIf(t, strings.Contains(left, "nightly"), "expected it forgotten, found %s", left)
	})
}

func TestTheCircuitOfTheQueueIsOffUntilItIsSwitchedOnAndTurnedByHand(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		want := map[string]any{
			"key": "queue", "open": false, "opened_at": nil, "probe_at": nil, "probe": "", "recent": "", "opened": 0.0, "by": "", "reason": "", "parked": 0.0,
			"on": false, "share": 0.5, "window": "5m", "min": 20.0, "successes": 0.0, "failures": 0.0,
		}
		expect := func(step string, args ...string) {
			t.Helper()
			diff := cmp.Diff(want, c.object(append([]string{"circuit"}, args...)...))
			failIf(t, diff != "", "%s: -want +got\n%s", step, diff)
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
