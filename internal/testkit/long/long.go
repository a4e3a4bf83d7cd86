// Package long is the one switch between the tests that take seconds and those that take minutes. The environment variable
// REFRESHD_LONG=1 runs them all; a flag of a test would not do, because the packages without it refuse to run:
//
//	REFRESHD_LONG=1 go test ./...
//
// It imports nothing of refreshd, so that the tests of every package may use it. Only tests import it.
package long

import (
	"os"
	"testing"
)

const variable = "REFRESHD_LONG"

// Enabled reports whether the long tests are to run: more seeds, larger numbers, faults that last.
func Enabled() bool { return os.Getenv(variable) != "" }

// Only skips a test that is long as a whole, unless the long ones are to run.
func Only(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skipf("a long test: set %s=1", variable)
	}
}

// Or returns how much a test does: few, or many if the long tests are to run.
func Or[T any](few, many T) T {
	if Enabled() {
		return many
	}
	return few
}
