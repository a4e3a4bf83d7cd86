// Package outside uses each public package of refreshd, as a module of somebody else.
package outside

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/refreshdtest"
	"github.com/refreshd/refreshd/worker"
	"github.com/refreshd/refreshd/worker/handlers"
)

func TestAModelIsRefreshed(t *testing.T) {
	server := miniredis.RunT(t)
	address := "redis://" + server.Addr()
	ctx, stop := context.WithCancel(t.Context())
	p, closePoller, err := poller.Open(ctx, address, "feeds", poller.Config{})
	must(t, err)
	d, closeDispatcher, err := dispatcher.Open(ctx, address, "feeds", dispatcher.Config{})
	must(t, err)
	refreshed := make(chan string, 1)
	pool, err := worker.Open(ctx, address, "feeds", func(_ context.Context, attempt *worker.Attempt) error {
		refreshed <- attempt.UID
		return nil
	}, worker.Config{Concurrency: 1})
	must(t, err)
	shop, err := client.Open(ctx, address, "feeds", client.Config{By: "shop"})
	must(t, err)
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{p.Run, d.Run, pool.Run} {
		running.Go(func() { must(t, run(ctx)) })
	}
	reply, err := shop.Put(ctx, client.Definition{UID: "tbl_1"})
	must(t, err)
	if uid := <-refreshed; uid != "tbl_1" || reply.Outcome != client.Applied {
		t.Errorf("put %s, refreshed %s", reply.Outcome, uid)
	}
	stop()
	running.Wait()
	for _, end := range []func() error{closePoller, closeDispatcher, pool.Close, shop.Close} {
		must(t, end())
	}
}

func TestAQueueOnAVirtualClock(t *testing.T) {
	refreshdtest.Test(t, func(t *testing.T, q *refreshdtest.Queue) {
		q.Handle(func(context.Context, *worker.Attempt) error { return nil })
		q.Put("uid: tbl_1\nrrule: every day at 6 AM\n")
		q.Advance(30 * time.Hour)
		if n := len(q.Attempts("tbl_1")); n != 2 {
			t.Errorf("expected 2 attempts, found %d", n)
		}
	})
}

func TestAHandlerAndASchedule(t *testing.T) {
	handler, err := handlers.HTTP("http://127.0.0.1:1/", handlers.HTTPOptions{})
	must(t, err)
	daily, err := schedule.Parse("FREQ=DAILY;BYHOUR=6", "Europe/Berlin", "2026-01-01")
	must(t, err)
	next, _ := daily.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if handler == nil || next.Hour() != 5 {
		t.Errorf("next: %s", next)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
