// Command goworker is a worker in Go: it keeps thumbnails fresh, or says that it does.
//
//	REDIS_URL=redis://127.0.0.1:6379 go run ./examples/goworker
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/refreshd/refreshd/scripts"
	"github.com/refreshd/refreshd/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run works until ctx ends, and returns when the work in hand is finished or handed back.
func run(ctx context.Context) error {
	clients, err := scripts.Connect(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"), scripts.ConnectOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = clients.Close() }()
	queue, err := scripts.Open(ctx, clients, scripts.Config{Queue: os.Getenv("REFRESHD_QUEUE")})
	if err != nil {
		return err
	}
	pool, err := worker.NewForParts(queue.Parts, refresh, worker.Config{Concurrency: 8})
	if err != nil {
		return err
	}
	return pool.Run(ctx)
}

// refresh does one attempt. Its context ends when the work no longer counts.
func refresh(ctx context.Context, attempt *worker.Attempt) error {
	var payload struct {
		InputURL string `json:"input_url"`
	}
	if err := json.Unmarshal(attempt.Payload, &payload); err != nil {
		return worker.NotRetryable(err)
	}
	if payload.InputURL == "" {
		return worker.NotRetryable(worker.UserFriendly(errors.New("no input_url"), "Please set the address of the picture."))
	}
	attempt.Status("drawing "+payload.InputURL, 50)
	// Here goes the work. What it writes, it should write only while the attempt is current.
	return ctx.Err()
}
