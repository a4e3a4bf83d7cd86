package check

import (
	"testing"
	"time"
)

// Limit bounds every wait of a test and of its fixtures. It only ends hanging waits, and says where: a busy machine may need long for
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
