package main

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// asynqTasks are n tasks of hosts. Each host has a queue, on the Redis whose turn it is, and a server with so many workers.
type asynqTasks struct {
	on         []*server
	n, workers int
	hosts      []string
	host       func(i int) string
	check      time.Duration                       // how often an empty queue is looked at; 0: as often as asynq does by default
	do         func(uid string)                    // nil: nothing
	ask        func(start func(i int) error) error // enqueues each at its time; nil: all before, and again for in an hour
	clients    []*asynq.Client                     // one for each of on
	servers    []*asynq.Server                     // one for each of hosts
	finished   chan struct{}                       // closed when all are done
	done       atomic.Int64
	failed     atomic.Pointer[error]
}

// asynqCycles hands tasks to 64 workers of asynq, which do nothing.
func asynqCycles(ctx context.Context, s *server, n int) (result, error) {
	tasks := asynqTasks{on: []*server{s}, n: n, workers: enough, hosts: []string{feeds}, host: func(int) string { return feeds }}
	return tasks.run(ctx)
}

// asynqQueues gives each Redis a queue with half of the tasks, and half of the workers.
func asynqQueues(ctx context.Context, pair []*server, n int) (result, error) {
	hosts := []string{hostName(0), hostName(1)}
	tasks := asynqTasks{on: pair, n: n, workers: enough / 2, hosts: hosts, host: func(i int) string { return hosts[i%2] }}
	return tasks.run(ctx)
}

// asynqLoad gives each host a queue and a server with so many workers: Concurrency bounds a server, and nothing bounds a queue. So all hosts
// must be known ahead, each costs a server with its connections and loops, and there may be one process only: a second one would double the
// limit. What asynq has for several, the semaphore of its module x/rate, has no release that runs with this version (the latest needs go-redis
// v8), and it queues nobody: a task that gets no token fails, and is tried again when the retries are looked at next (DelayedTaskCheckInterval).
func asynqLoad(check time.Duration) keep {
	return func(ctx context.Context, s *server, book *ledger) (result, error) {
		tasks := asynqTasks{on: []*server{s}, n: book.n, host: func(i int) string { return book.host(i, book.n) }, check: check, do: book.do}
		tasks.hosts, tasks.workers = book.queues()
		if book.asked() {
			tasks.ask = book.ask
		}
		return tasks.run(ctx)
	}
}

func (t *asynqTasks) run(ctx context.Context) (result, error) {
	t.finished = make(chan struct{})
	for _, s := range t.on {
		client := asynq.NewClient(asynq.RedisClientOpt{Addr: s.addr})
		defer func() { _ = client.Close() }()
		t.clients = append(t.clients, client)
	}
	defer t.shutDown()
	enqueue := func(i int) error { return t.enqueue(ctx, i) }
	prepare, begin := func() error { return t.enqueueAll(enqueue) }, t.serve
	if t.ask != nil {
		prepare, begin = t.serve, func() error { return t.ask(enqueue) }
	}
	if err := prepare(); err != nil {
		return result{}, err
	}
	r, err := around(ctx, t.n, func() error {
		if err := begin(); err != nil {
			return err
		}
		<-t.finished
		return nil
	}, t.on...)
	if failed := t.failed.Load(); err == nil && failed != nil {
		err = *failed
	}
	return r, err
}

func (t *asynqTasks) client(host string) *asynq.Client {
	return t.clients[slices.Index(t.hosts, host)%len(t.on)]
}

func (t *asynqTasks) enqueueAll(enqueue func(i int) error) error {
	for i := range t.n {
		if err := enqueue(i); err != nil {
			return err
		}
	}
	return nil
}

func (t *asynqTasks) enqueue(ctx context.Context, i int) error {
	host := t.host(i)
	_, err := t.client(host).EnqueueContext(ctx, asynq.NewTask("refresh", []byte(payload(i, host))), asynq.Queue(host))
	return err
}

func (t *asynqTasks) serve() error {
	for i, host := range t.hosts {
		to := asynq.RedisClientOpt{Addr: t.on[i%len(t.on)].addr}
		config := asynq.Config{Concurrency: t.workers, Queues: map[string]int{host: 1}, TaskCheckInterval: t.check, LogLevel: asynq.FatalLevel}
		server := asynq.NewServer(to, config)
		if err := server.Start(t.handler(host)); err != nil {
			return err
		}
		t.servers = append(t.servers, server)
	}
	return nil
}

func (t *asynqTasks) handler(host string) asynq.HandlerFunc {
	return func(ctx context.Context, task *asynq.Task) (err error) {
		if t.do != nil {
			var entry struct {
				UID string `json:"big_table_uid"`
			}
			err = json.Unmarshal(task.Payload(), &entry)
			t.do(entry.UID)
		}
		if t.ask == nil && err == nil {
			again := asynq.NewTask("refresh", task.Payload())
			_, err = t.client(host).EnqueueContext(ctx, again, asynq.Queue(host), asynq.ProcessIn(time.Hour))
		}
		if err != nil {
			t.failed.Store(&err)
		}
		if t.done.Add(1) == int64(t.n) {
			close(t.finished)
		}
		return err
	}
}

// shutDown ends all servers at once: each waits for its loops.
func (t *asynqTasks) shutDown() {
	var stopping sync.WaitGroup
	for _, server := range t.servers {
		stopping.Go(server.Shutdown)
	}
	stopping.Wait()
}
