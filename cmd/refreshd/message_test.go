package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// poll lets a poller handle what was said.
func poll(q *fixture.Queue) {
	p, err := poller.New(poller.RoomsOf(q.Store), poller.Config{Owner: "p1"})
	if err == nil {
		_, err = p.RunOnce(context.Background())
	}
	if err != nil {
		panic(err)
	}
}

func (c *console) ids(args ...string) (ids []string) {
	c.t.Helper()
	for _, object := range c.objects(c.do(append([]string{"rejected", "ls", "-o", "json"}, args...)...)) {
		ids = append(ids, fmt.Sprint(object["id"]))
	}
	return ids
}

func TestARejectedMessageIsListedAndHandledAgainOnceItsReasonIsMended(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		q.Command(`{"type":"run","uid":"late"}`)
		q.Say("gar\x1b[2Jbage", fixture.Result("dance", "late", "a1"))
		poll(q)
		expectContains(t, c.do("rejected", "ls"), "ID  ", "control", "late", "uid: expected a stored model", "gar [2Jbage")
		all, about := c.ids(), c.ids("--uid", "late")
		stopIf(t, len(all) != 3 || len(about) != 2, "expected three messages, two of them about late, found %v and %v", all, about)
		c.put("uid: late\nrrule: FREQ=YEARLY\n")
		expectContains(t, c.do("rejected", "requeue", about[1]), "1 message\n") // results precede commands
		poll(q)
		got := c.object("model", "get", "late")["refresh_why"]
		failIf(t, got != "run by hand", "expected the run that was rejected, found %v", got)
		left := c.ids()
		failIf(t, len(left) != 2, "expected two messages that are still rejected, found %v", left)
		expectContains(t, c.fail(exitFailed, "rejected", "requeue", about[1]), about[1]+": expected the ID of a rejected message, found none of that ID")
		expectContains(t, c.do("rejected", "drop", "--all"), "2 messages\n")
		left = c.ids()
		failIf(t, len(left) != 0, "expected none left, found %v", left)
	})
}

func TestRejectedMessagesAreGroupedByReasonAndAGroupIsRequeuedOrDropped(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		for i := range 3 {
			q.Command(fmt.Sprintf(`{"type":"run","uid":"late%d"}`, i))
		}
		q.Say(fixture.Result("dance", "a", "a1"), fixture.Result("dance", "b", "b2"), fixture.Result("success", "late0", "c3"))
		poll(q)
		var groups []string
		id := map[string]string{}
		for _, group := range c.objects(c.do("rejected", "groups", "-o", "json")) {
			text := fmt.Sprint(group["messages"], " ", group["source"], " ", group["queue"])
			groups = append(groups, text)
			id[text] = fmt.Sprint(group["id"])
			failIf(t, group["reason"] == "" || group["first_at"] == "" || group["last_at"] == "", "found %v", group)
		}
		equal(t, []string{"3 control bigtables", "2 output bigtables", "1 output bigtables"}, groups)
		expectContains(t, c.do("rejected", "groups"), "GROUP  ", "MESSAGES", "uid: expected a stored model", id["2 output bigtables"])
		expectContains(t, c.do("rejected", "drop", "--group", id["2 output bigtables"]), "2 messages\n")
		expectContains(t, c.fail(exitFailed, "rejected", "drop", "--group", id["2 output bigtables"]), "expected the ID of a group of messages, found none of that ID")
		c.put("uid: late0\nrrule: FREQ=YEARLY\n---\nuid: late1\nrrule: FREQ=YEARLY\n---\nuid: late2\nrrule: FREQ=YEARLY\n")
		expectContains(t, c.do("rejected", "requeue", "--group", id["3 control bigtables"]), "3 messages\n")
		poll(q)
		for i := range 3 {
			got := c.object("model", "get", fmt.Sprint("late", i))["refresh_why"]
			failIf(t, got != "run by hand", "expected the run that was rejected, found %v", got)
		}
		left := c.ids()
		failIf(t, len(left) != 1, "expected the one of the other group, found %v", left)
	})
}

func TestAModelTellsOfTheNewestRejectedMessageAboutIt(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		c.put("uid: a\nrrule: FREQ=YEARLY\n---\nuid: b\nrrule: FREQ=YEARLY\n")
		q.Say(fixture.Result("jump", "a", "a1"))
		poll(q)
		q.Say(fixture.Result("dance", "a", "a1"))
		poll(q)
		const told = `type: expected success, failure, user_friendly_status, started, postponed, interrupted, ready, found "dance"`
		expectContains(t, c.do("model", "get", "a"), "rejected   ", "a message of a worker was rejected at ", told)
		expectContains(t, c.do("explain", "a"), "A message of a worker was rejected at ", told)
		rejected, _ := c.object("model", "get", "a")["rejected"].(map[string]any)
		equal(t, []any{c.ids()[1], "output", told}, []any{rejected["id"], rejected["source"], rejected["reason"]})
		other := c.do("explain", "b")
		failIf(t, strings.Contains(other, "rejected"), "expected nothing about another model, found %s", other)
	})
}

func TestWhatCannotBeRequeuedIsToldAndTheRestGoes(t *testing.T) {
	server := testkit.Miniredis(t)
	c, q := at(t, server), fixture.Live(t, server)
	q.Say(strings.Repeat("x", 20<<10), "garbage")
	poll(q)
	expectContains(t, c.fail(exitFailed, "rejected", "requeue", "--all"), "raw: expected all 20480 bytes of the message, found only its beginning")
	if left, back := c.ids(), q.List(q.Store.Keys.Output); len(left) != 1 || len(back) != 1 || back[0] != "garbage" {
		t.Errorf("expected one left and one back, found %v and %q", left, back)
	}
	expectContains(t, c.do("__complete", "rejected", "drop", ""), c.ids()[0]+"\t")
}

func TestWhatCouldNotBeDeliveredIsListedRequeuedAndDropped(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		keys := q.Store.Keys
		for _, recipient := range []string{"ops", "owners ann@example.com", "owners bob@example.com"} {
			channel, _, _ := strings.Cut(recipient, " ")
			entry := `{"at":"2026-11-21T07:00:00.000Z","channel":"` + channel + `","recipient":"` + recipient + `","reason":"HTTP 503\u001b[2J","tries":15,"notices":["{\"event\":\"disabled\",\"uid\":\"m1\"}"]}`
			must(t, q.Redis.RPush(t.Context(), keys.Undelivered, entry).Err())
		}
		table := c.do("undelivered", "ls")
		expectContains(t, table, "RECIPIENT", "owners ann@example.com", "15", "HTTP 503 [2J")
		expectContains(t, c.do("undelivered", "ls", "-o", "json"), `"notices":[{"event":"disabled","uid":"m1"}]`, `"tries":15`)
		rows := strings.Split(strings.TrimSpace(table), "\n")
		id := strings.Fields(rows[2])[0]
		expectContains(t, c.do("undelivered", "requeue", id), "1 message\n")
		waits := q.List(keys.Notices("owners ann@example.com"))
		failIf(t, len(waits) != 1 || q.Scores(keys.Recipients("owners"))["owners ann@example.com"] == 0, "%v waits", waits)
		expectContains(t, c.do("undelivered", "drop", "--all"), "2 messages\n")
		left := q.List(keys.Undelivered)
		failIf(t, len(left) != 0, "%v are left", left)
	})
}

func TestANotifierNeedsAFileOfRoutesThatCanBeRead(t *testing.T) {
	path := file(t, "routes.yaml", "channels:\n  ops: {list: ops}\nroutes:\n- {events: [circuit], channels: [ops]}\n")
	expectContains(t, nowhere(t).fail(exitUsage, "notifier", "--routes", path), path+" line 4: routes[0].events: expected a list of circuit_closed")
	expectContains(t, nowhere(t).fail(exitUsage, "up", "--routes", path), path+" line 4")
}
