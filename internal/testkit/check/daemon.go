package check

import (
	"context"
	"sync"
	"testing"
)

// Background runs a daemon. stop ends it, and fails the test with its error.
func Background(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := Await(t, ended, "the end of the daemon"); err != nil {
			t.Error(err)
		}
	})
}

// Run runs daemons until the test ends, and fails it with their errors.
func Run(t testing.TB, daemons ...func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	for _, run := range daemons {
		go func() { ended <- run(ctx) }()
	}
	t.Cleanup(func() {
		stop()
		for range daemons {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}
