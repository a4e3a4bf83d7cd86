package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/ui/health"
)

// awaitStatus waits until a model of a queue has a status.
func (c *console) awaitStatus(queue, uid, want string) {
	c.t.Helper()
	check.Eventually(c.t, queue+" "+uid+" is "+want, func() bool {
		code, text, _ := c.run("model", "get", uid, "--queue", queue, "-o", "json")
		var model struct{ Status string }
		return code == exitDone && json.Unmarshal([]byte(text), &model) == nil && model.Status == want
	})
}

// save saves a model without a schedule.
func (c *console) save(queue, uid, payload string) {
	c.t.Helper()
	c.in = fmt.Sprintf(`{"uid":%q,"payload":%s}`, uid, payload)
	c.do("model", "put", "-", "--queue", queue)
}

func TestOneProcessOfEachDaemonServesSeveralQueuesAndTheirFilesAndRequestsDoNotMeet(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, dir := at(t, server), t.TempDir()
		asked := make(chan string, 2)
		service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked <- strings.Join(r.Header.Values("Refreshd-Queue"), ",") + " " + r.Header.Get("Refreshd-Uid") + " " + string(body)
		}))
		t.Cleanup(service.Close)
		feeds := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
		t.Cleanup(feeds.Close)
		by := at(t, server)
		by.env["REFRESHD_QUEUE"] = "a, {b}"
		daemons := map[string]*background{"dispatcher": c.start("dispatcher", "--queue", "a", "--queue", "{b}"), "poller": by.start("poller")}
		config := file(t, "refreshd.yaml", "queue: a,{b}\n")
		for i, test := range []struct {
			flags []string
			came  func(queue string) string
			want  string // of queue a
		}{
			{[]string{"--exec", "sh", "--", "-c", `cat > "$0/$REFRESHD_QUEUE-$REFRESHD_UID"`, dir}, func(queue string) string { return readFile(t, filepath.Join(dir, queue+"-same")) },
				`{"input_url":"` + feeds.URL + `/a"}`},
			{[]string{"--http", service.URL, "--http-header", "Refreshd-Queue: forged"}, func(string) string { return check.Await(t, asked, "a request of the worker") },
				`a same {"input_url":"` + feeds.URL + `/a"}`},
			{[]string{"--fetch", dir, "--allow-private"}, func(queue string) string { return readFile(t, filepath.Join(dir, queue, "same")) }, "/a"},
		} {
			daemons["worker"] = c.start(append([]string{"worker", "--config", config, "--grace", "0"}, test.flags...)...)
			for _, queue := range []string{"a", "{b}"} {
				c.save(queue, "same", `{"input_url":"`+feeds.URL+"/"+queue+`"}`)
				if i > 0 {
					c.do("model", "run", "same", "--queue", queue)
				}
				c.awaitStatus(queue, "same", "finished")
				want := test.want
				if queue != "a" {
					want = strings.NewReplacer("a same", queue+" same", "/a", "/"+queue).Replace(want)
				}
				got := strings.TrimSpace(test.came(queue))
				failIf(t, got != want, "%v: expected %s, found %s", test.flags, want, got)
			}
			daemons["worker"].ends(t)
		}
		for name, daemon := range daemons {
			daemon.ends(t)
			expectContains(t, daemon.stderr.String(), `"queue":"a,{b}"`, `"queue":"a","part":"`+name, `"queue":"{b}","part":"`+name)
		}
	})
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	failIf(t, err != nil, "%v", err)
	return string(text)
}

// TestAFaultOfOneQueueStopsNoOther gives one process three queues: a is well, b has keys of another type, and its user may not read c.
func TestAFaultOfOneQueueStopsNoOther(t *testing.T) {
	t.Parallel()
	server, address := testkit.Redis(t), testkit.FreeAddress(t)
	redis, admin, c := server.Client(t), at(t, server), at(t, server)
	allow := func(rules ...any) {
		t.Helper()
		must(t, redis.Do(t.Context(), append([]any{"ACL", "SETUSER", "half", "on", ">secret"}, rules...)...).Err())
	}
	allow("+@all", "~a*", "~b*", "~{a}*", "~{b}*")
	admin.save("c", "m", `{}`)
	redis.Set(t.Context(), "b:due", "broken", 0)
	service := newService(t)
	close(service.release)
	up := c.start("up", "-o", "json", "--redis", "redis://half:secret@"+server.Addr, "--queue", "a,b,c", "--http", service.URL, "--health", address, "--backoff", "10ms", "--dashboard", "off")
	admin.save("a", "m", `{}`)
	admin.awaitStatus("a", "m", "finished")

	check.Eventually(t, "the loops of a are ready", func() bool { // the round that has finished m may not be over yet
		code, told, why := admin.run("health", address, "-o", "json")
		var report health.Report
		err := json.Unmarshal([]byte(told), &report)
		stopIf(t, err != nil || code != exitFailed, "expected a process that is not ready, found %d, %v, %s", code, err, told)
		expectContains(t, why, "dispatcher b: ", "opening c: ")
		return !slices.ContainsFunc(report.Loops, func(loop health.State) bool { return strings.HasSuffix(loop.Loop, " a") && !loop.Ready })
	})
	admin.do("health", address+"/livez") // the others would pay for a restart

	redis.Del(t.Context(), "b:due")
	admin.save("b", "m", `{}`)
	admin.awaitStatus("b", "m", "finished")
	allow("~c*", "~{c}*")
	admin.awaitStatus("c", "m", "finished")
	admin.do("health", address)
	up.ends(t)
	expectContains(t, up.stderr.String(), "NOPERM", "WRONGTYPE")
}

func TestDaemonsOfSeveralQueuesEndTogetherWithinTheGrace(t *testing.T) {
	t.Parallel()
	server, service := testkit.Redis(t), newService(t) // which never answers
	c := at(t, server)
	c.save("a", "m", `{}`)
	c.save("b", "m", `{}`)
	up := c.start("up", "-o", "json", "--queue", "a,b", "--http", service.URL, "--grace", "1h")
	check.Await(t, service.asked, "a request of the worker")
	check.Await(t, service.asked, "a request of the worker")
	up.cancel()
	awaitLog(t, up, `"queue":"a","part":"dispatcher","time"`)
	awaitLog(t, up, `"queue":"b","part":"dispatcher","time"`)
	close(service.release) // one grace is the time of both
	up.ends(t)
	for _, queue := range []string{"a", "b"} {
		c.awaitStatus(queue, "m", "finished")
	}
}

func TestACommandAboutOneQueueRefusesSeveral(t *testing.T) {
	c := &console{t: t, env: map[string]string{"REFRESHD_QUEUE": "a,b"}}
	for _, command := range []string{"model ls", "stats", "doctor", "queue show", "acl", "demo", "bench", "queue create --parts 2", "up --models x"} {
		expectContains(t, c.fail(exitUsage, line(command)...), "--queue", "expected one ", "found a,b")
	}
	c.do("version") // which asks no queue
}

func TestOneDashboardShowsEveryQueueOfItsProcess(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.save("a", "of-a", `{}`)
		c.save("b", "of-b", `{}`)
		for _, command := range []string{"dashboard --listen 127.0.0.1:0", "up -o json --dashboard " + testkit.FreeAddress(t)} {
			served := c.start(append(strings.Fields(command), "--queue", "b", "--queue", "a")...)
			address := served.dashboardOf(t)
			check.Eventually(t, command+": a and b", func() bool { return strings.Contains(read(t, address), `aria-label="Queues"`) })
			for queue, other := range map[string]string{"a": "b", "b": "a"} {
				page := read(t, address+"q/"+queue+"/models")
				expectContains(t, page, `uid=of-`+queue+`"`, `<a href="/q/`+queue+`/" aria-current="true">`, `<a href="/q/`+other+`/">`)
				failIf(t, strings.Contains(page, "of-"+other), "%s: expected the models of %s alone, found\n%s", command, queue, page)
			}
			served.ends(t)
			n := strings.Count(served.stderr.String(), "the dashboard is served")
			failIf(t, n != 1, "%s: expected one dashboard, found %d", command, n)
		}
	})
}

func TestNoCommandAndNoDaemonTouchesAQueueOfANewerLayout(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, redis := at(t, server), server.Client(t)
		c.in = `{"uid":"m","payload":{},"rrule":"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29"}` // not due meanwhile
		c.do("model", "put", "-")
		expectContains(t, c.do("doctor"), "layout 1 of the keys, of 2 that this binary knows\n")
		report := c.object("doctor")
		failIf(t, report["layout"] != 1.0, "expected layout 1, found %v", report)
		redis.HSet(t.Context(), "{bigtables}:settings", "layout", 3)
		before := server.Dump(t)
		c.in = `{"uid":"n","payload":{}}`
		for _, command := range [][]string{
			{"dispatcher"}, {"poller"}, {"worker", "--http", "http://127.0.0.1:1"}, {"up"}, {"model", "put", "-"}, {"model", "run", "m"}, {"doctor", "--repair"}, {"stats"},
		} {
			expectContains(t, c.fail(exitUsage, command...), "{bigtables}:settings layout: expected at most 2, found 3: a newer release stores this queue; upgrade this binary")
		}
		equal(t, before, server.Dump(t))
		for _, queue := range []string{"a", "b"} { // the first that fails ends the other
			redis.HSet(t.Context(), "{"+queue+"}:settings", "parts", "many")
		}
		expectContains(t, c.fail(exitUsage, "dispatcher", "--queue", "a,b", "--strict"), "}:settings parts: expected 1 to 1024")
		// Beside a queue that it may serve, it waits for somebody to mend this one.
		up := c.start("up", "-o", "json", "--queue", "bigtables,other")
		awaitLog(t, up, `"message":"queue: opening failed"`)
		c.save("other", "m", `{}`)
		c.awaitStatus("other", "m", "queued")
	})
}
