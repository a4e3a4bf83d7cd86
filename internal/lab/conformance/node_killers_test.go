package conformance_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// killing reports how many workers have died over each attempt, and the payload. The work ends when there is a file of its name.
const killing = `const { existsSync } = require("fs");
new (require("refreshd.js").Worker)(async (a) => {
	a.status(JSON.stringify([a.deaths, a.payload]));
	while (!existsSync(process.env.GATES + "/" + a.uid)) await a.sleep(0.02);
}, { plain: process.env.PLAIN === "1", grace: 0.5 }).run()`

type killingWorker struct {
	*testkit.Process
	t      *testing.T
	client redis.UniversalClient
	gates  string
}

func startKilling(t *testing.T, plain string) *killingWorker {
	t.Helper()
	s, gates := testkit.Redis(t), t.TempDir()
	worker := startHandler(t, "node", killing, s.URL, "REFRESHD_QUEUE=q", "GATES="+gates, "PLAIN="+plain)
	return &killingWorker{worker, t, s.Client(t), gates}
}

// hand gives attempts to the worker, all at once: uid and what else their entries have, one after the other.
func (w *killingWorker) hand(attempts ...string) {
	w.t.Helper()
	entries := make([]any, 0, len(attempts)/2)
	for i := 0; i < len(attempts); i += 2 {
		must(w.t, w.client.HSet(w.t.Context(), "q:model:"+attempts[i], "attempt_uid", "of-"+attempts[i]).Err())
		entries = append(entries, `{"big_table_uid":"`+attempts[i]+`","refresh_attempt_uid":"of-`+attempts[i]+`"`+attempts[i+1]+`}`)
	}
	must(w.t, w.client.RPush(w.t.Context(), "q-input", entries...).Err())
}

// begins expects that the next thing the worker does is to begin an attempt.
func (w *killingWorker) begins(uid, status string) {
	w.t.Helper()
	check.Equal(w.t, heard(w.t, w.client), "started "+uid)
	reply := check.Got(w.client.BLPop(w.t.Context(), check.Limit, "q-output").Result())(w.t)
	var m said
	must(w.t, json.Unmarshal([]byte(reply[1]), &m))
	check.Equal(w.t, m.UID+" "+m.Status, uid+" "+status)
}

func (w *killingWorker) ends(uid string) {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(w.gates, uid), nil, 0o600))
	check.Equal(w.t, heard(w.t, w.client), "success "+uid)
}

// rests expects that the worker says nothing and takes nothing, while two heartbeats pass if it gives some.
func (w *killingWorker) rests(plain string, inLine int64) {
	w.t.Helper()
	if plain == "" {
		name := owner(w.t, w.client)
		last := func() float64 { return w.client.ZScore(w.t.Context(), "q:workers", name).Val() }
		begun := last()
		check.Eventually(w.t, "heartbeats", func() bool { return last() > begun+1500 })
	}
	said := w.client.LRange(w.t.Context(), "q-output", 0, -1).Val()
	failIf(w.t, len(said) > 0, "expected that it waits, it said %q", said)
	check.Equal(w.t, w.client.LLen(w.t.Context(), "q-input").Val(), inLine)
}

func TestANodeWorkerWorksAloneOnAnAttemptOverWhichWorkersDie(t *testing.T) {
	long.Only(t)
	t.Parallel()
	w := startKilling(t, "")
	w.hand("a", "")
	w.begins("a", "[0,{}]")
	w.hand("k1", `,"deaths":2,"url":"x"`, "b", `,"deaths":1`, "k2", `,"deaths":3`, "c", "")
	w.begins("b", "[1,{}]") // which came in the same take
	w.rests("", 1)
	w.ends("b")
	w.rests("", 1)
	w.ends("a")
	w.begins("k1", `[2,{"url":"x"}]`)
	w.rests("", 1)
	w.ends("k1")
	w.begins("k2", "[3,{}]")
	w.rests("", 1)
	w.ends("k2")
	w.begins("c", "[0,{}]")
	w.ends("c")
	check.Equal(t, w.Stop(), 0)
}

func TestAPlainNodeWorkerWorksAloneOnAnAttemptOverWhichWorkersDie(t *testing.T) {
	t.Parallel()
	w := startKilling(t, "1")
	w.hand("a", "")
	w.begins("a", "[0,{}]")
	w.hand("k", `,"deaths":2`, "b", "")
	check.Eventually(t, "it takes one more", func() bool { return w.client.LLen(t.Context(), "q-input").Val() == 1 })
	w.rests("1", 1)
	w.ends("a")
	w.begins("k", "[2,{}]")
	w.rests("1", 1)
	w.ends("k")
	w.begins("b", "[0,{}]")
	w.ends("b")
	check.Equal(t, w.Stop(), 0)
}

func TestANodeWorkerHandsBackAnAttemptThatWaitsToBeAlone(t *testing.T) {
	long.Only(t)
	for how, plain := range map[string]string{"taking": "", "plain": "1"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := startKilling(t, plain)
			w.hand("a", "")
			w.begins("a", "[0,{}]")
			w.hand("k", `,"deaths":2`)
			check.Eventually(t, "it has taken it", func() bool { return w.client.LLen(t.Context(), "q-input").Val() == 0 })
			w.rests(plain, 0)
			check.Equal(t, w.Stop(), 0)
			check.Equal(t, heard(t, w.client), "interrupted k")
			check.Equal(t, heard(t, w.client), "interrupted a")
			left := check.Got(w.client.Keys(t.Context(), "q:taken:*").Result())(t)
			failIf(t, len(left) > 0, "expected no entry to be left, found %q", left)
		})
	}
}

// TestANodeWorkerLeavesDeathsToAPayloadThatHadThemBefore reads entries as the worker does.
func TestANodeWorkerLeavesDeathsToAPayloadThatHadThemBefore(t *testing.T) {
	t.Parallel()
	const reads = `const { Attempt } = require(process.argv[1]);
for (const [entry, nested] of [
	[{ attempt_no: 1, deaths: 7 }], [{ attempt_no: 1, deaths: 7, fence: 1, due_at: "2026-01-05T06:00:00Z", for: "retry" }],
	[{ deaths: 7 }], [{ deaths: "7" }], [{ deaths: 2.5 }], [{ deaths: -2 }], [{}], [{ deaths: 2, payload: { deaths: 9 } }, true],
]) {
	const a = new Attempt(JSON.stringify({ m: "m", a: "a", ...entry }), "q-input", { model: "m", attempt: "a", nested });
	console.log(a.deaths, JSON.stringify(a.payload));
}`
	program, environ := testkit.Interpreter(t, "node")
	command := exec.Command(program, "-e", reads, fromRoot(t, clientFiles["node"]))
	command.Env = environ
	output, err := command.CombinedOutput()
	const want = `0 {"deaths":7}
7 {}
7 {}
0 {"deaths":"7"}
0 {"deaths":2.5}
0 {"deaths":-2}
0 {}
2 {"deaths":9}
`
	diff := cmp.Diff(want, string(output))
	failIf(t, diff != "" || err != nil, "%v, deaths and payload (-want +got):\n%s", err, diff)
}
