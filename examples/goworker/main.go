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
	"time"

	"github.com/refreshd/refreshd/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run works until ctx ends. It finishes the work in hand or hands it back.
func run(ctx context.Context) error {
	address := cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379")
	pool, err := worker.Open(ctx, address, os.Getenv("REFRESHD_QUEUE"), refresh, worker.Config{Concurrency: 8})
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	return pool.Run(ctx)
}

// refresh does one attempt. Its context ends when the attempt no longer counts.
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
	// The pool checks the fence about once a second (HGET <queue>:model:<uid> attempt_uid), and the deadline, which moves once `started` is applied.
	// It ends ctx when another attempt has begun or the deadline has passed: stop then, and write nothing more.
	for part := range parts {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		until := ""
		if deadline := attempt.Deadline(); !deadline.IsZero() { // zero: it may take for ever
			until = ", until " + deadline.Format(time.TimeOnly)
		}
		attempt.Status("drawing "+payload.InputURL+until, 100*part/parts)
		// Here goes a part of the work.
	}
	return ctx.Err()
}

// parts divide the work, so that it can stop between two of them.
const parts = 4
