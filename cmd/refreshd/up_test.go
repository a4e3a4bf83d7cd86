package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// service is a web service that refreshes models.
type service struct {
	*httptest.Server
	asked   chan string   // the payload of each request
	release chan struct{} // closed: requests are answered
}

func newService(t *testing.T) *service {
	s := &service{asked: make(chan string, 100), release: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		payload, _ := io.ReadAll(r.Body)
		s.asked <- string(payload)
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// background runs a command until stop is called, which returns its exit code. Its output can be read meanwhile.
type background struct {
	stdout *bufio.Reader
	stderr *check.Buffer
	logged chan struct{} // gets a value soon after each write to stderr
	cancel func()        // as a signal does
	stop   func() int
	gone   chan struct{} // closed when it has ended
}

func (c *console) start(args ...string) *background {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	read, write := io.Pipe()
	b := &background{stdout: bufio.NewReader(read), logged: make(chan struct{}, 1), cancel: cancel, gone: make(chan struct{})}
	b.stderr = &check.Buffer{Written: func() {
		select {
		case b.logged <- struct{}{}:
		default: // a signal is waiting already
		}
	}}
	ended, in := make(chan int, 1), strings.NewReader(c.in)
	go func() {
		ended <- run(ctx, args, in, write, b.stderr, c.environ())
		_ = write.Close()
		close(b.gone)
	}()
	b.stop = sync.OnceValue(func() int {
		cancel()
		_ = read.CloseWithError(io.ErrClosedPipe) // nobody reads on; a writer must not wait for it
		return <-ended
	})
	c.t.Cleanup(func() { b.stop() })
	return b
}

// line reads until a line that contains text.
func (b *background) line(t *testing.T, text string) string {
	t.Helper()
	for {
		line, err := b.stdout.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		stopIf(t, err != nil, "expected a line with %q, found the end: %v\n%s", text, err, b.stderr)
	}
}

func TestUpRefreshesModelsOnARedisOfItsOwn(t *testing.T) {
	t.Parallel()
	service := newService(t)
	close(service.release)
	models := file(t, "models.yaml", "uid: a\npayload: {n: 1}\n---\nuid: b\nrrule: FREQ=NEVER\n")
	c := &console{t: t}
	up := c.start("up", "-o", "json", "--models", models, "--http", service.URL)
	var hint struct{ Redis, Port, Queue, Dashboard string }
	err := json.Unmarshal([]byte(up.line(t, "redis")), &hint)
	stopIf(t, err != nil || !strings.HasSuffix(hint.Redis, ":"+hint.Port) || hint.Queue != "bigtables",
		"expected where its Redis is, found %+v, %v", hint, err)
	up.line(t, `"uid":"a","result":"created"`)
	up.line(t, `"uid":"b","result":"refused"`)
	page := read(t, hint.Dashboard)
	failIf(t, !strings.Contains(page, "<h1>Overview</h1>"), "expected the dashboard at %s, found %s", hint.Dashboard, page)
	payload := <-service.asked
	failIf(t, payload != `{"n":1}`, "expected the payload of a, found %s", payload)
	q := fixture.Live(t, &testkit.Server{Addrs: []string{strings.TrimPrefix(hint.Redis, "redis://")}})
	q.AwaitEvent(model.EventSuccess, 1)
	up.ends(t)
	expectContains(t, up.stderr.String(), "models.yaml line 5: rrule FREQ: expected", `"part":"up"`, `"part":"poller"`, `"message":"stopped"`)
}

func read(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	must(t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	stopIf(t, err != nil || response.StatusCode != http.StatusOK, "%s: %s, %v: %s", address, response.Status, err, page)
	return string(page)
}

func TestTheHelpOfUpNamesEachKindOfWorker(t *testing.T) {
	expectContains(t, nowhere(t).do("up", "--help"), "a worker if --exec, --shell, --http or --fetch is given", "| --shell | --http URL | --fetch DIR]")
}

func TestUpAppliesWhatItsWorkerHandsBackAtTheEnd(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		service := newService(t)
		q := fixture.Live(t, server)
		c := at(t, server)
		up := c.start("up", "--models", file(t, "models.yaml", "uid: a\n---\nuid: b\n"), "--http", service.URL, "--grace", "0")
		up.line(t, "2 models: 2 created")
		check.Await(t, service.asked, "a request of the worker")
		check.Await(t, service.asked, "a request of the worker")
		up.ends(t)
		for _, uid := range []string{"a", "b"} {
			got := c.object("model", "get", uid)
			failIf(t, got["status"] != "due" || got["refresh_why"] != "interrupted: again at once",
				"expected %s to be due again, found %v: %v", uid, got["status"], got["refresh_why"])
		}
		left := q.List(q.Store.Keys.Output)
		failIf(t, len(left) > 0, "expected every message applied, found %v", left)
		pollers := q.Scores(q.Store.Keys.Pollers)
		failIf(t, len(pollers) > 0, "expected the poller to have resigned, found %v", pollers)
	})
}

// ends stops a command, which must end well.
func (b *background) ends(t *testing.T) {
	t.Helper()
	code := b.stop()
	failIf(t, code != exitDone, "expected exit code 0, found %d\n%s", code, b.stderr)
}

func awaitLog(t *testing.T, b *background, text string) {
	t.Helper()
	for !strings.Contains(b.stderr.String(), text) {
		select {
		case <-b.logged:
		case <-b.gone:
			expectContains(t, b.stderr.String(), text)
			return
		case <-time.After(check.Limit):
			t.Fatalf("no line of the log with %q came:\n%s", text, b.stderr.String())
		}
	}
}

func TestWhatIsSaidAtTheVeryEndIsApplied(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		q := fixture.Live(t, server)
		a := &app{}
		build := check.Got(a.prepareDaemons(t.Context(), &upFlags{}, nil))(t)
		client := server.Client(t)
		queue := check.Got(store.Open(t.Context(), &redis.Clients{Read: client, Write: client, Block: client}, store.Config{}))(t)
		daemons := check.Got(build(queue))(t)
		q.Command(`{"type":"put","uid":"a"}`)
		q.Say(slices.Repeat([]string{"garbage"}, 250)...)
		ended, end := context.WithCancel(t.Context())
		end()
		must(t, daemons.drain(ended))
		stats := q.Stats()
		failIf(t, stats["create"] != 1 || stats["malformed"] != 250, "expected everything applied, found %v", stats)
		pollers := q.Scores(q.Store.Keys.Pollers)
		failIf(t, len(pollers) > 0, "expected the poller to have resigned, found %v", pollers)
	})
}

func TestNoGraceIsNotTheDefaultGrace(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "1m": time.Minute, "": 10 * time.Second} {
		var loop loopFlags
		flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
		loop.bindLife(flags)
		if text != "" {
			must(t, flags.Set("grace", text))
		}
		got := (worker.Config{Grace: loop.workerGrace()}).WithDefaults().Grace
		failIf(t, got != want, "--grace %q: expected %s, found %s", text, want, got)
	}
}

func TestDaemonsOfSeparateProcessesRefreshTogether(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		dir := t.TempDir()
		dispatcher, poller := c.start("dispatcher"), c.start("poller")
		worker := c.start("worker", "--exec", "sh", "--concurrency", "2", "--", "-c", `cat > "$0/$REFRESHD_UID"`, dir)
		c.put("uid: a\npayload: {n: 1}\n")
		q.AwaitEvent(model.EventSuccess, 1)
		got := c.object("model", "get", "a")
		failIf(t, got["status"] != "finished" || got["last_success_at"] == nil, "expected a refreshed model, found %v", got)
		for name, daemon := range map[string]*background{"dispatcher": dispatcher, "poller": poller, "worker": worker} {
			daemon.ends(t)
			expectContains(t, daemon.stderr.String(), fmt.Sprintf(`"part":%q`, name), `"message":"started"`, `"message":"stopped"`)
		}
	})
}

func TestADaemonEndsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	server := testkit.Miniredis(t)
	for _, daemon := range []string{"dispatcher", "poller", "up"} {
		at(t, server).do(daemon, "--for", "1ms")
	}
	(&console{t: t}).do("up", "--for", "1ms")
}

func TestADaemonWaitsForARedisThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	poller := (&console{t: t}).start("poller", "--redis", "redis://127.0.0.1:1", "--tick", "10ms")
	awaitLog(t, poller, `"message":"queue: opening failed"`)
	poller.ends(t)
	expectContains(t, poller.stderr.String(), `"message":"started"`, "connection refused", `"message":"stopped"`)
}

func TestUpAppliesResultsWhileItsWorkerIsStillStopping(t *testing.T) {
	t.Parallel()
	service := newService(t)
	server := testkit.Redis(t)
	c, q := at(t, server), fixture.Live(t, server)
	models := file(t, "models.yaml", "uid: a\n---\nuid: b\n")
	up := c.start("up", "--models", models, "--http", service.URL, "--grace", "1h")
	up.line(t, "2 models: 2 created")
	check.Await(t, service.asked, "a request of the worker")
	check.Await(t, service.asked, "a request of the worker")
	up.cancel()
	awaitLog(t, up, "stopped part=dispatcher")
	service.release <- struct{}{}
	q.AwaitEvent(model.EventSuccess, 1) // of one, while the other is still being worked on
	close(service.release)
	code := up.stop()
	stopIf(t, code != exitDone, "expected exit code 0, found %d\n%s", code, up.stderr)
}
