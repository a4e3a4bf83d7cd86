// Command cron-script is the worker of docs/first-worker.md in Go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/refreshd/refreshd/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := worker.Open(ctx, os.Getenv("REDIS_URL"), "bigtables", refresh, worker.Config{})
	if err == nil {
		err = errors.Join(pool.Run(ctx), pool.Close())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func refresh(ctx context.Context, attempt *worker.Attempt) error {
	var payload struct {
		InputURL string `json:"input_url"`
	}
	if err := json.Unmarshal(attempt.Payload, &payload); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, payload.InputURL, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	table, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(attempt.UID+".csv", table, 0o600)
}
