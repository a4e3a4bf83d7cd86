package testkit

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// Limit bounds every wait of a test and of its fixtures. It only ends what hangs, and says where: a busy machine may need long for
// little.
const Limit = 5 * time.Minute

// Await receives one value, and fails the test when none comes.
func Await[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// Eventually waits until a condition holds that nothing signals.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit, tick := time.NewTimer(Limit), time.NewTicker(5*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// Run runs daemons until the test ends, and fails it with what they return.
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

// Buffer is a text that may be read while somebody writes.
type Buffer struct {
	Written func() // called after each write; nil: nothing is. Set it before the first.

	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Write appends to the text.
func (b *Buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	n, err := b.text.Write(text)
	b.mu.Unlock()
	if b.Written != nil {
		b.Written()
	}
	return n, err
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Lines is a log whose lines can be received, for tests that wait until something has been logged. A line is dropped when
// nobody is ready to receive it and the channel is full.
type Lines chan string

// Write sends the line, if there is room.
func (l Lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}
