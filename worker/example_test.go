package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"

	"github.com/refreshd/refreshd/worker"
)

// A pool takes started attempts, calls the handler and sends the result to the poller.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	// A dispatcher does this when a model is due.
	server.HSet("feeds:model:tbl_1", "attempt_uid", "a1")
	_, _ = server.Push("feeds-input", `{"big_table_uid":"tbl_1","refresh_attempt_uid":"a1","input_url":"https://example.com/feed.csv"}`)

	ctx, stop := context.WithCancel(context.Background()) // a program uses signal.NotifyContext
	refresh := func(_ context.Context, attempt *worker.Attempt) error {
		defer stop()
		fmt.Printf("refresh %s: %s\n", attempt.UID, attempt.Payload)
		return nil
	}
	pool, err := worker.Open(ctx, "redis://"+server.Addr(), "feeds", refresh, worker.Config{Concurrency: 1, Name: "w1"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	if err := pool.Run(ctx); err != nil {
		log.Fatal(err)
	}
	messages, _ := server.List("feeds-output")
	for _, message := range messages {
		fmt.Println(message)
	}

	// Output:
	// refresh tbl_1: {"input_url":"https://example.com/feed.csv"}
	// {"type":"started","big_table_uid":"tbl_1","refresh_attempt_uid":"a1","worker":"w1"}
	// {"type":"success","big_table_uid":"tbl_1","refresh_attempt_uid":"a1"}
}

// Try shows the messages of a handler, without a pool and without Redis.
func ExampleTry() {
	handler := func(_ context.Context, attempt *worker.Attempt) error {
		attempt.Status("asking the shop", 10)
		return worker.NotRetryable(worker.UserFriendly(errors.New("401 Unauthorized"), "Please renew the password of the shop."))
	}
	told, err := worker.Try(context.Background(), handler, &worker.Attempt{UID: "tbl_1", AttemptUID: "a1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(told[0].Type, told[0].Status, *told[0].Progress)
	fmt.Println(told[1].Type, told[1].Reason, "retryable:", *told[1].Retryable)
	fmt.Println("the owner reads:", told[1].UserFriendlyReason)

	// Output:
	// user_friendly_status asking the shop 10
	// failure 401 Unauthorized retryable: false
	// the owner reads: Please renew the password of the shop.
}
