package poller_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/poller"
)

// An application puts a model, a worker reports a failure, and the poller decides what is next. A daemon calls Run instead of
// RunOnce, which is for tests; a store needs no Clock.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	clients, err := store.Connect("redis://"+server.Addr(), store.ConnectOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = clients.Close() }()
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	store, err := store.New(clients, store.Config{Queue: "feeds", Clock: func() time.Time { return now }})
	if err != nil {
		log.Fatal(err)
	}
	p, err := poller.New(store, poller.Config{})
	if err != nil {
		log.Fatal(err)
	}
	starts, err := dispatcher.New(store, dispatcher.Config{NewUID: func() string { return "a1" }})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	_, _ = server.Push("feeds-control", `{"type":"put","uid":"tbl_1","refresh":"now","policy":{"timeout":"10m","retries":["2m"],"jitter":0}}`)
	round, err := p.RunOnce(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("applied", round.Applied, "due", server.HGet("feeds:model:tbl_1", "refresh_at"))

	if _, err := starts.RunOnce(ctx); err != nil {
		log.Fatal(err)
	}
	_, _ = server.Push("feeds-output",
		`{"type":"failure","big_table_uid":"tbl_1","refresh_attempt_uid":"a1","reason":"HTTP 503"}`,
		`{"type":"success","big_table_uid":"tbl_1","refresh_attempt_uid":"an old one"}`)
	round, err = p.RunOnce(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("applied", round.Applied, "stale", server.HGet("feeds:stats", "stale"))
	fmt.Println("due", server.HGet("feeds:model:tbl_1", "refresh_at"), "because", server.HGet("feeds:model:tbl_1", "refresh_why"))

	// Output:
	// applied 1 due 2026-11-21T07:00:00.000Z
	// applied 1 stale 1
	// due 2026-11-21T07:02:00.000Z because retry 1/1 +2m, none planned
}
