package conformance_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// gatedNode is a worker whose work ends when a file is there.
const gatedNode = `const { existsSync } = require("fs");
new (require("refreshd.js").Worker)(async (a) => { console.log("begun"); while (!existsSync(process.env.GATE)) await new Promise((end) => setTimeout(end, 20)); },
	{ plain: process.env.PLAIN === "1" }).run()`

// TestASignalMeansAfterANodeWorkerHasRunWhatItMeantBefore has the program print how many of its handlers there are, and then end as programs do.
func TestASignalMeansAfterANodeWorkerHasRunWhatItMeantBefore(t *testing.T) {
	t.Parallel()
	const counts = `const count = () => console.log(process.listenerCount("SIGTERM"), process.listenerCount("SIGINT"));
process.on("SIGINT", () => {});
const { Worker } = require("refreshd.js");
(async () => {
	count();
	const worker = new Worker(() => {}, { logger: false });
	setTimeout(() => { count(); worker.stop(); }, 200);
	await worker.run();
	count();
	await new Worker(() => {}, { queue: "wrong" }).run().catch((error) => console.log(error.message.slice(0, 9)));
	count();
	setInterval(() => {}, 1000);
})()`
	s := testkit.Redis(t)
	must(t, s.Client(t).Set(t.Context(), "{wrong}:settings", "no hash", 0).Err())
	worker := startHandler(t, "node", counts, s.URL)
	worker.AwaitOutput(t, "0 1\n1 2\n0 1\nWRONGTYPE\n0 1\n")
	check.Equal(t, worker.Stop(), -1) // ended by the signal
}

// TestANodeWorkerSaysNothingOfWhatItEndsItself has it give a heartbeat when it has left, and close its connections before or behind the answer: that it
// is forgotten.
func TestANodeWorkerSaysNothingOfWhatItEndsItself(t *testing.T) {
	t.Parallel()
	const ends = `const { Worker } = require("refreshd.js");
const worker = new Worker(() => {}, { logger: { info() {}, error: console.error } }), send = worker.client.send.bind(worker.client);
let beats = () => {};
worker.client.send = (words, options) => {
	const said = send(words, options);
	if (words[0] === "ZREM") return said.then(() => new Promise((sent) => { beats = sent; }));
	if (words[0] === "EVALSHA") BEATS;
	return said;
};
setTimeout(() => worker.stop(), 500);
worker.run().then(() => console.log("ended"));`
	for name, beats := range map[string]string{"sent": "beats()", "answered": "said.then(() => setImmediate(() => beats()), () => {})"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := startHandler(t, "node", strings.Replace(ends, "BEATS", beats, 1), testkit.Redis(t).URL)
			worker.AwaitOutput(t, "ended")
			check.Equal(t, worker.Output(), "ended\n")
		})
	}
}

// TestANodeWorkerPushesWhatItHoldsAtOnceWhenRedisIsBack lets work end while Redis is away for so long that pauses have grown.
func TestANodeWorkerPushesWhatItHoldsAtOnceWhenRedisIsBack(t *testing.T) {
	long.Only(t)
	const away = 12 * time.Second
	freeze := func(t *testing.T, s *testkit.Server) {
		s.Signal(t, syscall.SIGSTOP)
		time.Sleep(away)
		s.Signal(t, syscall.SIGCONT)
	}
	kill := func(t *testing.T, s *testkit.Server) {
		s.Kill(t)
		time.Sleep(away)
		s.Restart(t)
	}
	load := func(t *testing.T, s *testkit.Server) { // for as long as it has keys
		s.Kill(t)
		s.Restart(t)
		client := s.Client(t)
		check.Eventually(t, "Redis has loaded", func() bool {
			err := client.Ping(t.Context()).Err()
			failIf(t, err != nil && !strings.HasPrefix(err.Error(), "LOADING"), "expected that it loads, found %v", err)
			return err == nil
		})
	}
	for how, leave := range map[string]func(t *testing.T, s *testkit.Server){"frozen": freeze, "killed": kill, "loading": load} {
		for _, plain := range []string{"", "1"} {
			t.Run(how+plain, func(t *testing.T) {
				t.Parallel()
				s := testkit.Redis(t, "--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no", "--key-load-delay", "1000",
					"--loading-process-events-interval-bytes", "1024")
				client, gate := s.Client(t), t.TempDir()+"/gate"
				if how == "loading" {
					fill(t, client, int(away/time.Millisecond))
				}
				worker := startHandler(t, "node", gatedNode, s.URL, "REFRESHD_QUEUE=q", "GATE="+gate, "PLAIN="+plain)
				push(t, client, "m", "")
				check.Equal(t, heard(t, client), "started m")
				worker.AwaitOutput(t, "begun") // else it would say so once more
				time.AfterFunc(time.Second, func() { _ = os.WriteFile(gate, nil, 0o600) })
				leave(t, s)
				back := time.Now()
				check.Equal(t, heard(t, s.Client(t)), "success m")
				took := time.Since(back)
				failIf(t, took > 3*time.Second, "expected its result at once, it came after %v", took)
			})
		}
	}
}

func fill(t *testing.T, client redis.UniversalClient, keys int) {
	t.Helper()
	for from := 0; from < keys; from += 1000 {
		pairs := make([]any, 0, 2000)
		for i := from; i < from+1000; i++ {
			pairs = append(pairs, fmt.Sprintf("filler:%d", i), i)
		}
		_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := 0; i < len(pairs); i += 2 {
				p.Set(t.Context(), pairs[i].(string), pairs[i+1], 0)
			}
			return nil
		})
		must(t, err)
	}
}

var rejectedPushes = regexp.MustCompile(`cmdstat_rpush:.*rejected_calls=(\d+)`)

// refusedPushes waits until Redis has refused so many.
func refusedPushes(t *testing.T, client redis.UniversalClient, n int) {
	t.Helper()
	check.Eventually(t, "pushes are refused", func() bool {
		found := rejectedPushes.FindStringSubmatch(client.Info(t.Context(), "commandstats").Val())
		return found != nil && check.Got(strconv.Atoi(found[1]))(t) >= n
	})
}

// TestANodeWorkerPausesForAtMostASecondBetweenTwoPushes counts the refusals of a Redis without memory.
func TestANodeWorkerPausesForAtMostASecondBetweenTwoPushes(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t, "--save", "")
	client, gate := s.Client(t), t.TempDir()+"/gate"
	startHandler(t, "node", gatedNode, s.URL, "REFRESHD_QUEUE=q", "GATE="+gate, "PLAIN=1")
	push(t, client, "m", "")
	check.Equal(t, heard(t, client), "started m")
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	must(t, os.WriteFile(gate, nil, 0o600))
	refusedPushes(t, client, 9) // the pauses have grown
	begun := time.Now()
	refusedPushes(t, client, 15)
	took := time.Since(begun)
	failIf(t, took < 2*time.Second || took > 10*time.Second, "expected six pauses of half a second to one, found %v in all", took)
	must(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	check.Equal(t, heard(t, client), "success m")
}
