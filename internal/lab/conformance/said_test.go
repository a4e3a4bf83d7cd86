package conformance_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// publishers are workers that count rows, say something, and ask before they publish if the payload says for how many seconds. They publish by a status.
// They are silent for as long as the payload says.
var publishers = map[string]string{
	"python": `
import refreshd, time
def refresh(a):
    a.metric("rows", a.payload["rows"])
    a.metric("bad", float("nan"))
    a.log("an older log"); a.log("x" + "é" * a.payload.get("says", 4) + "\n" + "the end")
    a.log_url = a.payload.get("url")
    for i in range(a.payload.get("steps", 0)):
        time.sleep(0.1); a.alive()
    if a.payload.get("hangs"):
        time.sleep(0.3); a.status("hanging"); time.sleep(a.payload["hangs"])
    if "ask" in a.payload and not a.ready({"bytes": 2}, timeout=a.payload["ask"]): return
    a.status("published")
refreshd.Worker(refresh, concurrency=1, signs_every=0.25).run()`,
	"node": `const { Worker } = require("refreshd.js");
const pause = (s) => new Promise((end) => setTimeout(end, s * 1000));
new Worker(async (a) => {
	a.metric("rows", a.payload.rows);
	a.metric("bad", NaN);
	a.log("an older log"); a.log("x" + "é".repeat(a.payload.says ?? 4) + "\nthe end");
	a.logUrl = a.payload.url;
	for (let i = 0; i < (a.payload.steps ?? 0); i++) { await pause(0.1); a.alive(); }
	if (a.payload.hangs) { await pause(0.3); a.status("hanging"); await pause(a.payload.hangs); }
	if (a.payload.ask && !await a.ready({ bytes: 2 }, a.payload.ask)) return;
	a.status("published");
}, { concurrency: 1, signsEvery: 0.25 }).run()`,
	"php": `require getenv("FILE");
(new Refreshd\Worker(function ($a) {
	$a->metric("rows", $a->payload["rows"]);
	$a->metric("bad", NAN);
	$a->log("an older log"); $a->log("x" . str_repeat("é", $a->payload["says"] ?? 4) . "\nthe end");
	$a->logUrl = $a->payload["url"] ?? null;
	for ($i = 0; $i < ($a->payload["steps"] ?? 0); $i++) { usleep(100_000); $a->alive(); }
	if (isset($a->payload["hangs"])) { usleep(300_000); $a->status("hanging"); usleep((int) ($a->payload["hangs"] * 1e6)); }
	if (isset($a->payload["ask"]) && !$a->ready(["bytes" => 2], $a->payload["ask"])) { return; }
	$a->status("published");
}, signsEvery: 0.25))->run();`,
	"bash": `entry=$(cat); printf x; printf 'é%.0s' {1..40000}; echo; echo the end >&2; sleep 0.2
printf '{"metrics":{"rows":%s}}' "$(jq .rows <<<"$entry")"`,
}

// said is a message of a worker.
type said struct {
	Type, UID, Status, Reason, Log string
	ErrorType                      string `json:"error_type"`
	LogURL                         string `json:"log_url"`
	ReplyTo                        string `json:"reply_to"`
	SignsEvery                     any    `json:"signs_every"`
	Metrics                        map[string]float64
	Published                      *bool
}

// await is the next message of a type about a model; those before it are dropped.
func await(t *testing.T, client redis.UniversalClient, kind, uid string) (m said) {
	t.Helper()
	for {
		reply, err := client.BLPop(t.Context(), check.Limit, "q-output").Result()
		stopIf(t, err != nil, "expected %s of %s: %v", kind, uid, err)
		m = said{}
		must(t, json.Unmarshal([]byte(reply[1]), &m))
		if m.Type == kind && m.UID == uid {
			return m
		}
		stopIf(t, m.Type != "started" && m.Type != "user_friendly_status" && m.Type != "ready", "expected %s of %s, found %.200s", kind, uid, reply[1])
	}
}

// inLanguages runs a test for clients, all but the first with the long tests only.
func inLanguages(t *testing.T, languages []string, test func(t *testing.T, language string)) {
	t.Parallel()
	for i, language := range languages {
		t.Run(language, func(t *testing.T) {
			if i > 0 {
				long.Only(t)
			}
			test(t, language)
		})
	}
}

var asking = []string{"python", "node", "php"}

func TestAClientAsksBeforeItPublishesAndDoesAsItIsTold(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		t.Parallel()
		s := testkit.Redis(t)
		client := s.Client(t)
		worker := startHandler(t, language, publishers[language], s.URL, "REFRESHD_QUEUE=q")
		ask := func(uid, reply string) {
			t.Helper()
			push(t, client, uid, `,"rows":51,"says":40000,"ask":60`)
			ready := await(t, client, "ready", uid)
			check.Equal(t, ready.Metrics, map[string]float64{"rows": 51, "bytes": 2})
			stopIf(t, !strings.HasPrefix(ready.ReplyTo, "q:reply:of-"+uid), "expected a list for the reply, found %q", ready.ReplyTo)
			must(t, client.RPush(t.Context(), ready.ReplyTo, reply).Err())
		}
		ask("a", `{"verdict":"publish"}`)
		for await(t, client, "user_friendly_status", "a").Status != "published" { // else it is a sign of life
		}
		success := await(t, client, "success", "a")
		check.Equal(t, success.Metrics, map[string]float64{"rows": 51, "bytes": 2})
		failIf(t, success.Published != nil || success.Log != strings.Repeat("é", (65536-8)/2)+"\nthe end" || success.LogURL != "",
			"found published %v, a log of %d bytes, %q", success.Published, len(success.Log), success.LogURL)
		for uid, verdict := range map[string]string{"b": "hold", "c": "fail"} {
			ask(uid, `{"verdict":"`+verdict+`","reason":"rows 51: too few"}`)
			success := await(t, client, "success", uid)
			failIf(t, success.Published == nil || *success.Published || len(success.Metrics) != 2, "after %s: %+v", verdict, success)
		}
		ask("d", `{"verdict":"stale"}`)
		push(t, client, "e", `,"rows":51,"ask":0.2,"url":"https://logs.example.com/e"`)
		check.Equal(t, await(t, client, "ready", "e").UID, "e") // nothing more about d
		failure := await(t, client, "failure", "e")
		failIf(t, failure.ErrorType != "no_verdict" || failure.Reason == "" || failure.LogURL != "https://logs.example.com/e" || failure.Log == "",
			"found %+v", failure)
		check.Equal(t, worker.Stop(), 0)
		left := check.Got(client.Keys(t.Context(), "q:taken:*").Result())(t)
		failIf(t, len(left) > 0, "expected no entry to be left, found %q", left)
	})
}

func TestAClientHearsTheVerdictThoughItsConnectionBreaks(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		t.Parallel()
		s := testkit.Redis(t)
		client := s.Client(t)
		startHandler(t, language, publishers[language], s.URL, "REFRESHD_QUEUE=q")
		push(t, client, "m", `,"rows":51,"ask":60`)
		ready := await(t, client, "ready", "m")
		must(t, client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
		must(t, client.RPush(t.Context(), ready.ReplyTo, `{"verdict":"publish"}`).Err())
		failIf(t, await(t, client, "success", "m").Published != nil, "expected that it publishes")
	})
}

// TestAClientGivesSignsOfLifeOnlyWhileItsHandlerDoesSomething lets a handler take some steps and then hang.
func TestAClientGivesSignsOfLifeOnlyWhileItsHandlerDoesSomething(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		t.Parallel()
		s := testkit.Redis(t)
		client := s.Client(t)
		startHandler(t, language, publishers[language], s.URL, "REFRESHD_QUEUE=q")
		push(t, client, "m", `,"rows":51,"steps":12,"hangs":1.5`)
		announced := await(t, client, "started", "m").SignsEvery
		failIf(t, announced != 0.25, "expected signs to be announced, found %v", announced)
		signs := map[string]int{}
		for phase := "working"; phase != "published"; {
			reply := check.Got(client.BLPop(t.Context(), check.Limit, "q-output").Result())(t)
			var m said
			must(t, json.Unmarshal([]byte(reply[1]), &m))
			failIf(t, m.Type != "user_friendly_status", "expected a sign of life, found %s", reply[1])
			phase = cmp.Or(m.Status, phase)
			signs[phase]++
		}
		failIf(t, signs["working"] < 2 || signs["hanging"] != 1, "found signs %v", signs)
	})
}

// TestWhatAClientCountsAndSaysStandsInTheHistoryAndADoubtedSuccessIsHeld lets each of them work for a queue whose policy doubts an empty result.
func TestWhatAClientCountsAndSaysStandsInTheHistoryAndADoubtedSuccessIsHeld(t *testing.T) {
	inLanguages(t, []string{"python", "node", "php", "bash"}, func(t *testing.T, language string) {
		onEachAndACluster(t, func(t *testing.T, s *testkit.Server) {
			q := fixture.Live(t, s)
			d := check.Got(dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{Tick: 50 * time.Millisecond}))(t)
			p := check.Got(poller.New(poller.RoomsOf(q.Store), poller.Config{}))(t)
			check.Run(t, d.Run, p.Run)
			app := check.Got(client.Open(t.Context(), s.URL, q.Store.Keys.Queue, client.Config{}))(t)
			defer func() { must(t, app.Close()) }()
			startHandler(t, language, publishers[language], s.URL, "REFRESHD_QUEUE="+q.Store.Keys.Queue, "REFRESHD_LOG=1")
			for uid, rows := range map[string]int{"good": 51, "empty": 0} {
				must(t, check.Only(app.Put(t.Context(), client.Definition{
					UID: uid, Payload: map[string]any{"rows": rows, "says": 40000, "ask": 60}, Refresh: "now",
					Policy: map[string]any{"guard": []any{map[string]any{"rows": map[string]any{"min": 1}}}, "on_suspect": "hold"},
				})))
			}
			ended := func(uid string) model.Attempt {
				t.Helper()
				var past []model.Attempt
				check.Eventually(t, uid+" is over", func() bool {
					past = check.Got(report.Of(q.Store).History(t.Context(), uid))(t)
					return len(past) > 0
				})
				return past[0]
			}
			good := ended("good")
			failIf(t, !good.Good() || good.Metrics["rows"] != 51 || len(good.Ignored) > 0 || good.LogBytes < 65_000, "found %+v", good)
			empty := ended("empty")
			n, counted := empty.Metrics["rows"]
			failIf(t, empty.Outcome != model.EventSuspect || !counted || n != 0 || !strings.Contains(empty.Suspect, "rows 0"), "found %+v", empty)
			m := check.Got(app.Get(t.Context(), "empty"))(t)
			asks := language != "bash"
			failIf(t, !m.Held() || m.Unpublished != asks || asks && m.UserFriendlyStatus == "published", "found status %q, %+v", m.UserFriendlyStatus, m.State)
		})
	})
}
