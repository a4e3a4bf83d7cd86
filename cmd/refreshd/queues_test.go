package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/faces/health"
	"github.com/refreshd/refreshd/internal/testkit"
)

// awaitStatus waits until a model of a queue has a status.
func (c *console) awaitStatus(queue, uid, want string) {
	c.t.Helper()
	testkit.Eventually(c.t, queue+" "+uid+" is "+want, func() bool {
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

func TestOneProcessOfEachDaemonServesSeveralQueues(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c, dir := at(t, server), t.TempDir()
		dispatcher := c.start("dispatcher", "--queue", "a", "--queue", "b")
		by := at(t, server)
		by.env["REFRESHD_QUEUE"] = "a, b"
		poller := by.start("poller")
		worker := c.start("worker", "--config", file(t, "refreshd.yaml", "queue: a,b\n"), "--exec", "sh", "--",
			"-c", `cat > "$0/$REFRESHD_QUEUE-$REFRESHD_UID"`, dir)
		for _, queue := range []string{"a", "b"} {
			c.save(queue, "same", `{"of":"`+queue+`"}`)
		}
		for _, queue := range []string{"a", "b"} {
			c.awaitStatus(queue, "same", "finished")
			if got, err := os.ReadFile(filepath.Join(dir, queue+"-same")); strings.TrimSpace(string(got)) != `{"of":"`+queue+`"}` {
				t.Errorf("expected the payload of the model of %s, found %s, %v", queue, got, err)
			}
		}
		for name, daemon := range map[string]*background{"dispatcher": dispatcher, "poller": poller, "worker": worker} {
			if code := daemon.stop(); code != exitDone {
				t.Errorf("%s: expected exit code 0, found %d\n%s", name, code, daemon.stderr)
			}
			expectContains(t, daemon.stderr.String(), `"queue":"a,b"`, `"queue":"a","part":"`+name, `"queue":"b","part":"`+name)
		}
	})
}

func TestFilesOfSeveralQueuesDoNotMeet(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		feeds := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
		t.Cleanup(feeds.Close)
		c, dir := at(t, server), t.TempDir()
		up := c.start("up", "--queue", "a,{b}", "--fetch", dir, "--allow-private")
		for _, queue := range []string{"a", "{b}"} {
			c.save(queue, "same", `{"input_url":"`+feeds.URL+"/"+queue+`"}`)
			c.awaitStatus(queue, "same", "finished")
			if got, err := os.ReadFile(filepath.Join(dir, queue, "same")); string(got) != "/"+queue {
				t.Errorf("expected the feed of %s, found %s, %v", queue, got, err)
			}
		}
		if code := up.stop(); code != exitDone {
			t.Errorf("expected exit code 0, found %d\n%s", code, up.stderr)
		}
	})
}

func TestAServiceIsToldWhichOfSeveralQueuesAsks(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		asked := make(chan string, 2)
		service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked <- strings.Join(r.Header.Values("Refreshd-Queue"), ",") + " " + r.Header.Get("Refreshd-Uid") + " " + string(body)
		}))
		t.Cleanup(service.Close)
		c := at(t, server)
		up := c.start("up", "--queue", "a,b", "--http", service.URL, "--http-header", "Refreshd-Queue: forged", "--dashboard", "off")
		for _, queue := range []string{"a", "b"} {
			c.save(queue, "same", `{"of":"`+queue+`"}`)
			c.awaitStatus(queue, "same", "finished")
			if got, want := testkit.Await(t, asked, "a request of the worker"), queue+` same {"of":"`+queue+`"}`; got != want {
				t.Errorf("expected %s, found %s", want, got)
			}
		}
		if code := up.stop(); code != exitDone {
			t.Errorf("expected exit code 0, found %d\n%s", code, up.stderr)
		}
	})
}

// TestAFaultOfOneQueueStopsNoOther gives one process three queues: a is well, b has keys of another type, and its user may not read c.
func TestAFaultOfOneQueueStopsNoOther(t *testing.T) {
	t.Parallel()
	server, address := testkit.Redis(t), testkit.FreeAddress(t)
	redis, admin, c := server.Client(t), at(t, server), at(t, server)
	allow := func(rules ...any) {
		t.Helper()
		if err := redis.Do(t.Context(), append([]any{"ACL", "SETUSER", "half", "on", ">secret"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow("+@all", "~a*", "~b*", "~{a}*", "~{b}*")
	admin.save("c", "m", `{}`)
	redis.Set(t.Context(), "b:due", "broken", 0)
	service := newService(t)
	close(service.release)
	up := c.start("up", "--redis", "redis://half:secret@"+server.Addr, "--queue", "a,b,c", "--http", service.URL, "--health", address, "--backoff", "10ms", "--dashboard", "off")
	admin.save("a", "m", `{}`)
	admin.awaitStatus("a", "m", "finished")

	code, told, why := admin.run("health", address, "-o", "json")
	var report health.Report
	if err := json.Unmarshal([]byte(told), &report); err != nil || code != exitFailed {
		t.Fatalf("expected a process that is not ready, found %d, %v, %s", code, err, told)
	}
	expectContains(t, why, "dispatcher b: ", "opening c: ")
	for _, loop := range report.Loops {
		if well := strings.HasSuffix(loop.Loop, " a"); well && !loop.Ready {
			t.Errorf("expected the loops of a to be ready, found %+v", loop)
		}
	}
	admin.do("health", address+"/livez") // the others would pay for a restart

	redis.Del(t.Context(), "b:due")
	admin.save("b", "m", `{}`)
	admin.awaitStatus("b", "m", "finished")
	allow("~c*", "~{c}*")
	admin.awaitStatus("c", "m", "finished")
	admin.do("health", address)
	if code := up.stop(); code != exitDone {
		t.Errorf("expected exit code 0, found %d\n%s", code, up.stderr)
	}
	expectContains(t, up.stderr.String(), "NOPERM", "WRONGTYPE")
}

func TestDaemonsOfSeveralQueuesEndTogetherWithinTheGrace(t *testing.T) {
	t.Parallel()
	server, service := testkit.Redis(t), newService(t) // which never answers
	c := at(t, server)
	c.save("a", "m", `{}`)
	c.save("b", "m", `{}`)
	up := c.start("up", "--queue", "a,b", "--http", service.URL, "--grace", "1h")
	testkit.Await(t, service.asked, "a request of the worker")
	testkit.Await(t, service.asked, "a request of the worker")
	up.cancel()
	awaitLog(t, up, `"queue":"a","part":"dispatcher","time"`)
	awaitLog(t, up, `"queue":"b","part":"dispatcher","time"`)
	close(service.release) // one grace is the time of both
	if code := up.stop(); code != exitDone {
		t.Fatalf("expected exit code 0, found %d\n%s", code, up.stderr)
	}
	for _, queue := range []string{"a", "b"} {
		c.awaitStatus(queue, "m", "finished")
	}
}

func TestStrictRefusesToServeTheOthersOfAQueueThatIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	server.Client(t).HSet(t.Context(), "{b}:settings", "parts", "many")
	told := at(t, server).fail(exitUsage, "dispatcher", "--queue", "a,b", "--strict")
	expectContains(t, told, "{b}:settings parts: expected 1 to 1024")
}

func TestACommandAboutOneQueueRefusesSeveral(t *testing.T) {
	c := &console{t: t, env: map[string]string{"REFRESHD_QUEUE": "a,b"}}
	for _, command := range []string{"model ls", "stats", "doctor", "queue show", "acl", "demo", "bench", "queue create --parts 2", "up --models x"} {
		expectContains(t, c.fail(exitUsage, strings.Fields(command)...), "--queue", "expected one ", "found a,b")
	}
	c.do("version") // which asks no queue
	c.env = nil
	expectContains(t, c.fail(exitUsage, "poller", "--queue", "a", "--queue", "b,a"), "--queue: expected each queue once, found a,b,a")
	expectContains(t, c.fail(exitUsage, "poller", "--queue", "a,b c"), "queue: expected 1-64 letters")
	expectContains(t, c.fail(exitUsage, "worker", "--fetch", t.TempDir(), "--queue", "a,.."), "do not begin with a dot")
}

func TestOneDashboardShowsEveryQueueOfItsProcess(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.save("a", "of-a", `{}`)
		c.save("b", "of-b", `{}`)
		for _, command := range []string{"dashboard --listen 127.0.0.1:0", "up --dashboard " + testkit.FreeAddress(t)} {
			served := c.start(append(strings.Fields(command), "--queue", "b", "--queue", "a")...)
			address := served.dashboardOf(t)
			testkit.Eventually(t, command+": a and b", func() bool { return strings.Contains(read(t, address), `aria-label="Queues"`) })
			for queue, other := range map[string]string{"a": "b", "b": "a"} {
				page := read(t, address+"q/"+queue+"/models")
				expectContains(t, page, `uid=of-`+queue+`"`, `<a href="/q/`+queue+`/" aria-current="true">`, `<a href="/q/`+other+`/">`)
				if strings.Contains(page, "of-"+other) {
					t.Errorf("%s: expected the models of %s alone, found\n%s", command, queue, page)
				}
			}
			if code := served.stop(); code != exitDone {
				t.Errorf("%s: expected exit code 0, found %d\n%s", command, code, served.stderr)
			}
			if n := strings.Count(served.stderr.String(), "the dashboard is served"); n != 1 {
				t.Errorf("%s: expected one dashboard, found %d", command, n)
			}
		}
	})
}
