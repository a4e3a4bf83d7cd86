package conformance_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// damaged reads what no client should trust, and asks for what none should get.
var damaged = map[string]string{
	"python": `import json, refreshd
def show(*values): print(json.dumps(values, separators=(",", ":")))
def refused(call):
    try: call()
    except (TypeError, ValueError) as error: show(str(error))
shop = refreshd.Client()
for uid in "ab":
    found = shop.get(uid)
    show(found.state, found.progress, found.last_success_at)
show(shop.history("a"))
show(*shop.list("status=late"))
show(*shop.list("kind=feed,status=late"))
refused(lambda: shop.list("key=host=example.com"))
refused(lambda: shop.list("kind=feed", limit=0))
refused(lambda: shop.get(5))
refused(lambda: shop.put("c", {"rows": float("nan")}))
try: shop.run("nobody", command_id="of:no@list")
except refreshd.Refused as error: show(error.counter)
show(*(reply["uid"] for reply in shop.put_many({"uid": uid} for uid in ("s1", "s2"))))
shop.close()
show(shop.get("s1").uid)`,
	"node": `const { Client } = require("refreshd.js"), show = (...values) => console.log(JSON.stringify(values));
const refused = (promise) => promise.catch((error) => show(error.message));
(async () => {
const shop = new Client();
for (const uid of "ab") { const found = await shop.get(uid); show(found.state, found.progress, found.lastSuccessAt); }
show(await shop.history("a"));
show(...await shop.list("status=late"));
show(...await shop.list("kind=feed,status=late"));
await refused(shop.list("key=host=example.com"));
await refused(shop.list("kind=feed", { limit: 0 }));
await refused(shop.get(5));
await refused(shop.put("c", { rows: NaN }));
await shop.run("nobody", { commandId: "of:no@list" }).catch((error) => show(error.counter));
show(...(await shop.putMany([{ uid: "s1" }, { uid: "s2" }][Symbol.iterator]())).map((reply) => reply.uid));
await shop.close();
const later = new Client();
show((await later.get("s1")).uid);
await later.close();
})()`,
	"php": `require getenv("FILE");
$show = fn (...$values) => print(json_encode($values, JSON_UNESCAPED_SLASHES) . "\n");
$refused = function (callable $call) use ($show) { try { $call(); } catch (InvalidArgumentException | TypeError $error) { $show($error->getMessage()); } };
$shop = new Refreshd\Client();
foreach (["a", "b"] as $uid) { $found = $shop->get($uid); $show($found->state, $found->progress, $found->lastSuccessAt); }
$show($shop->history("a"));
$show(...$shop->list("status=late"));
$show(...$shop->list("kind=feed,status=late"));
$refused(fn () => $shop->list("key=host=example.com"));
$refused(fn () => $shop->list("kind=feed", limit: 0));
$refused(fn () => $shop->putMany([["uid" => 5]]));
$refused(fn () => $shop->put("c", ["rows" => NAN]));
try { $shop->run("nobody", commandId: "of:no@list"); } catch (Refreshd\Refused $error) { $show($error->counter); }
$twice = (function () { yield "key" => ["uid" => "s1"]; yield "key" => ["uid" => "s2"]; })();
$show(...array_column($shop->putMany($twice), "uid"));
$show($shop->get("s1")->uid);`,
}

const damagedSaid = `["broken",null,null]
["finished",null,null]
[[{"no":2}]]
["late"]
["late"]
["selector: expected labels such as tenant=t1 and one status of disabled, failing, late, parked, running or stale, with commas between them, found \"key=host=example.com\""]
["limit: expected at least 1, found 0"]
["uid: expected a text, found 5"]
["put c: UNFIT"]
["unknown_model"]
["s1","s2"]
["s1"]
`

// TestAClientReadsWhatIsDamagedAndRefusesWhatNobodyCanGet does so alike in each language.
func TestAClientReadsWhatIsDamagedAndRefusesWhatNobodyCanGet(t *testing.T) {
	for _, language := range asking {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			users := fixture.WithUsers(t, "q")
			pipe := users.Server.Client(t).Pipeline()
			pipe.HSet(t.Context(), "q:model:a", "refresh_at", "tomorrow", "progress", "many", "last_success_at", "yesterday")
			pipe.HSet(t.Context(), "q:model:b", "attempt_uid", "", "refresh_disabled_until_update", "", "refresh_at", "")
			pipe.RPush(t.Context(), "q:history:a", "no JSON", `{"no":2}`, "[5]")
			pipe.ZAdd(t.Context(), "q:late", redis.Z{Score: 1, Member: "late"}, redis.Z{Score: float64(model.Never.UnixMilli()), Member: "never"})
			pipe.SAdd(t.Context(), "q:label:kind=feed", "late", "never")
			must(t, check.Only(pipe.Exec(t.Context())))
			startPoller(t, users.URL(t, acl.Poller))
			said := startHandler(t, language, damaged[language], users.URL(t, acl.Application), "REFRESHD_QUEUE=q").Output()
			for _, unfit := range []string{
				"Out of range float values are not JSON compliant", "payload.rows: expected a value that JSON has, found NaN", "Inf and NaN cannot be JSON encoded",
			} {
				said = strings.ReplaceAll(said, unfit, "UNFIT")
			}
			said = strings.ReplaceAll(said, `put \"c\"`, "put c")
			diff := cmp.Diff(damagedSaid, said)
			failIf(t, diff != "", "output (-want +got):\n%s", diff)
		})
	}
}

func startPoller(t *testing.T, address string) {
	t.Helper()
	part := fixture.Open(t, address, store.Config{Queue: "q"}).Parts[0]
	check.Run(t, check.Got(poller.New(poller.RoomsOf(part), poller.Config{}))(t).Run)
}

// oversized saves many models, of which one is too large for a poller.
var oversized = map[string]string{
	"python": `import refreshd
try: refreshd.Client(timeout=1).put_many({"uid": uid, "payload": {"text": "x" * (1 << 20 if uid == "big" else 9)}} for uid in ("a", "big", "c"))
except refreshd.NoReply as error: print([reply and reply["outcome"] for reply in error.replies], error.uids, "refreshd rejected ls" in str(error))`,
	"node": `const { Client } = require("refreshd.js"), shop = new Client({ timeout: 1 });
const models = ["a", "big", "c"].map((uid) => ({ uid, payload: { text: "x".repeat(uid === "big" ? 1 << 20 : 9) } }));
const list = (texts) => "[" + texts.map((text) => text ? "'" + text + "'" : "None").join(", ") + "]";
shop.putMany(models).catch(({ replies, uids, message }) =>
  console.log(list(replies.map((reply) => reply?.outcome)), list(uids), message.includes("refreshd rejected ls") ? "True" : message)).finally(() => shop.close())`,
	"php": `require getenv("FILE");
$models = array_map(fn ($uid) => ["uid" => $uid, "payload" => ["text" => str_repeat("x", $uid === "big" ? 1 << 20 : 9)]], ["a", "big", "c"]);
$list = fn ($texts) => "[" . implode(", ", array_map(fn ($text) => $text === null ? "None" : "'$text'", $texts)) . "]";
try { (new Refreshd\Client(timeout: 1))->putMany($models); } catch (Refreshd\NoReply $error) {
    echo $list(array_map(fn ($reply) => $reply["outcome"] ?? null, $error->replies)), " ", $list($error->uids), " ",
        str_contains($error->getMessage(), "refreshd rejected ls") ? "True" : $error->getMessage(), "\n";
}`,
}

func TestNoReplyNamesTheCommandThatIsTooLargeAndHasTheRepliesSoFar(t *testing.T) {
	for _, language := range asking {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			users := fixture.WithUsers(t, "q")
			startPoller(t, users.URL(t, acl.Poller))
			said := startHandler(t, language, oversized[language], users.URL(t, acl.Application), "REFRESHD_QUEUE=q").Output()
			check.Equal(t, said, "['applied', None] ['big'] True\n")
		})
	}
}

// wide saves 40 models of 60 kB each, which nobody answers.
var wide = map[string]string{
	"python": `import refreshd
try: refreshd.Client(timeout=1).put_many({"uid": "m%d" % i, "payload": {"text": "x" * 60000}} for i in range(40))
except refreshd.NoReply as error: print(len(error.uids))`,
	"node": `const { Client } = require("refreshd.js"), shop = new Client({ timeout: 1 });
const models = Array.from({ length: 40 }, (_, i) => ({ uid: "m" + i, payload: { text: "x".repeat(60000) } }));
shop.putMany(models).catch(({ uids }) => console.log(uids.length)).finally(() => shop.close())`,
	"php": `require getenv("FILE");
$models = array_map(fn ($i) => ["uid" => "m$i", "payload" => ["text" => str_repeat("x", 60000)]], range(0, 39));
try { (new Refreshd\Client(timeout: 1))->putMany($models); } catch (Refreshd\NoReply $error) { echo count($error->uids), "\n"; }`,
}

func TestOfManyModelsOneMebibyteIsPushedAtOnce(t *testing.T) {
	for _, language := range asking {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			server := testkit.Redis(t)
			said := startHandler(t, language, wide[language], server.URL, "REFRESHD_QUEUE=q").Output()
			check.Equal(t, said, "17\n")
			check.Equal(t, server.Client(t).LLen(t.Context(), "q-control").Val(), int64(17))
		})
	}
}

// unfit saves many models, of which the last one is no JSON, without waiting for replies.
var unfit = map[string]string{
	"python": `import refreshd
try: refreshd.Client(timeout=None).put_many({"uid": "m%d" % i, "payload": {"rows": i if i < 300 else float("nan")}} for i in range(301))
except ValueError as error: print(error)`,
	"node": `const { Client } = require("refreshd.js"), shop = new Client({ timeout: 0 });
const models = Array.from({ length: 301 }, (_, i) => ({ uid: "m" + i, payload: { rows: i < 300 ? i : NaN } }));
shop.putMany(models).catch(({ message }) => console.log(message)).finally(() => shop.close())`,
	"php": `require getenv("FILE");
foreach (["\xFF", fn () => 5] as $unfit) {
    $models = array_map(fn ($i) => ["uid" => "m$i", "payload" => ["rows" => [$i < 300 ? "fine" : $unfit]]], range(0, 300));
    try { (new Refreshd\Client(timeout: 0))->putMany($models); } catch (InvalidArgumentException $error) { echo $error->getMessage(), "\n"; }
}`,
}

func TestWhatIsNoJSONIsRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, language := range asking {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			server := testkit.Redis(t)
			said := startHandler(t, language, unfit[language], server.URL, "REFRESHD_QUEUE=q").Output()
			refused := map[string]int{"python": 1, "node": 1, "php": 2}[language]
			failIf(t, strings.Count(strings.ReplaceAll(said, `"`, ""), "put m300: ") != refused, "expected the model to be named, found %q", said)
			check.Equal(t, server.Client(t).LLen(t.Context(), "q-control").Val(), int64(0))
		})
	}
}

// patient saves a model, and waits long enough.
var patient = map[string]string{
	"python": `import refreshd
print(refreshd.Client(timeout=60).put("a")["outcome"])`,
	"node": `const { Client } = require("refreshd.js"), shop = new Client({ timeout: 60 });
shop.put("a").then(({ outcome }) => console.log(outcome)).finally(() => shop.close())`,
	"php": `require getenv("FILE");
echo (new Refreshd\Client(timeout: 60))->put("a")["outcome"], "\n";`,
}

// TestACommandThatIsLostWithTheConnectionIsPushedAgain forgets the command while its sender waits, and cuts the connection.
func TestACommandThatIsLostWithTheConnectionIsPushedAgain(t *testing.T) {
	for _, language := range asking {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			users := fixture.WithUsers(t, "q")
			admin := users.Server.Client(t)
			sender := startHandler(t, language, patient[language], users.URL(t, acl.Application), "REFRESHD_QUEUE=q")
			blocked := func() bool { return strings.Contains(admin.Info(t.Context(), "clients").Val(), "blocked_clients:1") }
			check.Eventually(t, "it waits", blocked)
			must(t, admin.Del(t.Context(), "q-control").Err())
			must(t, admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
			check.Eventually(t, "it has pushed again", func() bool { return admin.LLen(t.Context(), "q-control").Val() == 1 })
			startPoller(t, users.URL(t, acl.Poller))
			check.Equal(t, sender.Output(), "applied\n")
		})
	}
}

// insistent repeats a command until it is sent to another part of the queue.
var insistent = map[string]string{
	"python": `import refreshd
shop = refreshd.Client(timeout=1)
while True:
    try: shop.run("a")
    except refreshd.NoReply as error:
        if "{q:" in str(error): break`,
	"node": `const { Client } = require("refreshd.js"), shop = new Client({ timeout: 1 });
(async () => {
for (let said = ""; !said.includes("{q:");) await shop.run("a").catch(({ message }) => { said = message; });
await shop.close();
})()`,
	"php": `require getenv("FILE");
$shop = new Refreshd\Client(timeout: 1);
for ($said = ""; !str_contains($said, "{q:");) { try { $shop->run("a"); } catch (Refreshd\NoReply $error) { $said = $error->getMessage(); } }`,
}

func TestWithoutAReplyAClientAsksForThePartsOfTheQueueAnew(t *testing.T) {
	for _, language := range asking {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			server := testkit.Redis(t)
			admin := server.Client(t)
			sender := startHandler(t, language, insistent[language], server.URL, "REFRESHD_QUEUE=q")
			check.Eventually(t, "it has sent", func() bool { return admin.LLen(t.Context(), "q-control").Val() > 0 })
			must(t, admin.HSet(t.Context(), "{q}:settings", "parts", 3).Err())
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			defer context.AfterFunc(ctx, sender.Kill)()
			check.Equal(t, sender.Output(), "")
			failIf(t, ctx.Err() != nil, "expected another part to be asked")
		})
	}
}

func TestAClientLeavesTheConnectionOpenThatItWasGiven(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	must(t, server.Client(t).HSet(t.Context(), "{q}:settings", "layout", 2).Err())
	said := startHandler(t, "node", `const { Client } = require("refreshd.js"), { createClient } = require("redis");
(async () => {
const given = createClient({ url: process.env.REDIS_URL });
await given.connect();
const shop = new Client({ redis: given });
await shop.get("a");
await shop.close();
console.log(await given.ping());
await given.disconnect();
})()`, server.URL, "REFRESHD_QUEUE=q").Output()
	check.Equal(t, said, "PONG\n")
}

func TestAClientOfAnEventLoopHasThreadsOfItsOwnAndEnds(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	must(t, server.Client(t).HSet(t.Context(), "{q}:settings", "layout", 2).Err())
	said := startHandler(t, "python", `import asyncio, copy, refreshd, threading
async def main():
    async with refreshd.AsyncClient() as shop:
        copy.copy(shop)
        print(await asyncio.gather(*(shop.get("a") for _ in range(99))) == [None] * 99)
        print(all(thread.name.startswith("refreshd") for thread in threading.enumerate() if thread is not threading.main_thread()), threading.active_count() <= 33)
    try: await shop.get("a")
    except RuntimeError: print("closed")
asyncio.run(main())`, server.URL, "REFRESHD_QUEUE=q").Output()
	check.Equal(t, said, "True\nTrue True\nclosed\n")
}
