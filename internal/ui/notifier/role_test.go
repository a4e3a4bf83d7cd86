package notifier

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// TestEachReaderOfTheOutboxNeedsNoMoreThanItsRoleMay plays a notifier, a dispatcher and a foreign program, each as its own user of Redis.
func TestEachReaderOfTheOutboxNeedsNoMoreThanItsRoleMay(t *testing.T) {
	server := testkit.Redis(t, "--acllog-max-len", "100")
	users := fixture.UsersOn(t, server, "bigtables")
	b := setup(t, server, "channels:\n  all: {list: all}\nroutes:\n- {events: [disabled], models: status!=broken, channels: [all]}")
	b.save("m1", `"payload":{"owner":"a@example.com"}`)
	must(t, b.Store.Clients.LoadScripts(t.Context(), b.Store.Keys.Due))
	b.tell(disabled("m1", "gone"))
	foreign, key := users.Client(t, acl.Subscriber), b.Store.Keys.Outbox
	must(t, foreign.XGroupCreateMkStream(t.Context(), key, "billing", "0").Err())
	n := check.Got(New(users.Store(t, acl.Notifier), b.routes, Config{}))(t)
	for range 2 { // the first call makes the group
		must(t, check.Only(n.Route(t.Context())))
	}
	must(t, check.Only(n.Deliver(t.Context(), "all")))
	if text, err := foreign.LPop(t.Context(), b.Store.Keys.Told("all")).Result(); err != nil || !strings.Contains(text, `"uid":"m1"`) {
		t.Error(text, err)
	}
	read := &redis.XReadGroupArgs{Group: "billing", Consumer: "c1", Streams: []string{key, ">"}, Count: 10, Block: -1}
	streams, err := foreign.XReadGroup(t.Context(), read).Result()
	if err != nil || len(streams[0].Messages) != 1 {
		t.Fatal(streams, err)
	}
	if n := b.unread(); n != 1 {
		t.Errorf("%d entries are left for the foreign program, want one", n)
	}
	must(t, foreign.XAck(t.Context(), key, "billing", streams[0].Messages[0].ID).Err())
	must(t, check.Only(outbox.Of(users.Store(t, acl.Dispatcher)).TrimOutbox(t.Context())))
	left := b.Redis.XLen(t.Context(), key).Val()
	failIf(t, left != 0, "%d entries are left", left)
	must(t, b.Redis.RPush(t.Context(), b.Store.Keys.Undelivered, `{"channel":"all","recipient":"all","notices":["{}"]}`).Err())
	operator := users.Store(t, acl.Operator)
	all, err := outbox.Of(operator).Undelivered(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if moved, err := outbox.Of(operator).RequeueUndelivered(t.Context(), all); err != nil || moved != 1 {
		t.Error(moved, err)
	}
	users.ExpectNoRefusal(t)
}
