package worker

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// Queue is what a pool needs of Redis. *scripts.Store is one.
type Queue interface {
	// Take moves entries into the taken list of the pool; it may be repeated after an error.
	Take(ctx context.Context, taking scripts.Taking) (scripts.Taken, error)
	// WaitInput waits a moment for an entry, without taking it.
	WaitInput(ctx context.Context) (bool, error)
	// Answer pushes messages and removes the entries that they end from the taken list; it may be repeated after an error.
	Answer(ctx context.Context, owner string, answers []scripts.Answer) ([]scripts.Code, error)
	// Fences reads what each of the models is running, and the clock.
	Fences(ctx context.Context, uids []string) ([]scripts.Fence, time.Time, error)
	// Beat is a sign of life; false: the pool is forgotten and has lost what it had taken.
	Heartbeat(ctx context.Context, owner string) (time.Time, bool, error)
	// ExpiredWorkers lists the pools without a sign of life for a lease.
	ExpiredWorkers(ctx context.Context, now time.Time, lease time.Duration) ([]scripts.ExpiredWorker, error)
	// Requeue returns what a silent pool had taken to the input list.
	Requeue(ctx context.Context, silent scripts.ExpiredWorker) (int, error)
	// Leave forgets the pool itself and hands back what it still has.
	Leave(ctx context.Context, owner string) (int, error)
}
