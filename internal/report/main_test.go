package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// The words of the tests.
type (
	bench  = fixture.Bench
	keys   = fixture.Seeds
	list   = fixture.List
	hash   = fixture.Hash
	scores = fixture.Scores
)

const six = fixture.Six

var (
	everywhere = fixture.Everywhere
	failIf     = check.FailIf
	stopIf     = check.StopIf
	must       = check.Must
)

func only[T any](v T, err error) error { return check.Only(v, err) }

func expectEqual[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	diff := cmp.Diff(want, got)
	failIf(t, diff != "", "%s (-want +got):\n%s", what, diff)
}

func TestMain(m *testing.M) {
	redis.LogTo(nil)
	testkit.Main(m)
}
