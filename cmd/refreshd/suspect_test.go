package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// onEachAndACluster is onEach, and long also with a cluster of three.
func onEachAndACluster(t *testing.T, test func(t *testing.T, c *console, server *testkit.Server)) {
	t.Helper()
	onEach(t, test)
	t.Run("cluster", func(t *testing.T) {
		long.Only(t)
		server := testkit.Cluster(t)
		c := at(t, server)
		c.env["REFRESHD_QUEUE"] = "{" + store.DefaultQueue + "}"
		test(t, c, server)
	})
}

func TestADoubtedResultWaitsInTheListUntilSomebodyAcceptsOrRejectsIt(t *testing.T) {
	onEachAndACluster(t, func(t *testing.T, c *console, server *testkit.Server) {
		queue := fixture.Live(t, server)
		dispatches := check.Got(dispatcher.New(dispatcher.RoomsOf(queue.Store), dispatcher.Config{}))(t)
		polls := check.Got(poller.New(poller.RoomsOf(queue.Store), poller.Config{Owner: "p1"}))(t)
		refresh := func(uid, metrics string) {
			t.Helper()
			must(t, check.Only(dispatches.RunOnce(t.Context())))
			for more := true; more; {
				_, more = queue.Take()
			}
			queue.Say(fixture.Result("success", uid, queue.Attempt(uid), `"metrics":`+metrics))
			must(t, check.Only(polls.RunOnce(t.Context())))
		}
		const reason = "rows 0: expected at least 1"
		for uid, on := range map[string]string{"accepted": "hold", "rejected": "hold", "failed": "fail", "told": "tell"} {
			c.put("uid: " + uid + "\nlabels: {on: " + on + "}\npayload: {n: 1}\npolicy: {timeout: 1m, retries: [1h], guard: [{rows: {min: 1}}], on_suspect: " + on + "}\n")
			refresh(uid, `{"rows":0,"bytes":9}`)
		}

		listed := c.do("suspect", "ls")
		expectContains(t, listed, "accepted ", "rejected ", "bytes 9, rows 0  "+reason)
		failIf(t, strings.Contains(listed, "failed") || strings.Contains(listed, "told"), "expected the held ones alone, found\n%s", listed)
		one := c.objects(c.do("suspect", "ls", "-l", "on=hold", "-o", "json"))
		failIf(t, len(one) != 2 || one[0]["reason"] != reason, "found %v", one)
		expectContains(t, c.do("stats"), "2 results wait for a verdict.", "refreshd suspect ls")
		expectContains(t, c.do("explain", "accepted"), "Waits for a verdict since", `Run "refreshd suspect accept accepted"`)
		expectContains(t, c.do("explain", "told"), "It counts, but is doubted.")
		expectContains(t, c.do("history", "failed"), "failure", reason)
		expectContains(t, c.do("history", "told"), "success", "doubted: "+reason+"; bytes 9, rows 0")

		c.do("suspect", "accept", "accepted", "--by", "ann")
		c.do("suspect", "reject", "rejected", "--by", "bob")
		failIf(t, len(c.objects(c.do("suspect", "ls", "-o", "json"))) != 0, "expected an empty list after both verdicts")
		expectContains(t, c.do("history", "accepted"), "success", "doubted: "+reason+", accepted")
		expectContains(t, c.do("history", "rejected"), "failure", reason)
		expectContains(t, c.do("explain", "accepted"), "Last success at")
		told := c.do("explain", "rejected")
		expectContains(t, told, "Failed once at", "Next retry")
		failIf(t, strings.Contains(told, "window"), "expected no window, as the policy has none, found\n%s", told)
		c.do("suspect", "accept", "told")
		expectContains(t, c.do("history", "told"), ", accepted")

		c.in = c.do("history", "accepted", "-o", "json")
		expectContains(t, c.do("simulate", "--policy", file(t, "p", "timeout: 1m\nguard: [{bytes: {max: 8}}]\n"), "--metrics", "-"), "bytes 9: expected at most 8", "1 of 1 refresh doubted (100.0%).")

		notices := map[string]bool{}
		for _, n := range check.Got(queue.Redis.XRange(t.Context(), queue.Store.Keys.Outbox, "-", "+").Result())(t) {
			notices[fmt.Sprint(n.Values["uid"], " ", n.Values["event"])] = true
		}
		equal(t, map[string]bool{"accepted suspect": true, "rejected suspect": true, "told suspect": true}, notices)
	})
}
