package redis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func only[T any](_ T, err error) error { return err }

func expectEqual[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	diff := cmp.Diff(want, got)
	failIf(t, diff != "", "%s (-want +got):\n%s", what, diff)
}

func TestMain(m *testing.M) {
	LogTo(nil)
	testkit.Main(m)
}
