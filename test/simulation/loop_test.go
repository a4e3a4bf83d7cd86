package simulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/worker"
)

// loops are the real loops of a dispatcher, a poller and a worker pool on the fake clock of testing/synctest: it moves on only when
// all of them wait, so that what they do costs no time, and what they wait for is known to the millisecond.
type loops struct {
	mini  *miniredis.Miniredis
	store *store.Store
	calls atomic.Int64 // to Redis
	work  chan string  // attempts that were begun
}

// client connects without a network: nothing but the loops waits for anything.
func (l *loops) client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Dialer: l.dial, PoolSize: 50, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func (l *loops) dial(context.Context, string, string) (net.Conn, error) { return l.mini.Dial() }

// tooMany calls without end would let no time pass.
const tooMany = 10_000

// DialHook changes nothing.
func (*loops) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook counts one call.
func (l *loops) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		l.count()
		return next(ctx, command)
	}
}

// ProcessPipelineHook does so too.
func (l *loops) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		l.count()
		return next(ctx, commands)
	}
}

func (l *loops) count() {
	if l.calls.Add(1) > tooMany {
		time.Sleep(time.Hour)
	}
}

// refresh fails once for each model; that of the model named slow takes half a minute.
func (l *loops) refresh(_ context.Context, attempt *worker.Attempt) error {
	l.work <- attempt.AttemptUID
	if attempt.UID == "slow" {
		time.Sleep(30 * time.Second)
		return nil
	}
	if attempt.AttemptNo == 1 {
		return errors.New("HTTP 503")
	}
	return nil
}

// start starts the loops; stop ends them and returns when they have ended.
func (l *loops) start(wrap func(store.Pool) queue) (stop func(), err error) {
	client := l.client()
	client.AddHook(l)
	l.store, err = store.New(&store.Clients{Read: client, Write: client, Block: client}, store.Config{Queue: queueName})
	if err != nil {
		return nil, err
	}
	q := wrap(l.store.Pool())
	d, failed := dispatcher.New(q, dispatcher.Config{})
	p, alsoFailed := poller.New(q, poller.Config{Owner: "p"})
	w, failedToo := worker.New(q, l.refresh, worker.Config{Concurrency: 1})
	if err := errors.Join(failed, alsoFailed, failedToo); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{d.Run, p.Run, w.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
		_ = client.Close()
	}, nil
}

// begun expects an attempt to begin after a while, not earlier and not later.
func (l *loops) begun(what string, after, most time.Duration) error {
	begin := time.Now()
	select {
	case <-l.work:
	case <-time.After(most + time.Minute):
	}
	if took := time.Since(begin); took < after || took > most {
		return fmt.Errorf("%s took %s, want %s to %s", what, took, after, most)
	}
	return nil
}

// restful expects few calls within a minute, but those that are signs of life.
func (l *loops) restful(what string, least, most int64) error {
	before := l.calls.Load()
	time.Sleep(time.Minute)
	if calls := l.calls.Load() - before; calls < least || calls > most {
		return fmt.Errorf("%s made %d calls within a minute, want %d to %d", what, calls, least, most)
	}
	return nil
}
