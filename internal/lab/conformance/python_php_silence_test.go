package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// soon is how long a worker may take until it takes again, or has ended.
const soon = 15*time.Second + room

// hands are ways to give Redis to a worker: by its URL, or as a client that waits for ever.
var hands = map[string]struct{ language, handler string }{
	"python": {"python", `import refreshd; refreshd.Worker(lambda a: None).run()`},
	"python with a client of its own": {"python", `import os, redis, refreshd
refreshd.Worker(lambda a: None, redis=redis.Redis.from_url(os.environ["REDIS_URL"])).run()`},
	"python with a client that decodes, and tries again": {"python", `import os, redis, refreshd
from redis.retry import Retry
from redis.backoff import ConstantBackoff
refreshd.Worker(lambda a: None, redis=redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry_on_timeout=True,
	retry=Retry(ConstantBackoff(1), 20), socket_timeout=60)).run()`},
	"python, plain": {"python", `import os, redis, refreshd
refreshd.Worker(lambda a: None, plain=True, redis=redis.Redis.from_url(os.environ["REDIS_URL"])).run()`},
	"php":        {"php", handlers["php"]},
	"php, plain": {"php", `require getenv("FILE"); (new Refreshd\Worker(fn ($a) => null, plain: true))->run();`},
}

func TestAClientTakesAgainSoonAfterItsConnectionsFellSilent(t *testing.T) {
	long.Only(t)
	for name, hand := range hands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testkit.Redis(t)
			client, link := s.Client(t), newLink(t, s)
			startHandler(t, hand.language, hand.handler, link.address, "REFRESHD_QUEUE=q")
			var answers []string // each of an attempt
			for i := range 3 {
				uid := fmt.Sprintf("m%d", i)
				push(t, client, uid, "")
				check.Equal(t, headOf(t, nextSaid(t, client, answers)), "started "+uid)
				answer := nextSaid(t, client, answers)
				check.Equal(t, headOf(t, answer), "success "+uid)
				answers = append(answers, answer)
				link.mute()
				check.Eventually(t, "no pop is under way that nobody would hear", func() bool {
					return strings.Contains(client.Info(t.Context(), "clients").Val(), "blocked_clients:0")
				})
			}
		})
	}
}

// nextSaid is the next message but for answers that are said again, byte by byte, as a reply was lost: of any attempt, as each is tried again by itself.
func nextSaid(t *testing.T, client goredis.UniversalClient, answers []string) string {
	t.Helper()
	for {
		if message := saidWithin(t, client, soon); !slices.Contains(answers, message) {
			return message
		}
	}
}

func TestAnAnswerIsSaidAgainOnlyAsItWas(t *testing.T) {
	t.Parallel()
	client := testkit.Redis(t).Client(t)
	answers := []string{`{"type":"success","uid":"m0"}`, `{"type":"success","uid":"m1"}`}
	must(t, client.RPush(t.Context(), "q-output", answers[1], answers[0], answers[0], `{"type":"success","uid":"m0","changed":false}`).Err())
	check.Equal(t, nextSaid(t, client, answers), `{"type":"success","uid":"m0","changed":false}`)
}

// TestTheHeartbeatsOfAClientOutliveASilentConnection has the lease of a dispatcher go on.
func TestTheHeartbeatsOfAClientOutliveASilentConnection(t *testing.T) {
	long.Only(t)
	for _, language := range []string{"python", "php"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := testkit.Redis(t)
			client, link := s.Client(t), newLink(t, s)
			startClient(t, language, link.address)
			push(t, client, "m", `,"wait":1`)
			check.Equal(t, heard(t, client), "started m")
			name := owner(t, client)
			beat := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
			last := beat()
			check.Eventually(t, "a heartbeat", func() bool { return beat() > last })
			last = beat()
			link.mute()
			check.Eventually(t, "another heartbeat", func() bool { return beat() > last })
			failIf(t, beat()-last > 5000, "expected heartbeats within the lease of 5 s, found none for %g ms", beat()-last)
		})
	}
}

// heardWithin returns the worker's next message: type and model.
func heardWithin(t *testing.T, client goredis.UniversalClient, limit time.Duration) string {
	t.Helper()
	return headOf(t, saidWithin(t, client, limit))
}

func saidWithin(t *testing.T, client goredis.UniversalClient, limit time.Duration) string {
	t.Helper()
	reply, err := client.BLPop(t.Context(), limit, "q-output").Result()
	stopIf(t, err != nil, "expected the worker to say something within %v: %v", limit, err)
	return reply[1]
}

// headOf is the type and the model of a message.
func headOf(t *testing.T, message string) string {
	t.Helper()
	var said struct{ Type, UID string }
	must(t, json.Unmarshal([]byte(message), &said))
	return said.Type + " " + said.UID
}

// stubborn is work that listens to nobody, in as many hands as the client has. It has a grace of 5 s, and the worker as much for the rest: so 5 s are
// left for a busy machine.
var stubborn = map[string]string{
	"python": `import os, redis, refreshd, time
def refresh(a):
    os.write(1, b"begun\n")
    while True: time.sleep(1)
refreshd.Worker(refresh, concurrency=16, grace=5, plain=os.environ.get("PLAIN") == "1", redis=redis.Redis.from_url(os.environ["REDIS_URL"])).run()`,
	"php": `require getenv("FILE");
(new Refreshd\Worker(function ($a) { echo "begun\n"; while (true) { $a->sleep(1); $a->status("on"); } }, grace: 5, plain: getenv("PLAIN") === "1"))->run();`,
}

// silences are possible faults of Redis when a worker is to end.
var silences = map[string]func(t *testing.T, s *testkit.Server, l *link){
	"frozen": func(t *testing.T, s *testkit.Server, _ *link) { freeze(t, s) },
	"killed": func(t *testing.T, s *testkit.Server, _ *link) { s.Kill(t) },
	"mute":   func(_ *testing.T, _ *testkit.Server, l *link) { l.mute() },
}

// freeze stops the server, until the test ends at the latest.
func freeze(t *testing.T, s *testkit.Server) {
	t.Helper()
	t.Cleanup(func() { s.Signal(t, syscall.SIGCONT) })
	s.Signal(t, syscall.SIGSTOP)
}

// TestAClientEndsSoonWhateverRedisDoes asks it to while all its hands are full.
func TestAClientEndsSoonWhateverRedisDoes(t *testing.T) {
	long.Only(t)
	for _, language := range []string{"python", "php"} {
		for name, silence := range silences {
			for _, parts := range []int{1, 8} {
				for _, plain := range []string{"", "1"} {
					t.Run(fmt.Sprintf("%s, %s, %d parts, plain %q", language, name, parts, plain), func(t *testing.T) {
						t.Parallel()
						endsSoon(t, language, parts, plain, silence)
					})
				}
			}
		}
	}
}

func endsSoon(t *testing.T, language string, parts int, plain string, silence func(*testing.T, *testkit.Server, *link)) {
	t.Helper()
	s := testkit.Redis(t)
	redis, link := s.Client(t), newLink(t, s)
	names := []string{"q"}
	if parts > 1 {
		names = nil
		for i := range parts {
			names = append(names, fmt.Sprintf("{q:%d}", i))
		}
		must(t, redis.HSet(t.Context(), "{q}:settings", "parts", parts).Err())
	}
	inHand := map[string]int{"python": 16, "php": 1}[language]
	for i := range 16 {
		part := names[i%parts]
		must(t, redis.HSet(t.Context(), fmt.Sprintf("%s:model:m%d", part, i), "attempt_uid", fmt.Sprint("a", i)).Err())
		must(t, redis.RPush(t.Context(), part+"-input", fmt.Sprintf(`{"big_table_uid":"m%d","refresh_attempt_uid":"a%d"}`, i, i)).Err())
	}
	worker := startHandler(t, language, stubborn[language], link.address, "REFRESHD_QUEUE=q", "PLAIN="+plain)
	worker.AwaitOutput(t, strings.Repeat("begun\n", inHand))
	silence(t, s, link)
	endIsSoon(t, worker)
}

// endIsSoon asks a worker to end.
func endIsSoon(t *testing.T, worker *testkit.Process) {
	t.Helper()
	begun := time.Now()
	worker.Ask()
	defer time.AfterFunc(check.Limit, worker.Kill).Stop()
	code := worker.Wait()
	failIf(t, time.Since(begun) > soon, "expected the end within %v, found %v", soon, time.Since(begun))
	failIf(t, code != 0, "expected exit status 0, found %d", code)
}

func TestAnIdleClientEndsSoonThoughRedisIsSilent(t *testing.T) {
	long.Only(t)
	const php = `require getenv("FILE"); (new Refreshd\Worker(fn ($a) => null, grace: 5))->run();`
	for name, program := range map[string][2]string{
		"python":                        {"python", `import refreshd; refreshd.Worker(lambda a: None, grace=5).run()`},
		"php":                           {"php", php},
		"php with asynchronous signals": {"php", "pcntl_async_signals(true); " + php}, // PHP loses one that comes with an exception
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testkit.Redis(t)
			client := s.Client(t)
			worker := startHandler(t, program[0], program[1], s.URL, "REFRESHD_QUEUE=q")
			push(t, client, "m", "")
			check.Equal(t, heard(t, client), "started m")
			freeze(t, s)
			endIsSoon(t, worker)
		})
	}
}

func TestAClientOfAClusterEndsSoonThoughItIsFrozen(t *testing.T) {
	long.Only(t)
	for _, language := range []string{"python", "php"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := testkit.Cluster(t)
			redis := s.Client(t)
			handler := strings.Replace(stubborn[language], `redis.Redis.from_url(os.environ["REDIS_URL"])`, "None", 1)
			worker := startHandler(t, language, handler, s.URL, "REFRESHD_QUEUE={q}")
			must(t, redis.HSet(t.Context(), "{q}:model:m", "attempt_uid", "a").Err())
			must(t, redis.RPush(t.Context(), "{q}-input", `{"big_table_uid":"m","refresh_attempt_uid":"a"}`).Err())
			worker.AwaitOutput(t, "begun")
			t.Cleanup(func() { s.AwaitNodes(t, func(context.Context, *goredis.Client) bool { return true }) })
			freeze(t, s)
			endIsSoon(t, worker)
		})
	}
}

// TestAFrozenRedisGetsEachResultOnceAndAtOnce freezes it while a result is under way, for longer than any pause.
func TestAFrozenRedisGetsEachResultOnceAndAtOnce(t *testing.T) {
	long.Only(t)
	work := map[string]string{
		"python": `import os, refreshd, time
def refresh(a):
    os.write(1, b"begun")
    while not os.path.exists(os.environ["GO"]): time.sleep(.05)
    os.write(1, b"ended")
refreshd.Worker(refresh).run()`,
		"php": `require getenv("FILE");
(new Refreshd\Worker(function ($a) { echo "begun"; while (!file_exists(getenv("GO"))) { usleep(50000); clearstatcache(); } echo "ended"; }))->run();`,
	}
	for language, handler := range work {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := testkit.Redis(t)
			client, gate := s.Client(t), t.TempDir()+"/go"
			worker := startHandler(t, language, handler, s.URL, "REFRESHD_QUEUE=q", "GO="+gate)
			push(t, client, "m", "")
			check.Equal(t, heard(t, client), "started m")
			worker.AwaitOutput(t, "begun")
			freeze(t, s)
			must(t, os.WriteFile(gate, nil, 0o600))
			worker.AwaitOutput(t, "ended")
			worker.AwaitOutput(t, "redis: ") // it has waited for a reply in vain
			s.Signal(t, syscall.SIGCONT)
			check.Equal(t, heardWithin(t, client, 2*time.Second), "success m")
			push(t, client, "n", "")
			check.Equal(t, heard(t, client), "started n") // not once more
			check.Equal(t, heard(t, client), "success n")
		})
	}
}

// TestAnApplicationInPythonDoesNotWaitForEverOnASilentConnection hands over a client without timeouts.
func TestAnApplicationInPythonDoesNotWaitForEverOnASilentConnection(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	link := newLink(t, s)
	const application = `import os, redis, refreshd, time
app = refreshd.Client(redis=redis.Redis.from_url(os.environ["REDIS_URL"]), queue="q", timeout=None)
app.put("m", {})
print("put", flush=True)
while not os.path.exists(os.environ["GO"]): time.sleep(.05)
app.put("m", {})`
	gate := t.TempDir() + "/go"
	program := startHandler(t, "python", application, link.address, "GO="+gate)
	program.AwaitOutput(t, "put")
	link.mute()
	must(t, os.WriteFile(gate, nil, 0o600))
	defer time.AfterFunc(time.Minute, program.Kill).Stop()
	check.Equal(t, program.Wait(), 0)
	check.Equal(t, s.Client(t).LLen(t.Context(), "q-control").Val(), int64(2))
}
