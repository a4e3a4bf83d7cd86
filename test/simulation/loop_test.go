package simulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
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
func (l *loops) client() *goredis.Client {
	return goredis.NewClient(&goredis.Options{
		Dialer: l.dial, PoolSize: 50, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func (l *loops) dial(context.Context, string, string) (net.Conn, error) { return l.mini.Dial() }

// tooMany calls without end would let no time pass.
const tooMany = 10_000

func (l *loops) count() {
	if l.calls.Add(1) > tooMany {
		time.Sleep(time.Hour)
	}
}

// refresh fails once for each model; for the model named slow it takes half a minute.
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
func (l *loops) start(wrap func(fixture.Part) queue) (stop func(), err error) {
	client := l.client()
	client.AddHook(testkit.Hook(func(_ context.Context, _ []goredis.Cmder, next func() error) error { l.count(); return next() }))
	l.store, err = store.New(&redis.Clients{Read: client, Write: client, Block: client}, store.Config{Queue: queueName})
	if err != nil {
		return nil, err
	}
	q := wrap(fixture.Whole(l.store))
	d, failed := dispatcher.New(dispatcher.Rooms{Store: q, Flow: q, Report: q, Outbox: q}, dispatcher.Config{})
	p, alsoFailed := poller.New(poller.Rooms{Store: q, Flow: q}, poller.Config{Owner: "p"})
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

// exactly is the tolerance of what the fake clock measures: Redis counts in milliseconds.
const exactly = time.Millisecond

// live lets the loops live through idle times, commands, an outage and the death of another pool. An error is a broken promise.
func (l *loops) live() error {
	ctx, client, k := context.Background(), l.client(), l.store.Keys
	defer func() { _ = client.Close() }()
	put := func(uid string) error {
		time.Sleep(10*time.Second + 333*time.Millisecond) // in the middle of everybody's rest
		text := fmt.Sprintf(`{"type":"put","uid":%q,"policy":{"timeout":"1m","retries":["700ms"]},"refresh":"now"}`, uid)
		return client.RPush(ctx, k.Control, text).Err()
	}
	dead := func() error {
		at := model.FormatTime(time.Now())
		l.mini.HSet(k.Model("m9"), "attempt_uid", "a9", "attempt_no", "2", "rev", "1", "started_at", at, "deadline_at", model.FormatTime(time.Now().Add(time.Hour)))
		if _, err := l.mini.Push(k.Taken("dead"), `{"big_table_uid":"m9","refresh_attempt_uid":"a9","attempt_no":2}`); err != nil {
			return err
		}
		_, err := l.mini.ZAdd(k.Workers, float64(time.Now().Add(-time.Hour).UnixMilli()), "dead") // at last: one with nothing is forgotten at once
		return err
	}
	for _, check := range []func() error{
		func() error { return put("m1") },
		func() error { return l.begun("a start", 0, exactly) },
		func() error {
			return l.begun("a retry after 700ms", 700*time.Millisecond, 700*time.Millisecond+2*exactly)
		},
		func() error { time.Sleep(time.Minute); return nil },
		func() error { return l.restful("an idle queue", 5*60, 15*60) },
		func() error { return l.heard(k.Pollers, time.Second) },
		func() error { return l.heard(k.Workers, time.Second) },
		func() error { l.mini.SetError("LOADING Redis is loading the dataset in memory"); return nil },
		func() error { return l.restful("an outage", 60, 10*60) },
		func() error { l.mini.SetError(""); return nil },
		func() error { return put("m2") },
		func() error { return l.begun("a start after an outage", 0, exactly) },
		func() error { return l.begun("its retry", 700*time.Millisecond, 700*time.Millisecond+2*exactly) },
		func() error { return put("slow") },
		func() error { return l.begun("a slow attempt", 0, exactly) },
		func() error { time.Sleep(20 * time.Second); return l.heard(k.Workers, time.Second) },
		func() error { time.Sleep(20 * time.Second); return nil },
		dead,
		func() error { return l.begun("what a dead pool had taken", 0, 2*time.Second) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// heard expects that everybody in a set gave a heartbeat a moment ago.
func (l *loops) heard(key string, within time.Duration) error {
	owners, _ := l.mini.ZMembers(key) // SortedSet would give the map itself, which the loops go on writing
	for _, owner := range owners {
		at, _ := l.mini.ZScore(key, owner)
		if silent := time.Since(time.UnixMilli(int64(at))); silent > within+exactly {
			return fmt.Errorf("%s has given no heartbeat for %s, want one every %s", owner, silent, within)
		}
	}
	if len(owners) != 1 {
		return fmt.Errorf("want one heartbeat in %s, got %v", key, owners)
	}
	return nil
}

// liveWith runs all loops on a store and returns the promise that they break.
func liveWith(t *testing.T, wrap func(fixture.Part) queue) (broken error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &loops{mini: miniredis.NewMiniRedis(), work: make(chan string, 100)}
		stop, err := l.start(wrap)
		if err != nil {
			t.Fatal(err)
		}
		broken = l.live()
		l.mini.SetError("")
		begin := time.Now()
		stop()
		if took := time.Since(begin); broken == nil && took > 2*time.Second {
			broken = fmt.Errorf("to stop took %s, want a second", took)
		}
		l.mini.Close()
		synctest.Wait()
	})
	return broken
}

func TestTheLoopsRestWhenIdleAndWakeAtOnce(t *testing.T) {
	if err := liveWith(t, func(s fixture.Part) queue { return s }); err != nil {
		t.Fatal(err)
	}
}

// deaf hears nothing of a kind, and waits in vain.
type deaf struct {
	fixture.Part
	wake, control, input bool
}

func (deaf) listen(ctx context.Context, heard bool, wait func(context.Context) (bool, error)) (bool, error) {
	if heard {
		return wait(ctx)
	}
	time.Sleep(time.Second)
	return false, nil
}

func (s deaf) WaitWake(ctx context.Context) (bool, error) {
	return s.listen(ctx, s.wake, s.Store.WaitWake)
}
func (s deaf) WaitControl(ctx context.Context) (bool, error) {
	return s.listen(ctx, s.control, s.Store.WaitControl)
}
func (s deaf) WaitInput(ctx context.Context) (bool, error) {
	return s.listen(ctx, s.input, s.Pool.WaitInput)
}

// restless hears something all the time.
type restless struct{ fixture.Part }

func (restless) WaitOutput(ctx context.Context) (bool, error) { return true, ctx.Err() }

// sleepless expects something in the next millisecond.
type sleepless struct{ fixture.Part }

func (s sleepless) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	due.Next = due.Now.Add(time.Millisecond)
	return due, err
}

// lifeless gives no heartbeats while it waits.
type lifeless struct{ fixture.Part }

func (lifeless) Heartbeat(context.Context, string) (store.Taken, error) {
	return store.Taken{Now: time.Now()}, nil
}

// uncaring leaves the dead alone.
type uncaring struct{ fixture.Part }

func (uncaring) RequeueExpired(context.Context, time.Time, time.Time, time.Duration) ([]store.ExpiredWorker, error) {
	return nil, nil
}

func TestTheLoopsFindPlantedBugs(t *testing.T) {
	for name, wrap := range map[string]func(fixture.Part) queue{
		"a dispatcher hears no call":         func(s fixture.Part) queue { return deaf{s, false, true, true} },
		"a poller hears no command":          func(s fixture.Part) queue { return deaf{s, true, false, true} },
		"a pool hears of no attempt":         func(s fixture.Part) queue { return deaf{s, true, true, false} },
		"a poller is always called":          func(s fixture.Part) queue { return restless{s} },
		"a dispatcher never sleeps":          func(s fixture.Part) queue { return sleepless{s} },
		"a pool gives no heartbeat":          func(s fixture.Part) queue { return lifeless{s} },
		"a dispatcher leaves the dead alone": func(s fixture.Part) queue { return uncaring{s} },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a poller is always called" || name == "a dispatcher never sleeps" { // they take seconds
				long.Only(t)
			}
			if err := liveWith(t, wrap); err == nil {
				t.Fatal("not found")
			} else {
				t.Logf("found: %v", err)
			}
		})
	}
}
