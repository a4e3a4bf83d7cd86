package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// manifold lists some of many models, and saves more than a list of replies keeps at once: some twice, one wrong.
var manifold = map[string]string{
	"python": `import json, refreshd
def show(*values): print(json.dumps(values, separators=(",", ":")))
shop = refreshd.Client()
show(*shop.list("bulk=1", after="m01000", limit=2))
show(*shop.list("status=failing,bulk=1"))
replies = shop.put_many({"uid": "no uid" if i == 700 else "n%04d" % (i % 1000), "labels": {"kind": "feed"}} for i in range(1100))
show([sum(reply["outcome"] == outcome for reply in replies) for outcome in ("applied", "unchanged", "refused")], replies[700]["field"], replies[1099]["uid"])`,
	"node": `const { Client } = require("refreshd.js"), show = (...values) => console.log(JSON.stringify(values));
(async () => {
const shop = new Client();
show(...await shop.list("bulk=1", { after: "m01000", limit: 2 }));
show(...await shop.list("status=failing,bulk=1"));
const uids = Array.from({ length: 1100 }, (_, i) => i === 700 ? "no uid" : "n" + String(i % 1000).padStart(4, "0"));
const replies = await shop.putMany(uids.map((uid) => ({ uid, labels: { kind: "feed" } })));
show(["applied", "unchanged", "refused"].map((one) => replies.filter(({ outcome }) => outcome === one).length), replies[700].field, replies[1099].uid);
await shop.close();
})()`,
	"php": `require getenv("FILE");
$show = fn (...$values) => print(json_encode($values) . "\n");
$shop = new Refreshd\Client();
$show(...$shop->list("bulk=1", after: "m01000", limit: 2));
$show(...$shop->list("status=failing,bulk=1"));
$uids = array_map(fn ($i) => $i === 700 ? "no uid" : sprintf("n%04d", $i % 1000), range(0, 1099));
$replies = $shop->putMany(array_map(fn ($uid) => ["uid" => $uid, "labels" => ["kind" => "feed"]], $uids));
$outcomes = array_count_values(array_column($replies, "outcome"));
$show([$outcomes["applied"], $outcomes["unchanged"], $outcomes["refused"]], $replies[700]["field"], $replies[1099]["uid"]);`,
}

const manifoldSaid = `["m01001","m01002"]
["m00007","m04999"]
[[999,100,1],"uid","n0099"]
`

func manifoldInGo(t *testing.T, address string) string {
	t.Helper()
	ctx, shop := t.Context(), check.Got(client.Open(t.Context(), address, "q", client.Config{}))(t)
	defer func() { must(t, shop.Close()) }()
	p := pages{t: t, Client: shop}
	p.show(all(check.Got(shop.List(ctx, "bulk=1", "m01000", 1))(t)[0], check.Got(shop.List(ctx, "bulk=1", "m01001", 1))(t))...)
	p.show(all("m00007", p.list("status=failing,bulk=1")[1:])...)
	var definitions []client.Definition
	for i := range 1100 {
		definitions = append(definitions, client.Definition{UID: fmt.Sprintf("n%04d", i%1000), Labels: map[string]string{"kind": "feed"}})
	}
	definitions[700].UID = "no uid"
	replies := check.Got(shop.PutMany(ctx, definitions))(t)
	p.show([]int{count(replies, client.Applied), count(replies, client.Unchanged), count(replies, client.Refused)}, replies[700].Field, replies[1099].UID)
	return p.output.String()
}

// TestAnApplicationListsSomeOfManyModelsAndSavesManyInEachLanguage does so in a queue of three parts.
func TestAnApplicationListsSomeOfManyModelsAndSavesManyInEachLanguage(t *testing.T) {
	for _, language := range append(asking, "go") {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			users := fixture.WithUsersOfParts(t, "q")
			t.Cleanup(func() { users.ExpectNoRefusal(t) })
			admin := fixture.Connect(t, users.Server.URL)
			must(t, store.Create(t.Context(), admin, store.Config{Queue: "q"}, 3))
			pipe := admin.Write.Pipeline()
			for i := range 6000 {
				uid, part := fmt.Sprintf("m%05d", i), threeParts[i%3]
				pipe.SAdd(t.Context(), part+":label:bulk=1", uid)
				if i == 7 || i == 4999 || i == 5999 {
					pipe.ZAdd(t.Context(), part+":failing", redis.Z{Score: 1, Member: uid})
				}
			}
			pipe.SRem(t.Context(), threeParts[5999%3]+":label:bulk=1", "m05999")
			must(t, check.Only(pipe.Exec(t.Context())))
			var daemons []func(context.Context) error
			for _, part := range fixture.Open(t, users.URL(t, acl.Poller), store.Config{Queue: "q"}).Parts {
				daemons = append(daemons, check.Got(poller.New(poller.RoomsOf(part), poller.Config{}))(t).Run)
			}
			check.Run(t, daemons...)
			said, address := "", users.URL(t, acl.Application)
			if language == "go" {
				said = manifoldInGo(t, address)
			} else {
				said = startHandler(t, language, manifold[language], address, "REFRESHD_QUEUE=q").Output()
			}
			diff := cmp.Diff(manifoldSaid, said)
			failIf(t, diff != "", "output (-want +got):\n%s", diff)
		})
	}
}

// unanswered sends a command that nobody answers, and prints the error.
var unanswered = map[string]string{
	"python": `import refreshd
try: refreshd.Client(timeout=1).run("m", command_id="c1")
except refreshd.NoReply as error: print(error)`,
	"node": `const { Client, NoReply } = require("refreshd.js"), shop = new Client({ timeout: 1 });
shop.run("m", { commandId: "c1" }).catch((error) => console.log(error instanceof NoReply && error.message)).finally(() => shop.close())`,
	"php": `require getenv("FILE");
try { (new Refreshd\Client(timeout: 1))->run("m", commandId: "c1"); } catch (Refreshd\NoReply $error) { echo $error->getMessage(), "\n"; }`,
}

func unansweredInGo(t *testing.T, address string) string {
	t.Helper()
	shop := check.Got(client.Open(t.Context(), address, "q", client.Config{Timeout: time.Second, NewID: func() string { return "c1" }}))(t)
	defer func() { must(t, shop.Close()) }()
	_, err := shop.Run(t.Context(), "m", false)
	return strings.TrimPrefix(fmt.Sprintln(err), "run m: ")
}

// TestWithoutAReplyTheErrorNamesTheQueueAndWhetherAPollerLives has the same words in each language.
func TestWithoutAReplyTheErrorNamesTheQueueAndWhetherAPollerLives(t *testing.T) {
	const begins = "no reply to the command c1 about m in the queue q within 1 s"
	for name, c := range map[string]struct {
		heartbeat time.Duration // how long ago; negative: ahead, as the machine may be busy for seconds; 0: none
		may       bool          // the user may ask
		want      string
	}{
		"none":           {0, true, begins + ": no poller is running\n"},
		"one lives":      {-time.Minute, true, begins + ": a poller lives; to a command that is larger than its "},
		"one has died":   {1000 * time.Hour, true, begins + ": no poller has given a heartbeat for 36000"},
		"it may not ask": {-time.Minute, false, begins + "\n"},
	} {
		for _, language := range append(asking, "go") {
			t.Run(name+" "+language, func(t *testing.T) {
				if name != "none" && (language == "node" || language == "php") {
					long.Only(t)
				}
				t.Parallel()
				users := fixture.WithUsers(t, "q")
				admin := users.Server.Client(t)
				if c.heartbeat != 0 {
					must(t, admin.ZAdd(t.Context(), "q:pollers", redis.Z{Score: float64(time.Now().Add(-c.heartbeat).UnixMilli()), Member: "p"}).Err())
				}
				address := users.URL(t, acl.Application)
				if !c.may {
					rules := []any{"ACL", "SETUSER", "old", "on", ">secret", "~q*", "~{q}:settings", "+hget", "+rpush", "+blpop"}
					must(t, admin.Do(t.Context(), rules...).Err())
					address = "redis://old:secret@" + users.Server.Addr
				}
				said := ""
				if language == "go" {
					said = unansweredInGo(t, address)
				} else {
					said = startHandler(t, language, unanswered[language], address, "REFRESHD_QUEUE=q").Output()
				}
				failIf(t, !strings.HasPrefix(said, c.want), "expected %q, found %q", c.want, said)
			})
		}
	}
}

// TestThePythonClientServesAnEventLoop saves models side by side.
func TestThePythonClientServesAnEventLoop(t *testing.T) {
	t.Parallel()
	users := fixture.WithUsers(t, "q")
	p := check.Got(poller.New(poller.RoomsOf(users.Store(t, acl.Poller)), poller.Config{}))(t)
	check.Run(t, p.Run)
	said := startHandler(t, "python", `import asyncio, datetime, refreshd
async def save():
    shop = refreshd.AsyncClient(by="shop")
    replies = await asyncio.gather(*(shop.put(uid, rrule="every day at 6 AM", labels={"kind": "feed"}) for uid in ("a", "b", "c")))
    print([reply["outcome"] for reply in replies], await shop.list("kind=feed"), (await shop.get("a")).state)
    print((await shop.hold("h", "move", for_=datetime.timedelta(hours=1), within=datetime.timedelta(minutes=1)))["outcome"])
asyncio.run(save())`, users.URL(t, acl.Application), "REFRESHD_QUEUE=q").Output()
	check.Equal(t, said, "['applied', 'applied', 'applied'] ['a', 'b', 'c'] scheduled\napplied\n")
}
