package store

import (
	"testing"
	"time"

	miniredis "github.com/alicebob/miniredis/v2/server"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

// Bench is the fixture for tests in package store_test: those of rooms that import this package.
type Bench = bench

// Everywhere runs a test on each kind of server.
var Everywhere = everywhere

// NewBench opens a store.
var NewBench = newBench

// Seeds is what a queue holds, by key without the queue's name.
type Seeds = keys

// Events are entries of a stream, without their ids.
type Events = events

// CallCase is one call, with everything that Redis holds before and after.
type CallCase struct {
	Name string
	Seed Seeds
	Call func(b *Bench) any
	Says any   // what the call returns
	Want Seeds // nil: as before
}

// EachCall makes each of these calls.
func EachCall(t *testing.T, cases []CallCase) {
	t.Helper()
	var all []callCase
	for _, c := range cases {
		all = append(all, callCase{c.Name, c.Seed, c.Call, c.Says, c.Want})
	}
	eachCall(t, all)
}

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

// Fresh empties the server and opens another store.
func (b *bench) Fresh(t testing.TB) *Bench { return b.fresh(t) }

// T is the test in hand.
func (b *bench) T() testing.TB { return b.t }

// Server is where the store lives.
func (b *bench) Server() *testkit.Server { return b.server }

// State is all that the server holds.
func (b *bench) State() Seeds { return b.state() }

// Expect compares all that the server holds.
func (b *bench) Expect(want Seeds) {
	b.t.Helper()
	b.expect(want)
}

// One reads a model.
func (b *bench) One(uid string) *Record { return b.load(uid) }

// Put makes the transition that saves a one-shot, due at once.
func (b *bench) Put(uid, payload string) *Transition { return b.put(uid, payload) }

// Hand makes the transition that hands out an attempt.
func (b *bench) Hand(uid, attemptUID string) *Transition { return b.start(uid, attemptUID) }

// MustApply commits transitions.
func (b *bench) MustApply(transitions ...*Transition) {
	b.t.Helper()
	b.mustApply(transitions...)
}

// Settle settles messages.
func (b *bench) Settle(owner string, settlements ...Item) []Code {
	b.t.Helper()
	return b.settle(owner, settlements...)
}

// WithPolicy stores a policy under the name p and a one-shot m1 that uses it and is due.
func (b *bench) WithPolicy(text string) {
	b.t.Helper()
	b.withPolicy(text)
}

// Run starts m1 and ends the attempt a second later, as the word says.
func (b *bench) Run(ends ...string) {
	b.t.Helper()
	b.run(ends...)
}

// Claims claims messages.
func (b *bench) Claims(owner string, limit int) []string { return b.claim(owner, limit) }

// Step moves the clock of the store.
func (b *bench) Step(by time.Duration) { b.now = b.now.Add(by) }

// Loading makes the fake server answer every command of this name, about this key, that it is loading. An empty key means each.
func (b *bench) Loading(command, key string) { b.answerTo(command, key, loading) }

// AnswerTo makes the fake server answer every command of this name in another way.
func (b *bench) AnswerTo(command string, reply func(peer *miniredis.Peer)) {
	b.answerTo(command, "", reply)
}

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
func (b *bench) SetOutboxCap(n int) { b.Config.OutboxCap = n }

// ExpectEqual fails the test with the difference of two values.
func ExpectEqual(t testing.TB, what string, want, got any) {
	t.Helper()
	expectEqual(t, what, want, got)
}

// What tests of rooms expect of the store.
const (
	SettingLayout = settingLayout
	SettledAfter  = settledAfter
	Six           = six
	Minute        = minute
)

// What tests of the store share with those of rooms.
var (
	Picks     = picks
	Named     = named
	CommandOf = commandOf
	But       = but
	OnEach    = onEach
	TwoParts  = twoParts
	Refusing  = refusing
	SixOClock = sixOClock
)
