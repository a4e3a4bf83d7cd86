package main

import (
	"context"
	"sync"
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

// asynqLimits gives each host a queue and a server with so many workers: Concurrency bounds a server, and nothing bounds a queue. So all hosts
// must be known ahead, each costs a server with its connections and loops, and there may be one process only: a second one would double the
// limit. What asynq has for several, the semaphore of its module x/rate, has no release that runs with this version (the latest needs go-redis
// v8), and it queues nobody: a task that gets no token fails, and is tried again when the retries are looked at next (DelayedTaskCheckInterval).
func asynqLimits(ctx context.Context, s *server, l limits, n int) (seen, result, error) {
	to := asynq.RedisClientOpt{Addr: s.addr}
	client := asynq.NewClient(to)
	defer func() { _ = client.Close() }()
	for i := range n {
		task := asynq.NewTask("refresh", []byte(payload(i, l.host(i, n))))
		if _, err := client.EnqueueContext(ctx, task, asynq.Queue(l.host(i, n))); err != nil {
			return seen{}, result{}, err
		}
	}
	book := newLedger(l, n)
	var failed atomic.Pointer[error]
	var stopping sync.WaitGroup
	r, err := s.around(ctx, n, func() error {
		for i := range l.hosts {
			host := hostName(i)
			workers := asynq.NewServer(to, asynq.Config{Concurrency: l.atATime, Queues: map[string]int{host: 1}, LogLevel: asynq.FatalLevel})
			if err := workers.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
				book.do(host)
				again := asynq.NewTask("refresh", task.Payload())
				_, err := client.EnqueueContext(ctx, again, asynq.Queue(host), asynq.ProcessIn(time.Hour))
				if err != nil {
					failed.Store(&err)
				}
				return err
			})); err != nil {
				return err
			}
			defer stopping.Go(workers.Shutdown) // all at once: each waits for its loops
		}
		<-book.finished
		return nil
	})
	stopping.Wait()
	if err == nil && failed.Load() != nil {
		err = *failed.Load()
	}
	return book.seen, r, err
}
