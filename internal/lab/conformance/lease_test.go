package conformance_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// handlers are workers with one handler: it succeeds, or first waits for ten minutes in one call if the payload says so.
var handlers = map[string]string{
	"python": `import os, refreshd
refreshd.Worker(lambda a: "wait" in a.payload and a.sleep(600), plain=os.environ.get("PLAIN") == "1", concurrency=1).run()`,
	"node": `new (require("refreshd.js").Worker)(async (a) => { if (a.payload.wait) await a.sleep(600) }, { plain: process.env.PLAIN === "1", concurrency: 1 }).run()`,
	"php": `require getenv("FILE");
		(new Refreshd\Worker(fn ($a) => isset($a->payload["wait"]) && sleep(600), plain: getenv("PLAIN") === "1"))->run();`,
	"bash": `case $(cat) in *wait*) sleep 600 ;; esac`,
}

var clientFiles = map[string]string{"python": "clients/python/refreshd.py", "node": "clients/node/refreshd.js", "php": "clients/php/src/Refreshd.php", "bash": "clients/bash/worker.sh"}

// startClient starts a worker with its handler on the queue q.
func startClient(t *testing.T, language, address string, environ ...string) *testkit.Process {
	t.Helper()
	return startHandler(t, language, handlers[language], address, append(environ, "REFRESHD_QUEUE=q")...)
}

// startHandler starts a worker with a program that has its handler.
func startHandler(t *testing.T, language, handler, address string, environ ...string) *testkit.Process {
	t.Helper()
	file := fromRoot(t, clientFiles[language])
	var command *exec.Cmd
	switch language {
	case "bash":
		testkit.RequireProgram(t, "redis-cli", "redis-tools")
		testkit.RequireProgram(t, "jq", "jq")
		command = exec.Command(file, "bash", "-c", handler)
		command.Env = command.Environ()
	default:
		program, found := testkit.Interpreter(t, language)
		if language == "python" { // tests read what their handlers print, and the warnings of the client
			handler = "import logging; logging.basicConfig(format='%(message)s')\n" + handler
		}
		flag := map[string]string{"python": "-c", "node": "-e", "php": "-r"}[language]
		command = exec.Command(program, flag, strings.ReplaceAll(handler, "refreshd.js", file))
		command.Env = found
	}
	command.Env = append(append(command.Env, "REDIS_URL="+address, "FILE="+file, "PYTHONPATH="+filepath.Dir(file), "PYTHONDONTWRITEBYTECODE=1"), environ...)
	return testkit.StartCommand(t, command)
}

// push gives an attempt of a model to the worker.
func push(t *testing.T, client redis.UniversalClient, uid, more string) {
	t.Helper()
	must(t, client.HSet(t.Context(), "q:model:"+uid, "attempt_uid", "of-"+uid).Err())
	must(t, client.RPush(t.Context(), "q-input", `{"big_table_uid":"`+uid+`","refresh_attempt_uid":"of-`+uid+`"`+more+`}`).Err())
}

// heard returns the worker's next message: type and model.
func heard(t *testing.T, client redis.UniversalClient) string {
	t.Helper()
	return heardIn(t, client, "q")
}

func heardIn(t *testing.T, client redis.UniversalClient, part string) string {
	t.Helper()
	reply, err := client.BLPop(t.Context(), check.Limit, part+"-output").Result()
	stopIf(t, err != nil, "expected the worker to say something: %v", err)
	var said struct{ Type, UID string }
	must(t, json.Unmarshal([]byte(reply[1]), &said))
	return said.Type + " " + said.UID
}

// owner is the name of the only worker.
func owner(t *testing.T, client redis.UniversalClient) string {
	t.Helper()
	owners := check.Got(client.ZRange(t.Context(), "q:workers", 0, -1).Result())(t)
	stopIf(t, len(owners) != 1, "expected one worker, found %q", owners)
	return owners[0]
}

// TestAClientWhoseLeaseIsLostSaysNothingAboutItsAttemptAndGoesOnUnderAnotherName lets somebody requeue what it has taken, as a dispatcher does with
// what a frozen worker had.
func TestAClientWhoseLeaseIsLostSaysNothingAboutItsAttemptAndGoesOnUnderAnotherName(t *testing.T) {
	long.Only(t)
	for _, language := range []string{"node", "bash"} { // in PHP a call that blocks cannot be stopped
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := testkit.Redis(t)
			client, worker := s.Client(t), startClient(t, language, s.URL)
			push(t, client, "m", `,"wait":1`)
			check.Equal(t, heard(t, client), "started m")
			first := owner(t, client)
			pool := store.ReadOwner(first)
			failIf(t, pool.Host == "" || pool.PID == "" || pool.Since.IsZero(), "expected a name that tells host, process and time, found %q", first)
			queue := fixture.Open(t, s.URL, store.Config{Queue: "q"}).Parts[0].Pool()
			moved := check.Got(queue.Leave(t.Context(), first))(t)
			check.Equal(t, moved, 1)
			check.Equal(t, heard(t, client), "started m") // it takes the same attempt anew, and has said nothing else
			second := owner(t, client)
			failIf(t, second == first || store.PoolName(second) != first, "expected the next name of %q, found %q", first, second)
			must(t, client.HSet(t.Context(), "q:model:m", "attempt_uid", "next").Err())
			push(t, client, "n", "")
			check.Equal(t, heard(t, client), "started n")
			check.Equal(t, heard(t, client), "success n")
			check.Equal(t, worker.Stop(), 0)
			left := check.Got(client.Keys(t.Context(), "q:taken:*").Result())(t)
			failIf(t, len(left) > 0 || client.Exists(t.Context(), "q:workers").Val() > 0, "expected nothing to be left, found %q", left)
		})
	}
}

// TestTheHeartbeatOfThePHPClientLivesAsLongAsItsWorker lets a handler sit in one call.
func TestTheHeartbeatOfThePHPClientLivesAsLongAsItsWorker(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	client, worker := s.Client(t), startClient(t, "php", s.URL)
	push(t, client, "m", `,"wait":1`)
	check.Equal(t, heard(t, client), "started m")
	name := owner(t, client)
	last := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
	begun := last()
	check.Eventually(t, "heartbeats while the handler blocks", func() bool { return last() > begun+2000 })
	worker.Kill()
	check.Eventually(t, "the process that gives the heartbeats ends with its worker", func() bool {
		list := client.ClientList(t.Context()).Val()
		return !strings.Contains(list, "cmd=evalsha") && !strings.Contains(list, "cmd=eval ")
	})
}

// TestAPHPClientThatWasForgottenWhileItWasIdleGivesHeartbeatsUnderItsNextName has the next attempt come before its child finds out.
func TestAPHPClientThatWasForgottenWhileItWasIdleGivesHeartbeatsUnderItsNextName(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	client := s.Client(t)
	startClient(t, "php", s.URL)
	push(t, client, "m", "")
	check.Equal(t, heard(t, client), "started m")
	check.Equal(t, heard(t, client), "success m")
	first := owner(t, client)
	must(t, client.ZRem(t.Context(), "q:workers", first).Err())
	push(t, client, "n", `,"wait":1`)
	check.Equal(t, heard(t, client), "started n")
	second := owner(t, client)
	failIf(t, second == first, "expected another name than %q", first)
	last := func() float64 { return client.ZScore(t.Context(), "q:workers", second).Val() }
	begun := last()
	check.Eventually(t, "heartbeats while the handler blocks", func() bool { return last() > begun+2000 })
}

// asked are the commands of a plain worker that does one attempt, without those that make a connection.
var asked = map[string][]string{
	"bash": {
		"BLPOP q-input 1", "HGET q:model:m attempt_uid", "HGET q:model:m deadline_at",
		`RPUSH q-output {"type":"started","worker":"HOST","uid":"m","refresh_attempt_uid":"of-m"}`, success,
	},
	"node": slices.Concat(named, []string{started, success}), "php": slices.Concat(named, []string{started, success}),
}

var named = []string{
	"BLPOP q-input 1", "HGET q:model:m attempt_uid", "HGET {q}:settings attempt_name", "HGET {q}:settings model_name", "HGET {q}:settings parts",
	"HGET {q}:settings payload",
}

const (
	started = `RPUSH q-output {"type":"started","uid":"m","refresh_attempt_uid":"of-m","worker":"HOST"}`
	success = `RPUSH q-output {"type":"success","uid":"m","refresh_attempt_uid":"of-m"}`
)

// TestAPlainClientSaysToRedisWhatItSaidBeforeItCouldTake has all commands of one attempt.
func TestAPlainClientSaysToRedisWhatItSaidBeforeItCouldTake(t *testing.T) {
	long.Only(t)
	host := check.Got(os.Hostname())(t)
	for language, want := range asked {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := testkit.Miniredis(t)
			client := redis.NewClient(&redis.Options{Addr: s.Addr})
			t.Cleanup(func() { _ = client.Close() })
			push(t, client, "m", "")
			var mu sync.Mutex
			said := map[string]bool{}
			s.Mini.Server().SetPreHook(func(_ *server.Peer, command string, words ...string) bool {
				mu.Lock()
				defer mu.Unlock()
				line := strings.ReplaceAll(strings.TrimSpace(strings.Join(append([]string{command}, words...), " ")), `"`+host+`"`, `"HOST"`)
				if verb := strings.Fields(line)[0]; !slices.Contains([]string{"HELLO", "CLIENT", "SELECT"}, verb) && !strings.Contains(line, "BLPOP q-output") {
					said[line] = true
				}
				return false
			})
			worker := startClient(t, language, s.URL, "PLAIN=1", "REFRESHD_PLAIN=1")
			check.Equal(t, heard(t, client), "started m")
			check.Equal(t, heard(t, client), "success m")
			check.Equal(t, worker.Stop(), 0)
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(said))); diff != "" {
				t.Errorf("what Redis was asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"q:model:m"}, s.Mini.Keys()); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}
