package dispatcher_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/poller"
)

// An application puts a model, a dispatcher starts it, a worker reports a failure, and the poller decides what is next. Only an example needs NewUID.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	address := "redis://" + server.Addr()
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

	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	running.Go(func() { _ = d.Run(ctx) })
	defer running.Wait()
	defer stop()

	_, _ = server.Push("feeds-control", `{"type":"put","uid":"tbl_1","refresh":"now","policy":{"timeout":"10m","retries":["2m"],"jitter":0}}`)
	await(func() bool { return server.Exists("feeds-input") })
	_, _ = server.Push("feeds-output",
		`{"type":"failure","big_table_uid":"tbl_1","refresh_attempt_uid":"a1","reason":"HTTP 503"}`,
		`{"type":"success","big_table_uid":"tbl_1","refresh_attempt_uid":"an old one"}`)
	await(func() bool { return server.HGet("feeds:stats", "stale") != "" })
	fmt.Println(server.HGet("feeds:model:tbl_1", "refresh_why"))

	// Output:
	// retry 1 of 1 after 2m
}

func await(holds func() bool) {
	for !holds() {
		time.Sleep(time.Millisecond)
	}
}
