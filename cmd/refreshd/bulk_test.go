package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// withPoller lets a poller serve the queue until the test ends.
func (c *console) withPoller(server *testkit.Server) *fixture.Queue {
	c.t.Helper()
	c.start("poller", "--tick", "20ms", "--lease", "1s")
	return fixture.Live(c.t, server)
}

// fleet saves models of two tenants, each with a far schedule.
func (c *console) fleet() {
	var text strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, "{\"uid\":\"m%02d\",\"rrule\":\"FREQ=YEARLY\",\"labels\":{\"tenant\":\"t%d\"}}\n", i, i%3)
	}
	c.put(text.String())
}

func TestOneCommandSteersAllModelsThatASelectorPicks(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		queue := c.withPoller(server)
		c.fleet()
		expectContains(t, c.do("model", "run", "-l", "tenant=t1", "--dry-run"), "10 models\nm01\nm04\n")
		trial := c.object("model", "rm", "-l", "", "--dry-run")
		failIf(t, trial["models"] != 30.0 || len(trial["examples"].([]any)) != 10, "expected thirty models and ten examples, found %v", trial)
		runs := queue.Stats()["run"]
		failIf(t, runs != 0, "expected a dry run to change nothing, found %d runs", runs)

		told := c.do("model", "run", "-l", "tenant=t1", "--by", "ann")
		expectContains(t, told, "run-", " done: 10 models seen, 10 picked, 10 done\n")
		_, _, stderr := c.run("model", "run", "-l", "tenant=t1,uid=m0*")
		expectContains(t, stderr, "of them now: 0 processing, 0 queued, 0 parked, 3 due\n")
		id, _, _ := strings.Cut(told, " ")
		expectContains(t, c.do("bulk", "ls"), "ID ", id, "done", "ann", "tenant=t1")
		expectContains(t, c.do("bulk", "show", id), "10 of about 10", "run", "done", "ann")
		expectContains(t, c.fail(exitFailed, "bulk", "cancel", id), "expected a bulk that is not over, found it done")

		c.do("model", "disable", "m00", "--reason", "not paid")
		counts := c.object("model", "run", "-l", "tenant=t0,uid=m0*")
		want := map[string]any{"stopped": 1.0}
		if counts["picked"] != 4.0 || counts["done"] != 3.0 || counts["refused"] != 1.0 || !cmp.Equal(counts["others"], any(want)) || counts["state"] != "done" {
			t.Errorf("expected three started and one refused, found %v", counts)
		}
		expectContains(t, c.do("model", "enable", "-l", "status=disabled"), "1 picked, 1 done")
		expectContains(t, c.do("model", "disable", "-l", "tenant=t2", "--rate", "500/s"), "10 picked, 10 done")
		expectContains(t, c.do("model", "rm", "-l", "status=disabled", "--yes"), "10 picked, 10 done")
		expectContains(t, c.do("model", "enable", "-l", "", "--yes"), "20 picked, 0 done, 20 unchanged")
	})
}

func TestABulkMayBeLeftAndCancelled(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		queue := c.withPoller(server)
		c.fleet()
		left := c.start("model", "run", "-l", "tenant=t1", "--rate", "1/m")
		queue.AwaitEvent("run", 1)
		left.stop()
		text := left.stderr.String()
		expectContains(t, text, "interrupted. The bulk goes on: refreshd bulk show run-")
		id := "run-" + strings.Fields(strings.SplitN(text, "run-", 2)[1])[0]
		expectContains(t, c.do("bulk", "show", id), "running", "1/m")
		expectContains(t, c.do("bulk", "cancel", id), id+" cancelled: ")
		expectContains(t, c.do("bulk", "ls"), id, "cancelled")
	})
}

func (c *console) pages(args ...string) (uids []string) {
	args = append([]string{"model", "ls", "-o", "json", "--limit", "7"}, args...)
	for line := args; ; {
		_, stdout, stderr := c.run(line...)
		for _, object := range c.objects(stdout) {
			uids = append(uids, object["uid"].(string))
		}
		_, cursor, more := strings.Cut(strings.TrimSpace(stderr), "--after ")
		if !more {
			return uids
		}
		line = append(slices.Clone(args), "--after", cursor)
	}
}

func TestAListIsReadPageByPageAndInOrder(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.fleet()
		queue := fixture.Live(t, server)
		var failing, due []string
		for i := range 30 { // of three each the instant is the same
			uid := fmt.Sprintf("m%02d", i)
			since := time.Date(2026, 11, 21, 7, 0, 29-i/3, 0, time.UTC)
			queue.Redis.HSet(t.Context(), queue.Store.Keys.Model(uid), "failing_since", since.Format(time.RFC3339))
			queue.Redis.ZAdd(t.Context(), queue.Store.Keys.Failing, redis.Z{Score: float64(since.UnixMilli()), Member: uid})
			queue.Redis.ZAdd(t.Context(), queue.Store.Keys.Due, redis.Z{Score: float64(since.UnixMilli() - int64(i)), Member: uid})
		}
		for i := 27; i >= 0; i -= 3 {
			failing = append(failing, fmt.Sprintf("m%02d", i), fmt.Sprintf("m%02d", i+1), fmt.Sprintf("m%02d", i+2))
		}
		for i := 29; i >= 0; i-- {
			due = append(due, fmt.Sprintf("m%02d", i))
		}
		if found := c.pages("--sort", "due"); !slices.Equal(found, due) {
			t.Errorf("expected them by their next start, found %v", found)
		}
		if found := c.pages("--sort", "failing"); !slices.Equal(found, failing) {
			t.Errorf("expected them by since when, found %v", found)
		}
		oneTenant := slices.DeleteFunc(slices.Clone(failing), func(uid string) bool { return (uid[1]+uid[2]-2*'0')%3 != 1 })
		if found := c.pages("--sort", "failing", "-l", "tenant=t1,status=failing"); !slices.Equal(found, oneTenant) {
			t.Errorf("expected the models of t1 by since when, found %v, want %v", found, oneTenant)
		}
		for _, args := range [][]string{nil, {"-l", "status=failing"}, {"--status", "failing"}, {"--prefix", "m"}} {
			found := c.pages(args...)
			if slices.Sort(found); !slices.Equal(found, slices.Sorted(slices.Values(due))) {
				t.Errorf("%v: expected each model once, found %v", args, found)
			}
		}
		if server.Mini == nil {
			return
		}
		queue.Redis.Del(t.Context(), queue.Store.Keys.Failing) // the first page of what fails does not walk all models
		queue.Redis.ZAdd(t.Context(), queue.Store.Keys.Failing, redis.Z{Score: 1, Member: "m07"})
		for _, args := range [][]string{{"-l", "status=failing"}, {"--sort", "failing"}} {
			before := server.Mini.CommandCount()
			found := c.pages(args...)
			failIf(t, !slices.Equal(found, []string{"m07"}) || server.Mini.CommandCount()-before > 40,
				"%v: expected m07 by a few commands, found %v by %d", args, found, server.Mini.CommandCount()-before)
		}
	})
}

func TestAListTellsWhyModelsFailOrAreDisabled(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		queue := c.withPoller(server)
		c.put("{\"uid\":\"a\",\"policy\":{\"retries\":[\"1h\"],\"on_exhausted\":\"give_up\"}}\n{\"uid\":\"b\"}\n")
		c.do("model", "disable", "b", "--reason", "Not paid")
		if _, err := queue.Redis.LPush(t.Context(), queue.Store.Keys.History("a"), `{"uid":"x","at":"2026-11-21T07:00:00Z","is":"failure","reason":"HTTP 503"}`,
			`{"uid":"y","at":"2026-11-21T08:00:00Z","is":"cancel","reason":"superseded"}`).Result(); err != nil {
			t.Fatal(err)
		}
		queue.Redis.HSet(t.Context(), queue.Store.Keys.Model("a"), "failing_since", "2026-11-21T07:00:00Z")
		expectContains(t, c.do("model", "ls"), "LAST REASON", "since 2026-11-21T07:00:00Z: HTTP 503\n", "Not paid")
	})
}

func TestModelsAreListed(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.env["REFRESHD_QUEUE"] = "{shop:1}"
		var text strings.Builder
		for i := range 450 {
			fmt.Fprintf(&text, "{\"uid\":\"tbl_%d\"}\n", i)
		}
		c.in = text.String() + "{\"uid\":\"a\"}\n{\"uid\":\"once\"}\n"
		c.do("model", "put", "-")
		c.do("model", "disable", "a", "--reason", "No feed")
		other := at(t, server)
		other.in = "uid: of-another-queue\n"
		other.do("model", "put", "-")

		list := func(args ...string) []string {
			t.Helper()
			var uids []string
			for _, object := range c.objects(c.do(append([]string{"model", "ls", "-o", "json"}, args...)...)) {
				uids = append(uids, fmt.Sprint(object["uid"]))
			}
			slices.Sort(uids)
			return uids
		}
		all := list()
		failIf(t, len(all) != 452 || len(slices.Compact(all)) != 452, "expected 452 models, each once, found %d", len(all))
		for name, test := range map[string]struct{ got, want []string }{
			"by status":                 {list("--status", "disabled"), []string{"a"}},
			"by prefix":                 {list("--prefix", "o"), []string{"once"}},
			"a prefix is no pattern":    {list("--prefix", "*"), nil},
			"nor a set of characters":   {list("--prefix", "[ao]"), nil},
			"by both":                   {list("--prefix", "o", "--status", "disabled"), nil},
			"in a queue with no models": {list("--queue", "shop"), nil},
		} {
			diff := cmp.Diff(test.want, test.got)
			failIf(t, diff != "", "%s: %s", name, diff)
		}
		if got := list("--limit", "250"); len(got) != 250 {
			t.Errorf("expected 250 models, found %d", len(got))
		}
		expectContains(t, c.do("model", "ls", "--status", "disabled"), "UID  ", "a  ", "disabled", "No feed")
	})
}
