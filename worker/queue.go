package worker

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// Queue is what a pool needs of Redis. *scripts.Store is one.
type Queue interface {
	// Take moves entries into the taken list of the pool; it may be repeated after an error.
	Take(ctx context.Context, taking scripts.TakeRequest) (scripts.Taken, error)
	// WaitInput waits a moment for an entry, without taking it.
	WaitInput(ctx context.Context) (bool, error)
	// Answer pushes messages and removes the entries that they end from the taken list; it may be repeated after an error.
	Answer(ctx context.Context, owner string, answers []scripts.Answer) ([]scripts.Code, error)
	// Fences reads what each of the models is running, and the clock.
	Fences(ctx context.Context, uids []string) ([]scripts.Fence, time.Time, error)
	// Heartbeat is a heartbeat; false: the pool is forgotten and has lost what it had taken.
	Heartbeat(ctx context.Context, owner string) (time.Time, bool, error)
	// ExpiredWorkers lists the dead pools: those without a heartbeat for a lease.
	ExpiredWorkers(ctx context.Context, now time.Time, lease time.Duration) ([]scripts.ExpiredWorker, error)
	// Requeue requeues what a dead pool had taken: at the head of the input list.
	Requeue(ctx context.Context, dead scripts.ExpiredWorker) (int, error)
	// Leave forgets the pool itself and requeues what it still has.
	Leave(ctx context.Context, owner string) (int, error)
}
