package faults

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// lateWorker is a worker that knows nothing of deadlines: it answers only when its attempt is over.
type lateWorker struct {
	*drill
	late atomic.Int64 // answers
}

func (s *lateWorker) work(ctx context.Context) error {
	clients, store := s.connect(s.address)
	defer func() { _ = clients.Close() }()
	for ctx.Err() == nil {
		entry, err := pop(ctx, clients.Block, store.Keys.Input)
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return err
		}
		err = s.await(func() (bool, error) {
			uid, err := clients.Read.HGet(s.ctx, store.Keys.Model(entry.UID), "attempt_uid").Result()
			return uid != entry.AttemptUID, ignoreNil(err)
		})
		if err != nil {
			return err
		}
		s.record.ran(entry.AttemptUID)
		s.say(ctx, clients.Write, store.Keys.Output, entry)
		s.late.Add(1)
	}
	return nil
}

func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

func TestAWorkerThatIgnoresItsDeadlineChangesNothingWhenItAnswers(t *testing.T) {
	long.Only(t)
	t.Parallel()
	server := testkit.Redis(t)
	d := newDrill(t, server.URL, server.URL)
	d.policy.Timeout = 500 * time.Millisecond
	s := &lateWorker{drill: d}
	lateWorkers := newDaemonGroup(d.ctx, t)
	t.Cleanup(lateWorkers.stop)
	d.begin()
	for range 3 {
		lateWorkers.run(s.work)
	}
	d.until("late answers", func() (bool, error) { return s.late.Load() >= 10*int64(*timesFlag), nil })
	lateWorkers.stop()
	d.settle()
	y, _ := d.conclude()
	late := s.late.Load()
	if unheard := y.stats["stale"] + y.stats["duplicate"]; unheard < late {
		t.Errorf("want %d late answers stale, got %d", late, unheard)
	}
	if timeouts := int64(y.events["timeout"]); timeouts < late {
		t.Errorf("want %d attempts timed out, got %d", late, timeouts)
	}
	t.Logf("%d answers came after the deadline", late)
}
