package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// asynqCycles hands tasks to 64 workers of asynq, each of which enqueues its task again for in an hour.
func asynqCycles(ctx context.Context, s *server, n int) (result, error) {
	to := asynq.RedisClientOpt{Addr: s.addr}
	client := asynq.NewClient(to)
	defer func() { _ = client.Close() }()
	for i := range n {
		if _, err := client.EnqueueContext(ctx, asynq.NewTask("refresh", []byte(payload(i, feeds)))); err != nil {
			return result{}, err
		}
	}
	var done atomic.Int64
	var failed atomic.Pointer[error]
	finished := make(chan struct{})
	handler := asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask("refresh", task.Payload()), asynq.ProcessIn(time.Hour))
		if err != nil {
			failed.Store(&err)
		}
		if done.Add(1) == int64(n) {
			close(finished)
		}
		return err
	})
	workers := asynq.NewServer(to, asynq.Config{Concurrency: 64, LogLevel: asynq.FatalLevel})
	defer workers.Shutdown()
	r, err := s.around(ctx, n, func() error {
		if err := workers.Start(handler); err != nil {
			return err
		}
		<-finished
		return nil
	})
	if err == nil && failed.Load() != nil {
		err = *failed.Load()
	}
	return r, err
}
