package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// asynqCycles hands tasks to 64 workers of asynq, which do nothing.
func asynqCycles(ctx context.Context, s *server, n int) (result, error) {
	return asynqTasks(ctx, s, n, 64, []string{feeds}, func(int) string { return feeds }, func(string) {})
}

// asynqLimits gives each host a queue and a server with so many workers: Concurrency bounds a server, and nothing bounds a queue. So all hosts
// must be known ahead, each costs a server with its connections and loops, and there may be one process only: a second one would double the
// limit. What asynq has for several, the semaphore of its module x/rate, has no release that runs with this version (the latest needs go-redis
// v8), and it queues nobody: a task that gets no token fails, and is tried again when the retries are looked at next (DelayedTaskCheckInterval).
func asynqLimits(ctx context.Context, s *server, l limits, n int) (seen, result, error) {
	book, hosts := newLedger(l, n), make([]string, l.hosts)
	for i := range hosts {
		hosts[i] = hostName(i)
	}
	r, err := asynqTasks(ctx, s, n, l.atATime, hosts, func(i int) string { return l.host(i, n) }, book.do)
	return book.seen, r, err
}

// asynqTasks gives each host a queue and a server with so many workers, each of which does a task and enqueues it again for in an hour.
func asynqTasks(ctx context.Context, s *server, n, workers int, hosts []string, host func(i int) string, do func(host string)) (result, error) {
	to := asynq.RedisClientOpt{Addr: s.addr}
	client := asynq.NewClient(to)
	defer func() { _ = client.Close() }()
	for i := range n {
		task := asynq.NewTask("refresh", []byte(payload(i, host(i))))
		if _, err := client.EnqueueContext(ctx, task, asynq.Queue(host(i))); err != nil {
			return result{}, err
		}
	}
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var stopping sync.WaitGroup
	finished := make(chan struct{})
	r, err := s.around(ctx, n, func() error {
		for _, host := range hosts {
			server := asynq.NewServer(to, asynq.Config{Concurrency: workers, Queues: map[string]int{host: 1}, LogLevel: asynq.FatalLevel})
			if err := server.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
				do(host)
				again := asynq.NewTask("refresh", task.Payload())
				_, err := client.EnqueueContext(ctx, again, asynq.Queue(host), asynq.ProcessIn(time.Hour))
				if err != nil {
					failed.Store(&err)
				}
				if done.Add(1) == int64(n) {
					close(finished)
				}
				return err
			})); err != nil {
				return err
			}
			defer stopping.Go(server.Shutdown) // all at once: each waits for its loops
		}
		<-finished
		return nil
	})
	stopping.Wait()
	if err == nil && failed.Load() != nil {
		err = *failed.Load()
	}
	return r, err
}
