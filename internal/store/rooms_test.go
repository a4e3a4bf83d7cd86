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
