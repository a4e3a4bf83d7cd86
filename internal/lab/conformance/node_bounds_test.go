package conformance_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// TestOneDamagedModelHidesNoOtherFromANodeWorker damages a model in each way, and ends the attempt of a sound one then.
func TestOneDamagedModelHidesNoOtherFromANodeWorker(t *testing.T) {
	t.Parallel()
	const watching = `const { existsSync } = require("fs");
new (require("refreshd.js").Worker)(async (a) => {
	a.signal.addEventListener("abort", () => console.log(a.uid, a.why));
	while (!existsSync(process.env.GATE)) await a.sleep(0.02);
	console.log(a.uid, "has the deadline", a.deadline);
}, { fenceEvery: 0.1, grace: 0.1 }).run()`
	s, gate := testkit.Redis(t), t.TempDir()+"/gate"
	client := s.Client(t)
	worker := startHandler(t, "node", watching, s.URL, "REFRESHD_QUEUE=q", "GATE="+gate)
	for _, uid := range []string{"sound", "list", "time"} {
		push(t, client, uid, `,"deadline_at":"soon"`)
		check.Equal(t, heard(t, client), "started "+uid)
	}
	_, err := client.TxPipelined(t.Context(), func(both redis.Pipeliner) error { // a worker that found no model would stop
		both.Del(t.Context(), "q:model:list")
		return both.RPush(t.Context(), "q:model:list", "no hash").Err()
	})
	must(t, err)
	must(t, client.HSet(t.Context(), "q:model:time", "deadline_at", "no time", "processing_at", "2026-01-05T06:00:00Z").Err())
	worker.AwaitOutput(t, "comparing the attempts in hand: WRONGTYPE")
	must(t, client.HSet(t.Context(), "q:model:sound", "attempt_uid", "another").Err())
	worker.AwaitOutput(t, "sound fence_lost")
	must(t, os.WriteFile(gate, nil, 0o600))
	for range 2 {
		said := heard(t, client)
		failIf(t, said != "success list" && said != "success time", "expected both to succeed, found %s", said)
	}
	worker.AwaitOutput(t, "time has the deadline null")
	check.Equal(t, worker.Stop(), 0)
}

func TestANodeWorkerCutsTextsAt2000CharactersAndALogAt64KiB(t *testing.T) {
	t.Parallel()
	const long = `const { Worker, Failure } = require("refreshd.js");
new Worker((a) => {
	a.status("s".repeat(5000)); a.log("l".repeat(70000));
	throw new Failure("r".repeat(5000), { errorType: "e".repeat(5000), userFriendlyReason: "u".repeat(5000) });
}).run()`
	s := testkit.Redis(t)
	client := s.Client(t)
	startHandler(t, "node", long, s.URL, "REFRESHD_QUEUE=q")
	push(t, client, "m", "")
	check.Equal(t, await(t, client, "user_friendly_status", "m").Status, strings.Repeat("s", 2000))
	reply := check.Got(client.BLPop(t.Context(), check.Limit, "q-output").Result())(t)
	failed := map[string]any{}
	must(t, json.Unmarshal([]byte(reply[1]), &failed))
	for field, want := range map[string]string{"reason": "r", "error_type": "e", "user_friendly_reason": "u"} {
		failIf(t, failed[field] != strings.Repeat(want, 2000), "%s: expected 2,000 characters, found %.3000v", field, failed[field])
	}
	failIf(t, failed["log"] != strings.Repeat("l", 65_536), "expected 64 KiB of log, found %.100v", failed["log"])
}

var callsOfScripts = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// TestANodeWorkerRestsWhileAnOperatorAsksItTo counts its requests to Redis while there is work that it may not take.
func TestANodeWorkerRestsWhileAnOperatorAsksItTo(t *testing.T) {
	long.Only(t)
	for _, order := range []string{"quiet ann", "a word of a later release"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			s := testkit.Redis(t)
			client, worker := s.Client(t), startClient(t, "node", s.URL)
			push(t, client, "a", "")
			check.Equal(t, heard(t, client), "started a")
			check.Equal(t, heard(t, client), "success a")
			name := owner(t, client)
			must(t, client.HSet(t.Context(), "q:orders", name, order).Err())
			last := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
			beats := func(more float64) { // lets so many milliseconds pass
				begun := last()
				check.Eventually(t, "heartbeats", func() bool { return last() > begun+more })
			}
			beats(1500) // it has heard of the order
			push(t, client, "b", "")
			calls := func() int {
				found := callsOfScripts.FindStringSubmatch(client.Info(t.Context(), "commandstats").Val())
				return check.Got(strconv.Atoi(found[1]))(t)
			}
			begun, asked := last(), calls()
			beats(4000)
			seconds := (last() - begun) / 1000
			failIf(t, float64(calls()-asked) > 3*seconds+3, "expected about two calls a second, a heartbeat and a look, found %d in %.0f s", calls()-asked, seconds)
			check.Equal(t, client.LLen(t.Context(), "q-input").Val(), int64(1))
			must(t, client.HDel(t.Context(), "q:orders", name).Err())
			check.Equal(t, heard(t, client), "started b")
			check.Equal(t, heard(t, client), "success b")
			must(t, client.HSet(t.Context(), "q:orders", name, "stop ann").Err())
			check.Equal(t, worker.Wait(), 0)
		})
	}
}

// TestANodeWorkerGivesUpAResultAMinuteAfterADeadlineThatNobodyBegan has its clock go on by that minute.
func TestANodeWorkerGivesUpAResultAMinuteAfterADeadlineThatNobodyBegan(t *testing.T) {
	long.Only(t)
	t.Parallel()
	const late = `const fs = require("fs"), now = Date.now;
Date.now = () => now() + (fs.existsSync(process.env.LATER) ? 61_000 : 0);
` + gatedNode
	s, dir := testkit.Redis(t, "--save", ""), t.TempDir()
	client := s.Client(t)
	worker := startHandler(t, "node", late, s.URL, "REFRESHD_QUEUE=q", "PLAIN=1", "GATE="+dir+"/gate", "LATER="+dir+"/later")
	const past = "2026-01-05T06:00:00.000Z"
	must(t, client.HSet(t.Context(), "q:model:m", "deadline_at", past).Err())
	push(t, client, "m", `,"deadline_at":"`+past+`"`)
	check.Equal(t, heard(t, client), "started m")
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	must(t, os.WriteFile(dir+"/gate", nil, 0o600))
	refusedPushes(t, client, 8) // for two seconds and more
	must(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	check.Equal(t, heard(t, client), "success m") // it had not given up

	must(t, os.Remove(dir+"/gate"))
	must(t, client.HSet(t.Context(), "q:model:n", "deadline_at", past).Err())
	push(t, client, "n", `,"deadline_at":"`+past+`"`)
	check.Equal(t, heard(t, client), "started n")
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	must(t, os.WriteFile(dir+"/gate", nil, 0o600))
	must(t, os.WriteFile(dir+"/later", nil, 0o600))
	worker.AwaitOutput(t, "attempt of-n of n: success may not have reached redis")
	check.Equal(t, worker.Stop(), 0)
}

// TestANodeWorkerGoesOnWithItsHeartbeatsWhileRepliesWithEntriesAreLost loses what Redis says to each take.
func TestANodeWorkerGoesOnWithItsHeartbeatsWhileRepliesWithEntriesAreLost(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	g, client := newGag(t, s.Addr), s.Client(t)
	worker := startHandler(t, "node", handlers["node"], g.URL, "REFRESHD_QUEUE=q")
	push(t, client, "a", "")
	check.Equal(t, heard(t, client), "started a")
	check.Equal(t, heard(t, client), "success a")
	name := owner(t, client)
	lost := "big_table_uid"
	g.losing.Store(&lost)
	push(t, client, "b", "")
	last := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
	begun := last()
	check.Eventually(t, "it has taken the entry", func() bool { return client.LLen(t.Context(), "q:taken:"+name).Val() == 1 })
	at, until := last(), begun+6000
	check.Eventually(t, "heartbeats for six seconds", func() bool {
		before := at
		at = last()
		stopIf(t, at-before > 4000, "expected a heartbeat within the lease, found none for %.0f ms", at-before)
		return at > until
	})
	g.losing.Store(nil)
	check.Equal(t, heard(t, client), "started b")
	check.Equal(t, heard(t, client), "success b")
	check.Equal(t, owner(t, client), name)
	check.Equal(t, worker.Stop(), 0)
	failIf(t, client.Exists(t.Context(), "q:workers").Val() > 0, "expected no worker to be left")
}

// TestANodeWorkerGoesOnWithItsHeartbeatsThoughItDoesNotKnowWhatItHas loses the reply to a take, and asks the worker to end then: it takes no more.
func TestANodeWorkerGoesOnWithItsHeartbeatsThoughItDoesNotKnowWhatItHas(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	g, client := newGag(t, s.Addr), s.Client(t)
	worker := startHandler(t, "node", `new (require("refreshd.js").Worker)((a) => a.sleep(600), { concurrency: 2 }).run()`, g.URL, "REFRESHD_QUEUE=q")
	push(t, client, "a", "")
	check.Equal(t, heard(t, client), "started a")
	name := owner(t, client)
	lost := "big_table_uid"
	g.losing.Store(&lost)
	push(t, client, "b", "")
	check.Eventually(t, "it has taken the entry", func() bool { return client.LLen(t.Context(), "q:taken:"+name).Val() == 2 })
	worker.Ask()
	last := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
	begun := last()
	check.Eventually(t, "heartbeats for six seconds", func() bool { return last() > begun+6000 })
	check.Equal(t, worker.Wait(), 0)
	check.Equal(t, heard(t, client), "interrupted a")
	check.Equal(t, client.LLen(t.Context(), "q:taken:"+name).Val(), int64(1)) // it comes back with the lease
}

func TestANodeWorkerGoesOnWithItsHeartbeatsWhenItsConnectionsFallSilent(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	g, client := newGag(t, s.Addr), s.Client(t)
	worker := startHandler(t, "node", handlers["node"], g.URL, "REFRESHD_QUEUE=q")
	push(t, client, "a", `,"wait":1`)
	check.Equal(t, heard(t, client), "started a")
	name := owner(t, client)
	g.silence(false)
	last := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
	begun := last()
	check.Eventually(t, "heartbeats for six seconds", func() bool { return last() > begun+6000 })
	must(t, client.HSet(t.Context(), "q:model:a", "attempt_uid", "another").Err())
	check.Equal(t, worker.Stop(), 0)
}
