package dispatcher_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/poller"
)

// An application puts a model, a dispatcher starts it, a worker reports a failure, and the poller decides what is next. A daemon calls Run
// instead of RunOnce, and needs no NewUID.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, address := context.Background(), "redis://"+server.Addr()
	p, stopPoller, err := poller.Open(ctx, address, "feeds", poller.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = stopPoller() }()
	d, stopDispatcher, err := dispatcher.Open(ctx, address, "feeds", dispatcher.Config{NewUID: func() string { return "a1" }})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = stopDispatcher() }()

	_, _ = server.Push("feeds-control", `{"type":"put","uid":"tbl_1","refresh":"now","policy":{"timeout":"10m","retries":["2m"],"jitter":0}}`)
	put, err := p.RunOnce(ctx)
	if err != nil {
		log.Fatal(err)
	}
	started, err := d.RunOnce(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, _ = server.Push("feeds-output",
		`{"type":"failure","big_table_uid":"tbl_1","refresh_attempt_uid":"a1","reason":"HTTP 503"}`,
		`{"type":"success","big_table_uid":"tbl_1","refresh_attempt_uid":"an old one"}`)
	failed, err := p.RunOnce(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("put", put.Applied, "started", started.Started, "failed", failed.Applied, "stale", server.HGet("feeds:stats", "stale"))
	fmt.Println(server.HGet("feeds:model:tbl_1", "refresh_why"))

	// Output:
	// put 1 started 1 failed 1 stale 1
	// retry 1 of 1 after 2m
}
