package store_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// The words of the tests of rooms, which are those of the tests of the store.
type (
	bench  = store.Bench
	keys   = store.Seeds
	list   = []string
	hash   = map[string]string
	scores = map[string]float64
	events = store.Events
)

const six = store.Six

var (
	everywhere = store.Everywhere
	newBench   = store.NewBench
	failIf     = check.FailIf
	stopIf     = check.StopIf
	must       = check.Must
)

func only[T any](v T, err error) error { return check.Only(v, err) }

func expectEqual[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	store.ExpectEqual(t, what, want, got)
}
