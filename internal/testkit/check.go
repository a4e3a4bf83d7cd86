package testkit

import (
	"context"
	"sync"
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

// Only is the error of a call that returns something else too.
func Only[T any](_ T, err error) error { return err }

// Got is what a call returns that must not fail: testkit.Got(call())(t).
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
