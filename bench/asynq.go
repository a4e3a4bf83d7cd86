package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// asynqCycles hands tasks to 64 workers of asynq, which do nothing.
func asynqCycles(ctx context.Context, s *server, n int) (result, error) {
	return asynqTasks(ctx, []*server{s}, n, 64, []string{feeds}, func(int) string { return feeds }, func(string) {})
}

// asynqQueues gives each Redis a queue with half of the tasks, and half of the workers.
func asynqQueues(ctx context.Context, pair []*server, n int) (result, error) {
	queues := []string{hostName(0), hostName(1)}
	return asynqTasks(ctx, pair, n, 32, queues, func(i int) string { return queues[i%2] }, func(string) {})
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
	r, err := asynqTasks(ctx, []*server{s}, n, l.atATime, hosts, func(i int) string { return l.host(i, n) }, book.do)
	return book.seen, r, err
}

// asynqTasks gives each host a queue, on the Redis whose turn it is, and a server with so many workers, each of which does a task and enqueues it
// again for in an hour.
func asynqTasks(ctx context.Context, on []*server, n, workers int, hosts []string, host func(i int) string, do func(host string)) (result, error) {
	clients := make([]*asynq.Client, len(on))
	for i, s := range on {
		clients[i] = asynq.NewClient(asynq.RedisClientOpt{Addr: s.addr})
		defer func() { _ = clients[i].Close() }()
	}
	for i := range n {
		task := asynq.NewTask("refresh", []byte(payload(i, host(i))))
		client := clients[slices.Index(hosts, host(i))%len(on)]
		if _, err := client.EnqueueContext(ctx, task, asynq.Queue(host(i))); err != nil {
			return result{}, err
		}
	}
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var stopping sync.WaitGroup
	finished := make(chan struct{})
	r, err := around(ctx, n, func() error {
		for i, host := range hosts {
			client, to := clients[i%len(on)], asynq.RedisClientOpt{Addr: on[i%len(on)].addr}
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
	}, on...)
	stopping.Wait()
	if err == nil && failed.Load() != nil {
		err = *failed.Load()
	}
	return r, err
}
