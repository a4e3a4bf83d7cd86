package store

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Bench is the fixture for tests in package store_test: those of rooms that import this package.
type Bench = bench

// Everywhere runs a test on each kind of server.
var Everywhere = everywhere

// NewBench opens a store.
var NewBench = newBench

// Seeds is what a queue holds, by key without the queue's name.
type Seeds = keys

// Seed writes keys as a test is to find them.
func (b *bench) Seed(all Seeds) {
	b.t.Helper()
	b.seed(all)
}

// Fail saves a one-shot, starts it and lets its attempt fail for good at an instant.
func (b *bench) Fail(uid string, at time.Time) {
	b.t.Helper()
	b.fail(uid, at)
}

// Step moves the clock of the store.
func (b *bench) Step(by time.Duration) { b.now = b.now.Add(by) }

// Loading makes the fake server answer every command of this name that it is loading.
func (b *bench) Loading(command string) { b.answerTo(command, "", loading) }

// Redis is the client of the test itself.
func (b *bench) Redis() goredis.UniversalClient { return b.redis }

// Clock is the clock of the store.
func (b *bench) Clock() time.Time { return b.now }

// Unchanged runs act and expects that nothing changes.
func (b *bench) Unchanged(act func()) {
	b.t.Helper()
	b.unchanged(act)
}

// SetOutboxCap changes how many entries the outbox keeps.
func (b *bench) SetOutboxCap(n int) { b.config.OutboxCap = n }

// ExpectEqual fails the test with the difference of two values.
func ExpectEqual(t testing.TB, what string, want, got any) {
	t.Helper()
	expectEqual(t, what, want, got)
}
