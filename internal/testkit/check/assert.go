// Package check compares, waits and reads for tests of every package. It imports none of ours, nor a client of Redis: a test program
// that needs no server links in half the time.
//
// Only _test files and packages for tests import it.
package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Must ends the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Only returns the error of a call, without its value.
func Only[T any](_ T, err error) error { return err }

// Got returns the value of a call that must not fail: check.Got(call())(t).
func Got[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Equal fails the test with the difference of two values.
func Equal(t testing.TB, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FailIf fails the test when something is wrong.
func FailIf(t testing.TB, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Errorf(format, args...)
	}
}

// StopIf ends the test when something is wrong.
func StopIf(t testing.TB, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Fatalf(format, args...)
	}
}
