package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

// serve runs a poller for each part until the test ends.
func serve(t *testing.T, queue *store.Queue) {
	t.Helper()
	var pollers []func(context.Context) error
	for _, part := range queue.Parts {
		p, err := poller.New(poller.RoomsOf(part), poller.Config{})
		must(t, err)
		pollers = append(pollers, p.Run)
	}
	check.Run(t, pollers...)
}

func newClient(t *testing.T, queue *store.Queue, config client.Config) *client.Client {
	t.Helper()
	c, err := client.New(queue, config)
	must(t, err)
	return c
}

func TestACommandIsCarriedOutAndItsSenderIsToldSo(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, s *testkit.Server) {
		queue := fixture.Open(t, s.URL, store.Config{})
		serve(t, queue)
		ctx := t.Context()
		shop, err := client.Open(ctx, s.URL, queue.Name, client.Config{By: "shop", Timeout: check.Limit})
		must(t, err)
		feed := client.Definition{
			UID: "tbl_1", Payload: map[string]any{"input_url": "https://example.com/a.csv"}, Rule: "every day at 6 AM",
			Policy: map[string]any{"timeout": "1h"}, Labels: map[string]string{"tenant": "t1"},
		}
		for _, step := range []struct {
			name    string
			do      func() (client.Reply, error)
			outcome client.Outcome
			err     error
		}{
			{"put", func() (client.Reply, error) { return shop.Put(ctx, feed) }, client.Applied, nil},
			{"put again", func() (client.Reply, error) { return shop.Put(ctx, feed) }, client.Unchanged, nil},
			{"run", func() (client.Reply, error) { return shop.Run(ctx, "tbl_1", false) }, client.Applied, nil},
			{"disable", func() (client.Reply, error) { return shop.Disable(ctx, "tbl_1", "has not paid") }, client.Applied, nil},
			{"run it then", func() (client.Reply, error) {
				reply, err := shop.Run(ctx, "tbl_1", false)
				text := fmt.Sprint(err)
				failIf(t, !strings.Contains(text, `("has not paid")`) || !strings.Contains(text, "pass force to Run") || strings.Contains(text, "send"), "expected the reason, and what to do in Go, found %s", text)
				return reply, err
			}, client.Refused, client.ErrStopped},
			{"enable", func() (client.Reply, error) { return shop.Enable(ctx, "tbl_1") }, client.Applied, nil},
			{"get", func() (client.Reply, error) {
				m, err := shop.Get(ctx, "tbl_1")
				failIf(t, m.UID != "tbl_1" || m.Labels["tenant"] != "t1", "expected the model as it was saved, found %+v", m)
				return client.Reply{}, err
			}, "", nil},
			{"remove", func() (client.Reply, error) { return shop.Remove(ctx, "tbl_1") }, client.Applied, nil},
			{"run it then", func() (client.Reply, error) { return shop.Run(ctx, "tbl_1", true) }, client.Refused, client.ErrUnknownModel},
			{"get it then", func() (client.Reply, error) { _, err := shop.Get(ctx, "tbl_1"); return client.Reply{}, err }, "", client.ErrUnknownModel},
		} {
			reply, err := step.do()
			failIf(t, reply.Outcome != step.outcome || !errors.Is(err, step.err),
				"%s: expected %q and %v, found %+v and %v", step.name, step.outcome, step.err, reply, err)
		}
		must(t, shop.Close())
		_, err = shop.Get(ctx, "tbl_1")
		failIf(t, err == nil || errors.Is(err, client.ErrUnknownModel), "expected no connection after Close, found %v", err)
	})
}

func TestARefusalNamesTheField(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	serve(t, queue)
	_, err := newClient(t, queue, client.Config{Timeout: check.Limit}).Put(t.Context(), client.Definition{UID: "tbl_1", Timezone: "Mars/Base"})
	refused, is := errors.AsType[*client.RefusedError](err)
	if !is || refused.Reply.Field != "timezone" || refused.Reply.Counter != "malformed" || errors.Is(err, client.ErrBusy) || !strings.Contains(err.Error(), "put tbl_1: timezone") {
		t.Errorf("expected the field timezone refused, found %v", err)
	}
}

func TestWithoutAPollerThereIsNoReply(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	_, err := newClient(t, queue, client.Config{Timeout: time.Second}).Enable(t.Context(), "tbl_1")
	failIf(t, !errors.Is(err, client.ErrNoReply), "expected no reply, found %v", err)
	reply, err := newClient(t, queue, client.Config{Timeout: -1}).Enable(t.Context(), "tbl_1")
	failIf(t, reply != (client.Reply{}) || err != nil, "expected nobody to wait, found %+v, %v", reply, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = newClient(t, queue, client.Config{}).Enable(ctx, "tbl_1")
	failIf(t, !errors.Is(err, context.Canceled), "expected the end of the context, found %v", err)
}

func TestACommandThatWasSentBeforeIsADuplicate(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	serve(t, queue)
	shop := newClient(t, queue, client.Config{Timeout: check.Limit, NewID: func() string { return "c1" }})
	for _, want := range []client.Outcome{client.Applied, client.Duplicate} {
		reply, err := shop.Put(t.Context(), client.Definition{UID: "tbl_1"})
		failIf(t, reply.Outcome != want || err != nil, "expected %s, found %+v, %v", want, reply, err)
	}
}

func TestACommandGoesToThePartOfItsModelAndSoDoesItsReply(t *testing.T) {
	t.Parallel()
	s := testkit.Miniredis(t)
	clients := fixture.Connect(t, s.URL)
	must(t, store.Create(t.Context(), clients, store.Config{}, 4))
	queue := fixture.Open(t, s.URL, store.Config{})
	serve(t, queue)
	shop := newClient(t, queue, client.Config{Timeout: check.Limit})
	for _, uid := range []string{"a", "b", "c", "d"} {
		if _, err := shop.Put(t.Context(), client.Definition{UID: uid}); err != nil {
			t.Error(err)
		}
	}
	for _, part := range queue.Parts {
		stats, err := report.Of(part).Stats(t.Context())
		failIf(t, err != nil || stats.Counters["forwarded"] != 0, "expected nothing to be passed on, found %v, %v", stats.Counters, err)
	}
	part := fixture.Open(t, s.URL, store.Config{Queue: queue.Parts[0].Keys.Queue})
	_, err := client.New(part, client.Config{})
	failIf(t, err == nil, "expected a part of a queue to be refused")
}

// severed loses the connection behind the first command of an application: it is pushed, and nobody hears of it.
func severed() testkit.Hook {
	lost := false
	return func(_ context.Context, commands []redis.Cmder, next func() error) error {
		err := next()
		if commands[0].Name() == "rpush" && !lost {
			lost = true
			return io.ErrUnexpectedEOF
		}
		return err
	}
}

func TestACommandOfWhichNobodyHeardThatItWasPushedIsPushedAgainAndCarriedOutOnce(t *testing.T) {
	t.Parallel()
	s := testkit.Miniredis(t)
	serve(t, fixture.Open(t, s.URL, store.Config{}))
	clients := fixture.Connect(t, s.URL)
	clients.Write.AddHook(severed())
	queue, err := store.Open(t.Context(), clients, store.Config{})
	must(t, err)
	reply, err := newClient(t, queue, client.Config{Timeout: check.Limit}).Put(t.Context(), client.Definition{UID: "tbl_1"})
	stopIf(t, reply.Outcome != client.Applied || err != nil, "expected it applied, found %+v, %v", reply, err)
	check.Eventually(t, "the second one is a duplicate", func() bool {
		stats, err := report.Of(queue.Parts[0]).Stats(t.Context())
		return err == nil && stats.Counters["create"] == 1 && stats.Counters["duplicate"] == 1
	})
}
