package conformance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// mistaken asks for what no list has, by the wrong names, and shows the errors; then for hosts in other letters.
var mistaken = map[string]string{
	"python": `import json, refreshd
def refused(call):
    try: call()
    except ValueError as error: print(error)
shop = refreshd.Client()
for selector in json.loads(SELECTORS): refused(lambda: shop.list(selector))
for make in (refreshd.Client, lambda **more: refreshd.Worker(print, **more)): refused(lambda: make(queue="a b"))
for selector in ("host=Shop.Example", "kind=feed,host=Shop.Example", "host=Written.Example", "kind=Feed"): print(*shop.list(selector))`,
	"node": `const { Client, Worker } = require("refreshd.js"), shop = new Client();
const refused = (error) => console.log(error.message);
(async () => {
for (const selector of JSON.parse(SELECTORS)) await shop.list(selector).catch(refused);
for (const make of [() => new Client({ queue: "a b" }), () => new Worker(console.log, { queue: "a b" })]) { try { make(); } catch (error) { refused(error); } }
for (const selector of ["host=Shop.Example", "kind=feed,host=Shop.Example", "host=Written.Example", "kind=Feed"]) console.log(...await shop.list(selector));
await shop.close();
})()`,
	"php": `require getenv("FILE");
$refused = function (callable $call) { try { $call(); } catch (InvalidArgumentException $error) { echo $error->getMessage(), "\n"; } };
$shop = new Refreshd\Client();
foreach (json_decode(SELECTORS) as $selector) { $refused(fn () => $shop->list($selector)); }
$refused(fn () => new Refreshd\Client(queue: "a b"));
$refused(fn () => new Refreshd\Worker(strlen(...), queue: "a b"));
foreach (["host=Shop.Example", "kind=feed,host=Shop.Example", "host=Written.Example", "kind=Feed"] as $selector) { echo implode(" ", $shop->list($selector)), "\n"; }`,
}

var noSelectors = []string{"status=failing|late", "status=queued", "tenant=t1|t2", "tenant!=t1", "uid=tbl_1", "key=host=example.com", "host=münchen.de", "tenant=t1,"}

const (
	noTerm       = `selector: expected labels such as tenant=t1 and one status of disabled, failing, late, parked, running or stale, with commas between them, found `
	noQueue      = `queue: expected 1-64 letters, digits or _.- as in "bigtables" or "{bigtables:3}", found "a b"` + "\n"
	mistakenSaid = noTerm + `"status=failing|late"
` + noTerm + `"status=queued"
` + noTerm + `"tenant=t1|t2"
` + noTerm + `"tenant!=t1"
` + noTerm + `"uid=tbl_1"
` + noTerm + `"key=host=example.com"
selector: expected for host a label: 1-60 letters, digits or _.:/@+-, found "münchen.de"
` + noTerm + `""
` + noQueue + noQueue + `a b
a
c

`
)

func mistakenInGo(t *testing.T, address string) string {
	t.Helper()
	var said strings.Builder
	shop := check.Got(client.Open(t.Context(), address, "q", client.Config{}))(t)
	defer func() { must(t, shop.Close()) }()
	for _, selector := range noSelectors {
		_, err := shop.List(t.Context(), selector, "", 0)
		fmt.Fprintln(&said, err)
	}
	_, err := client.Open(t.Context(), address, "a b", client.Config{})
	for range 2 { // there is no other one that has the name of a queue
		fmt.Fprintln(&said, strings.TrimPrefix(fmt.Sprint(err), "client: "))
	}
	for _, selector := range []string{"host=Shop.Example", "kind=feed,host=Shop.Example", "host=Written.Example", "kind=Feed"} {
		fmt.Fprintln(&said, strings.Join(check.Got(shop.List(t.Context(), selector, "", 0))(t), " "))
	}
	return said.String()
}

// TestAnApplicationIsToldWhatItMistookAlikeInEachLanguage has labels of hosts, most of which are stored in small letters.
func TestAnApplicationIsToldWhatItMistookAlikeInEachLanguage(t *testing.T) {
	for _, language := range append(slices.Clone(asking), "go") {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			users := fixture.WithUsers(t, "q")
			t.Cleanup(func() { users.ExpectNoRefusal(t) })
			pipe := users.Server.Client(t).Pipeline()
			pipe.HSet(t.Context(), "{q}:settings", "layout", 2)
			pipe.SAdd(t.Context(), "q:label:host=shop.example", "a", "b")
			pipe.SAdd(t.Context(), "q:label:host=Written.Example", "c")
			pipe.SAdd(t.Context(), "q:label:host=written.example", "d")
			pipe.SAdd(t.Context(), "q:label:kind=feed", "a", "c")
			must(t, check.Only(pipe.Exec(t.Context())))
			said, address := "", users.URL(t, acl.Application)
			if language == "go" {
				said = mistakenInGo(t, address)
			} else {
				selectors := "'" + string(check.Got(json.Marshal(noSelectors))(t)) + "'"
				said = startHandler(t, language, strings.ReplaceAll(mistaken[language], "SELECTORS", selectors), address, "REFRESHD_QUEUE=q").Output()
			}
			diff := cmp.Diff(mistakenSaid, said)
			failIf(t, diff != "", "output (-want +got):\n%s", diff)
		})
	}
}

// lost reads twice what was never stored.
var lost = map[string]string{
	"python": `import refreshd
shop = refreshd.Client()
print(shop.get("a"), shop.history("a"), shop.list("kind=feed"))`,
	"node": `const { Client } = require("refreshd.js"), shop = new Client();
(async () => {
console.log(await shop.get("a") ?? "None", ...[await shop.history("a"), await shop.list("kind=feed")].map((one) => JSON.stringify(one)));
await shop.close();
})()`,
	"php": `require getenv("FILE");
$shop = new Refreshd\Client();
echo $shop->get("a") ?? "None", " ", json_encode($shop->history("a")), " ", json_encode($shop->list("kind=feed")), "\n";`,
}

// TestAClientThatFindsNothingInAQueueThatNobodyHasUsedWarnsOnceThatItsNameMayBeWrong finds nothing, as an application may start before the daemons.
func TestAClientThatFindsNothingInAQueueThatNobodyHasUsedWarnsOnceThatItsNameMayBeWrong(t *testing.T) {
	const warning = "queue tabels: nothing was ever stored in it"
	for _, language := range asking {
		for sign, want := range map[string]int{"no sign": 1, "layout": 0, "poller": 0} {
			t.Run(language+" "+sign, func(t *testing.T) {
				t.Parallel()
				server := testkit.Redis(t)
				switch sign {
				case "layout":
					must(t, server.Client(t).HSet(t.Context(), "{tabels}:settings", "layout", 2).Err())
				case "poller":
					must(t, server.Client(t).ZAdd(t.Context(), "tabels:pollers", redis.Z{Score: 1, Member: "p"}).Err())
				}
				said := startHandler(t, language, lost[language], server.URL, "REFRESHD_QUEUE=tabels").Output()
				failIf(t, !strings.Contains(said, "None [] []\n"), "expected nothing to be found, got %s", said)
				failIf(t, strings.Count(said, warning) != want, "expected %d warnings, found %s", want, said)
			})
		}
	}
}

// halved saves a text that UTF-8 cannot write.
var halved = map[string]string{
	"python": `import refreshd
for payload in ({"rows": ["fine 😀", {"name": "half \ud83d"}]}, {"names": {"\ude00": 1}}, {"fine": "😀 \\ud83d"}):
    try: refreshd.Client(timeout=None).put("m", payload)
    except ValueError as error: print(error)`,
	"node": `const { Client } = require("refreshd.js"), shop = new Client({ timeout: 0 });
(async () => {
for (const payload of [{ rows: ["fine 😀", { name: "half \ud83d" }] }, { names: { "\ude00": 1 } }, { fine: "😀 \\ud83d" }]) {
  await shop.put("m", payload).catch((error) => console.log(error.message));
}
await shop.close();
})()`,
	"php": `require getenv("FILE");
foreach ([["rows" => ["fine 😀", ["name" => "half \xF0\x9F"]]], ["names" => ["\x98" => 1]], ["fine" => "😀 \\ud83d"]] as $payload) {
    try { (new Refreshd\Client(timeout: 0))->put("m", $payload); } catch (InvalidArgumentException $error) { echo str_replace('"', "", $error->getMessage()), "\n"; }
}`,
}

func TestATextOfHalfACharacterIsRefusedByItsField(t *testing.T) {
	for _, language := range asking {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			server := testkit.Redis(t)
			said := startHandler(t, language, halved[language], server.URL, "REFRESHD_QUEUE=q").Output()
			const want = "put m: payload.rows[1].name: expected a text in UTF-8, found one that is not\n" +
				"put m: payload.names: expected a text in UTF-8, found one that is not\n"
			check.Equal(t, said, want)
			sent := check.Got(server.Client(t).LPop(t.Context(), "q-control").Result())(t)
			var command struct{ Payload struct{ Fine string } }
			must(t, json.Unmarshal([]byte(sent), &command))
			check.Equal(t, command.Payload.Fine, `😀 \ud83d`)
		})
	}
}

// TestAnEmptyArrayOfPHPIsAnObjectWhereTheWireWantsOne sends what a poller has to take.
func TestAnEmptyArrayOfPHPIsAnObjectWhereTheWireWantsOne(t *testing.T) {
	t.Parallel()
	users := fixture.WithUsers(t, "q")
	startPoller(t, users.URL(t, acl.Poller))
	said := startHandler(t, "php", `require getenv("FILE");
$shop = new Refreshd\Client();
$empty = ["labels" => [], "policy" => ["delays_by_error" => []]];
foreach ([$shop->put("a", [], $empty), $shop->put("b", ["x", []], ["policy" => []]), $shop->put("c")] as $reply) { echo $reply["outcome"], "\n"; }
echo $shop->putMany([["uid" => "d", "payload" => []] + $empty])[0]["outcome"], "\n";`, users.URL(t, acl.Application), "REFRESHD_QUEUE=q").Output()
	check.Equal(t, said, "applied\napplied\napplied\napplied\n")
	check.Equal(t, users.Server.Client(t).Get(t.Context(), "q:payload:b").Val(), `{"0":"x","1":[]}`)
}
