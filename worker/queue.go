package worker

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// Queue is what a pool needs of Redis. *scripts.Store is one.
type Queue interface {
	// Take pops at most n entries and reads the clock. Entries that come beside an error are taken all the same.
	Take(ctx context.Context, n int) (entries []string, now time.Time, err error)
	// WaitInput waits a moment for an entry, without taking it.
	WaitInput(ctx context.Context) (bool, error)
	// Push appends messages; it may be repeated after an error.
	Push(ctx context.Context, messages []string) error
	// Fences reads what each of the models is running, and the clock.
	Fences(ctx context.Context, uids []string) ([]scripts.Fence, time.Time, error)
}
