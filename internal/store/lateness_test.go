package store_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// TestWhatIsForgottenLateOfABrokenModelIsNotWhatWasSavedSince lets a dispatcher forget a uid, and free its slot, after somebody has removed what its key
// held, saved the model and started it.
func TestWhatIsForgottenLateOfABrokenModelIsNotWhatWasSavedSince(t *testing.T) {
	fixture.Everywhere(t, func(t *testing.T, b *fixture.Bench) {
		b.Seed(fixture.Seeds{":model:m1": "a text", ":due": fixture.Scores{"m1": fixture.Six}, ":limit:host=h": fixture.Scores{"m1": fixture.Six}})
		l := fixture.WithLateness(b)
		l.Keep(t, func() error { return b.Forget(t.Context(), "m1", "") })
		l.Keep(t, func() error { return store.TakeOut(t.Context(), b.Store, "m1", b.Keys.Limit("host=h")) })
		check.Must(t, b.Redis.Del(t.Context(), b.Keys.Model("m1")).Err())
		b.MustApply(b.Put("m1", "{}"))
		b.Unchanged(func() { l.Deliver(t) })
	})
}
