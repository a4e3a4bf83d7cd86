package scripts

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
)

func TestAQueueKeyOfAWrongTypeStopsATransitionBeforeItsFirstWrite(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		k := b.Keys
		for _, key := range []string{k.Due(), k.Running(), k.Input(), k.Claimed("p1"), k.Rejected(), k.Journal(), k.Outbox(), k.Stats(), k.Wake(), k.Commands(), k.StaleAt(), k.Late(), k.Stale()} {
			b.redis.Set(t.Context(), key, "text", 0)
			record := &Record{Model: model.Model{UID: "m1", Policy: policy.Default()}}
			before := b.state()
			_, err := b.Commit(t.Context(), Batch{Now: b.now, Owner: "p1", Items: []Item{{Transition: b.save(record, "{}")}}})
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: expected an error that names the key, found %v", key, err)
			}
			if diff := cmp.Diff(before, b.state()); diff != "" {
				t.Errorf("%s: expected nothing written:\n%s", key, diff)
			}
			b.redis.Del(t.Context(), key)
		}
	})
}

func TestACounterThatIsNoNumberStopsNobody(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.redis.HSet(t.Context(), b.Keys.Stats(), "create", "many")
		record := &Record{Model: model.Model{UID: "m1", Policy: policy.Default()}}
		b.mustApply(b.save(record, "{}"))
	})
}
