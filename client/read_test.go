package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/document"
)

func TestAListRefusesWhatNoIndexOfModelsHas(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	must(t, queue.Parts[0].Clients.Write.HSet(t.Context(), queue.Parts[0].Keys.Settings, "layout", 2).Err())
	shop := newClient(t, queue, client.Config{})
	for _, selector := range []string{"", "tenant", "policy=daily", "uid=tbl_1", "waits=hold", "status=due", "tenant!=t1", "tenant=t1|t2", "tenant=t1,", "Tenant=t1", "tenant=t 1"} {
		_, err := shop.List(t.Context(), selector, "", 0)
		refused, is := errors.AsType[*document.Error](err)
		failIf(t, !is || refused.Field != "selector", "%q: expected it refused, found %v", selector, err)
	}
	uids, err := shop.List(t.Context(), "tenant=t1, status=failing", "", 0)
	failIf(t, len(uids) > 0 || err != nil, "expected no model, found %v, %v", uids, err)
}

func TestAReadThatFindsNothingSaysWhetherAnyDaemonHasUsedTheQueue(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{Queue: "tabels"})
	shop, ctx := newClient(t, queue, client.Config{}), t.Context()
	write, keys := queue.Parts[0].Clients.Write, queue.Parts[0].Keys
	for sign, used := range map[string]bool{"none": false, "layout": true, "poller": true} {
		must(t, write.FlushAll(ctx).Err())
		switch sign {
		case "layout":
			must(t, write.HSet(ctx, keys.Settings, "layout", 2).Err())
		case "poller":
			must(t, write.ZAdd(ctx, keys.Pollers, redis.Z{Score: 1, Member: "p"}).Err())
		}
		_, get := shop.Get(ctx, "a")
		_, history := shop.History(ctx, "a", 10)
		_, list := shop.List(ctx, "tenant=t1", "", 0)
		failIf(t, !errors.Is(get, client.ErrUnknownModel), "expected ErrUnknownModel, found %v", get)
		for name, err := range map[string]error{"get": get, "history": history, "list": list} {
			says := err != nil && strings.HasSuffix(err.Error(), "queue tabels: nothing was ever stored in it")
			failIf(t, errors.Is(err, client.ErrUnused) == used || says == used, "%s, %s: found %v", sign, name, err)
		}
		failIf(t, used && (history != nil || list != nil), "expected no errors, found %v, %v", history, list)
	}
}

func TestAListPicksByTheHostOfTheInputURL(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	serve(t, queue)
	shop := newClient(t, queue, client.Config{})
	for uid, address := range map[string]string{"a": "https://one.example/feed", "b": "https://two.example/feed"} {
		_, err := shop.Put(t.Context(), client.Definition{UID: uid, Payload: map[string]any{"input_url": address}})
		must(t, err)
	}
	uids, err := shop.List(t.Context(), "host=two.example", "", 0)
	if want := []string{"b"}; err != nil || !slices.Equal(uids, want) {
		t.Errorf("got %v, %v, want %v", uids, err, want)
	}
}

func TestAModelThatCannotBeReadIsBroken(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	write, keys, shop := queue.Parts[0].Clients.Write, queue.Parts[0].Keys, newClient(t, queue, client.Config{})
	must(t, write.RPush(t.Context(), keys.Model("list"), "no model").Err())
	must(t, write.HSet(t.Context(), keys.Model("timeless"), "refresh_at", "tomorrow", "label:tenant", "t1").Err())
	must(t, write.HSet(t.Context(), keys.Model("disabled"), "refresh_at", "tomorrow", "refresh_disabled_until_update", "1").Err())
	for uid, want := range map[string]string{"list": "WRONGTYPE", "timeless": `refresh_at: expected an RFC 3339 time, found "tomorrow"`} {
		_, err := shop.Get(t.Context(), uid)
		failIf(t, !errors.Is(err, client.ErrBroken) || !strings.Contains(err.Error(), want), "%s: expected %s, found %v", uid, want, err)
	}
	m, err := shop.Get(t.Context(), "timeless")
	failIf(t, m.Labels["tenant"] != "t1" || err == nil, "expected what can be read, found %+v, %v", m, err)
	m, err = shop.Get(t.Context(), "disabled")
	failIf(t, !m.Disabled || err != nil, "expected it disabled, found %+v, %v", m.State, err)
}

func TestAHistoryHasAtMostSoManyAttempts(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	part := queue.Parts[0]
	for no := range 3 {
		must(t, part.Clients.Write.LPush(t.Context(), part.Keys.History("a"), fmt.Sprintf(`{"at":"2026-11-21T07:00:00.000Z","no":%d}`, no)).Err())
	}
	for n, want := range map[int]int{-1: 0, 0: 0, 2: 2, 9: 3} {
		past, err := newClient(t, queue, client.Config{}).History(t.Context(), "a", n)
		failIf(t, len(past) != want || err != nil || want > 0 && past[0].AttemptNo != 2, "%d: expected %d attempts, found %+v, %v", n, want, past, err)
	}
}

// TestNoMoreCommandsWaitForTheirRepliesThanAListKeeps counts the commands of each push: no other one begins before they are answered.
func TestNoMoreCommandsWaitForTheirRepliesThanAListKeeps(t *testing.T) {
	t.Parallel()
	s := testkit.Miniredis(t)
	serve(t, fixture.Open(t, s.URL, store.Config{}))
	clients, pushed, taken := fixture.Connect(t, s.URL), 0, 0
	hook := testkit.Hook(func(_ context.Context, commands []redis.Cmder, next func() error) error {
		err := next()
		switch command := commands[0]; {
		case command.Name() == "rpush":
			pushed += len(command.Args()) - 2
			failIf(t, pushed-taken > 500, "%d commands wait for their replies", pushed-taken)
		case command.Name() == "blpop" && command.Err() == nil:
			taken++
		}
		return err
	})
	clients.Write.AddHook(hook)
	if clients.Block != clients.Write {
		clients.Block.AddHook(hook)
	}
	queue := check.Got(store.Open(t.Context(), clients, store.Config{}))(t)
	var definitions []client.Definition
	for i := range 1200 {
		definitions = append(definitions, client.Definition{UID: fmt.Sprint("m", i)})
	}
	replies, err := newClient(t, queue, client.Config{Timeout: check.Limit}).PutMany(t.Context(), definitions)
	stopIf(t, len(replies) != 1200 || pushed != 1200 || taken != 1200 || err != nil, "expected 1200 replies, found %d of %d pushed, %d taken, %v", len(replies), pushed, taken, err)
	for i, reply := range replies {
		failIf(t, reply.UID != definitions[i].UID || reply.Outcome != client.Applied, "%s: found %+v", definitions[i].UID, reply)
	}
}
